"""The file of a journal: lines that are whole or cut off, and one writer at a time."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tellapart.errors import TellapartError
from tellapart.outputs.writing import replaceable, replacement, unwritable
from tellapart.storage import left_over

FORMAT = 1  # another number for every change of what a line means
MARK = "journal"  # the first field of every line
START = f'{{"{MARK}": {FORMAT}, '.encode()

_TEXTS = ("image", "image_id", "key", "caption")


@dataclass(frozen=True, slots=True)
class Line:
    """Where a line stands and what it says."""

    start: int
    length: int  # with its line end
    fields: dict[str, Any]


class JournalFile:
    """A file of JSON lines that is open for this process alone.

    Lines are added at the end. One that a kill or a full disk has cut off is taken away when the file is
    opened next. The lock is the system's, on the file itself: it goes with the process, however that ends.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._target, status = replaceable(path)
            self._descriptor = _lock(self._target, path)
        except OSError as error:
            raise unwritable(path, error) from error
        self._is_new = status is None
        self.end = 0

    def close(self) -> None:
        """Let others in; a file that was made here and got no line is not left behind."""
        if self._is_new and not os.fstat(self._descriptor).st_size and self._is_in_place():
            self._target.unlink(missing_ok=True)
        os.close(self._descriptor)

    def lines(self) -> Iterator[Line]:
        """All lines, from the first on; then what was cut off at the end is taken away."""
        with suppress(OSError):  # rubbish in a folder that may not be searched stays there
            for path in left_over(self._target):
                path.unlink(missing_ok=True)
        number = 0
        with open(self._descriptor, "rb", closefd=False) as file:
            file.seek(0)
            for data in file:
                number += 1
                if not data.endswith(b"\n") and not self._is_whole(data, number):
                    break
                if data.strip():
                    yield Line(self.end, len(data), self._parse(data, number))
                self.end += len(data)
        self._close_last_line()

    def read(self, start: int, length: int) -> dict[str, Any]:
        """The line that stands there."""
        fields: dict[str, Any] = json.loads(os.pread(self._descriptor, length, start))
        return fields

    def add(self, data: bytes) -> int:
        """Write a line at the end, or leave the file as it was; gives the place of the line."""
        start = self.end
        self._expect_ours()
        try:
            _write_all(self._descriptor, data, start)
        except BaseException as error:
            with suppress(OSError):  # what is left is cut off when the file is opened next
                os.ftruncate(self._descriptor, start)
            if isinstance(error, OSError):
                raise unwritable(self.path, error) from error
            raise
        self.end = start + len(data)
        return start

    def sync(self) -> None:
        """Wait until the disk has it all."""
        self._expect_ours()
        try:
            os.fsync(self._descriptor)
        except OSError as error:
            raise unwritable(self.path, error) from error

    def rewrite(self, places: list[tuple[int, int]]) -> list[int]:
        """Replace the file by some of its lines, in this order; gives the new place of each."""
        self._expect_ours()
        fresh = None
        starts, end = [], 0
        try:
            with replacement(self._target) as temporary:
                fresh = _lock(temporary, self.path)
                for start, length in places:
                    _write_all(fresh, os.pread(self._descriptor, length, start), end)
                    starts.append(end)
                    end += length
        except BaseException:
            if fresh is not None:
                os.close(fresh)
            raise
        assert fresh is not None
        os.close(self._descriptor)
        self._descriptor, self.end = fresh, end
        return starts

    def _parse(self, data: bytes, number: int) -> dict[str, Any]:
        try:
            fields = json.loads(data)
        except (ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict) or MARK not in fields:
            raise self._foreign(number)
        if fields[MARK] != FORMAT:
            raise TellapartError(
                f"{self.path}:{number}: written by another version of tellapart", hint="name another file"
            )
        if not all(isinstance(fields.get(name), str) for name in _TEXTS):
            raise TellapartError(
                f"{self.path}:{number}: {', '.join(_TEXTS)} should be texts", hint="delete that line"
            )
        return fields

    def _is_whole(self, data: bytes, number: int) -> bool:
        """Whether the last line lacks nothing but its end; one that was cut off is ours if it begins so."""
        try:
            self._parse(data, number)
        except TellapartError:
            if data.startswith(START[: len(data)]) or not data.strip(b"\0"):
                return False
            raise
        return True

    def _foreign(self, number: int) -> TellapartError:
        if number == 1:
            return TellapartError(
                f"{self.path} is not a file of captions that can be gone on with: it is left as it is",
                hint="name another file",
            )
        return TellapartError(
            f"{self.path}:{number}: not a line of ours; the file is left as it is",
            hint="delete that line, or name another file",
        )

    def _close_last_line(self) -> None:
        size = os.fstat(self._descriptor).st_size
        try:
            if size > self.end:
                os.ftruncate(self._descriptor, self.end)
            elif size and os.pread(self._descriptor, 1, size - 1) != b"\n":
                _write_all(self._descriptor, b"\n", size)
                self.end = size + 1
        except OSError as error:
            raise unwritable(self.path, error) from error

    def _is_in_place(self) -> bool:
        return _is_at(self._descriptor, self._target)

    def _expect_ours(self) -> None:
        """Another program may have saved the file meanwhile: what we write would be lost or break it."""
        if not self._is_in_place() or os.fstat(self._descriptor).st_size != self.end:
            raise TellapartError(
                f"{self.path} was changed by another program while captions were written to it",
                hint="leave it alone, and run the same command again",
            )


def _lock(target: Path, path: Path) -> int:
    """Open a file that nobody else writes to; the one that is there once the lock is ours."""
    while True:
        descriptor = os.open(target, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise _unlockable(path, error) from error
        if _is_at(descriptor, target):
            return descriptor
        os.close(descriptor)  # its writer has just put another in its place


def _unlockable(path: Path, error: OSError) -> TellapartError:
    if isinstance(error, BlockingIOError):
        return TellapartError(
            f"another process is writing captions to {path}",
            hint="wait until it has finished, or name another file",
        )
    return TellapartError(
        f"{path} cannot be locked: {error.strerror}", hint="write to a disk of this machine"
    )


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


def _write_all(descriptor: int, data: bytes, start: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, start)
        view, start = view[written:], start + written
