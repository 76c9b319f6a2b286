"""One look at a folder: which pictures it holds, and when each last changed. No file is opened.

Asking the system for sizes and times of 100,000 files takes as long as importing all that a search needs: a
second process can look while the first one starts. So that it can begin at once, nothing here imports NumPy.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import pickle
import signal
import stat
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import BinaryIO

from tellapart.data.picture_files import PICTURE_SUFFIXES, find_pictures, read_bytes
from tellapart.errors import TellapartError


def _numbers() -> array[int]:
    return array("q")


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen, in no particular order, but mostly in the same as the last time."""

    when: int  # the time at which the look began, in nanoseconds
    names: bytes  # paths inside the folder, with zeros between: taking them apart takes a while
    key: bytes  # of the names in their order
    sizes: array[int]
    changed: array[int]  # time of the last change, in nanoseconds
    touched: array[int]  # the same of anything about the file: no copy or move can set it back
    texts: list[str]  # the .txt files there
    problems: list[TellapartError]  # what cannot be looked at


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was seen so far."""

    names: list[str] = field(default_factory=list)
    sizes: array[int] = field(default_factory=_numbers)
    changed: array[int] = field(default_factory=_numbers)
    touched: array[int] = field(default_factory=_numbers)
    texts: list[str] = field(default_factory=list)
    problems: list[TellapartError] = field(default_factory=list)


def look(folder: Path) -> Look:
    """Look through a folder; one that is none, or holds no picture, is an error."""
    if not folder.is_dir():
        there = "is not a folder" if folder.exists() else "does not exist"
        raise TellapartError(f"{folder} {there}", hint="name the folder that holds the pictures")
    when, seen = time.time_ns(), _Seen()
    folders = [""]
    while folders:
        folders += _look_into(folder, folders.pop(), seen)
    if not seen.names and not seen.problems:
        raise _problem_of(folder)
    names = os.fsencode("\0".join(seen.names))
    key = hashlib.sha256(names).digest()
    return Look(when, names, key, seen.sizes, seen.changed, seen.touched, seen.texts, seen.problems)


@dataclass(frozen=True, slots=True)
class _Other:
    """A process that looks."""

    number: int
    told: BinaryIO  # what it says

    def end(self) -> None:
        """Wait for it no longer."""
        os.kill(self.number, signal.SIGKILL)
        os.waitpid(self.number, 0)
        self.told.close()


_begun: dict[Path, _Other] = {}  # looks that nobody has asked for yet


def begin_to_look(arguments: Sequence[str]) -> None:
    """Let another process look at the first of a command's arguments that names a folder.

    For the very first moments of a program, while it has but one thread: the other process goes on as a copy
    of this one, and has nothing to import. Before the command line has been understood, the folder is a
    guess; if it was not the one meant, nobody will ask for what was seen.
    """
    with suppress(OSError):  # a sentence may be too long for a name
        folder = next((path for path in map(Path, arguments) if path.is_dir()), None)
        if folder is not None and hasattr(os, "fork"):
            _begun[folder] = _fork(folder)
            atexit.register(_end_all)  # --help, say, asks for no look


def _fork(folder: Path) -> _Other:
    reading, writing = os.pipe()
    number = os.fork()
    if number:
        os.close(writing)
        return _Other(number, os.fdopen(reading, "rb"))
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):  # nobody who reads our output shall wait for this process
            os.dup2(nowhere, stream)
        with os.fdopen(writing, "wb") as file:
            _tell(look(folder), file)
    finally:
        os._exit(0)


@contextmanager
def looking_ahead(folder: Path) -> Iterator[Callable[[], Look]]:
    """What is given says what the folder holds, and waits for the other process, if one looks at it."""
    other = _begun.pop(folder, None)
    _end_all()
    if other is None:
        yield cache(lambda: look(folder))
        return
    try:
        yield cache(lambda: _seen_by(other) or look(folder))
    finally:
        other.end()


def _end_all() -> None:
    while _begun:
        _, mistaken = _begun.popitem()
        mistaken.end()


def _seen_by(other: _Other) -> Look | None:
    """What another process saw; None where it came to grief, whatever the reason."""
    try:
        told = pickle.loads(other.told.read())  # noqa: S301 - our own
    except (EOFError, pickle.UnpicklingError):
        return None
    when, names, key, sizes, changed, touched, texts, problems = told
    errors = [TellapartError(problem, hint=hint) for problem, hint in problems]
    return Look(when, names, key, sizes, changed, touched, texts, errors)


def _tell(seen: Look, file: BinaryIO) -> None:
    problems = [(error.problem, error.hint) for error in seen.problems]
    times = seen.changed, seen.touched
    told = (seen.when, seen.names, seen.key, seen.sizes, *times, seen.texts, problems)
    file.write(pickle.dumps(told, protocol=5))


def _look_into(folder: Path, inside: str, seen: _Seen) -> list[str]:
    """Add what stands in one folder; the folders in it are given back."""
    prefix = f"{inside}/" if inside else ""
    pictures, folders = [], []
    try:
        # By the folder's number: the system need not find the way to it anew for each file.
        with _opened(folder / inside) as number:
            with os.scandir(number) as entries:
                for entry in entries:
                    name = entry.name
                    if name[0] == ".":
                        continue
                    ending = name[name.rfind(".") :]
                    if ending in PICTURE_SUFFIXES or ending.lower() in PICTURE_SUFFIXES:
                        pictures.append(name)
                    elif entry.is_dir(follow_symlinks=False):
                        folders.append(prefix + name)
                    elif ending.lower() == ".txt":
                        seen.texts.append(prefix + name)
            return folders + _look_at(pictures, number, folder, prefix, seen)
    except OSError:
        seen.problems.append(_problem_of(folder / inside))
    return folders


def _look_at(names: list[str], number: int, folder: Path, prefix: str, seen: _Seen) -> list[str]:
    """Add files that are named like pictures; folders that are so named are given back."""
    folders = []
    for name in names:
        try:
            about = os.stat(name, dir_fd=number)
        except OSError:  # a link that leads nowhere
            seen.problems.append(_problem_of(folder / prefix / name))
            continue
        if stat.S_ISREG(about.st_mode):
            seen.names.append(prefix + name)
            seen.sizes.append(about.st_size)
            seen.changed.append(about.st_mtime_ns)
            seen.touched.append(about.st_ctime_ns)
        elif not stat.S_ISDIR(about.st_mode):
            seen.problems.append(_problem_of(folder / prefix / name))
        elif not (folder / prefix / name).is_symlink():
            folders.append(prefix + name)
    return folders


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    number = os.open(folder, os.O_RDONLY)
    try:
        yield number
    finally:
        os.close(number)


def _problem_of(path: Path) -> TellapartError:
    """What the reader of pictures says about a file or folder that it cannot use."""
    for result in find_pictures([path]):
        if isinstance(result, TellapartError):
            return result
        try:
            read_bytes(result)
        except TellapartError as error:
            return error
    return TellapartError(f"{path} could not be read", hint="try again: it has changed in between")
