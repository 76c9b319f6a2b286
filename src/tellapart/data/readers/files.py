"""Caption files as bytes and lines, packed by gzip or not."""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass
from pathlib import Path

from tellapart.data.examples import Problem
from tellapart.errors import TellapartError

GZIP = b"\x1f\x8b"
NOT_UTF8 = "save the file as UTF-8"

_START = 1 << 16


def read_file(path: Path) -> bytes:
    """All bytes of a caption file, unpacked where it is a gzip file, whatever its name."""
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if data.startswith(GZIP) else data
    except (EOFError, zlib.error, OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def read_start(path: Path) -> str:
    """How a caption file begins: enough to tell its format."""
    try:
        with path.open("rb") as file:
            is_packed = file.read(len(GZIP)) == GZIP
        with gzip.open(path) if is_packed else path.open("rb") as file:
            return file.read(_START).decode("utf-8-sig", "replace")
    except (EOFError, zlib.error, OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> TellapartError:
    if isinstance(error, FileNotFoundError):
        return TellapartError(f"{path} does not exist", hint="check the spelling of the path")
    if isinstance(error, EOFError | zlib.error | gzip.BadGzipFile):
        return TellapartError(f"{path} is a damaged gzip file: {error}", hint="copy or download it again")
    reason = error.strerror if isinstance(error, OSError) else error
    return TellapartError(f"{path} cannot be read: {reason}", hint="name a file that may be read")


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a text file, and the numbers of those that are not UTF-8 (counted from 1)."""

    name: str
    texts: list[str]  # undecodable bytes stand as lone surrogates, so that quotes and commas stay in place
    broken: frozenset[int]

    def where(self, number: int) -> str:
        """How messages call a line."""
        return f"{self.name}:{number}"

    def problems(self) -> list[Problem]:
        """One for each broken line."""
        return [
            Problem(self.where(number), "the line is not UTF-8 text", NOT_UTF8)
            for number in sorted(self.broken)
        ]

    def good(self) -> list[tuple[int, str]]:
        """Number and text of each line that is neither broken nor blank."""
        return [
            (number, text)
            for number, text in enumerate(self.texts, 1)
            if number not in self.broken and text.strip()
        ]


def read_lines(path: Path) -> Lines:
    """The lines of a text file; a byte-order mark and carriage returns are left out."""
    data = read_file(path).removeprefix(b"\xef\xbb\xbf")
    # Not splitlines(): that also breaks at separators which may stand inside a caption.
    texts = [line.removesuffix("\r") for line in data.decode("utf-8", "surrogateescape").split("\n")]
    return Lines(str(path), texts, frozenset() if _is_utf8(data) else _broken(texts))


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _broken(texts: list[str]) -> frozenset[int]:
    return frozenset(number for number, text in enumerate(texts, 1) if not is_writable(text))


def is_writable(text: str) -> bool:
    """Whether a text can be written as UTF-8: it holds no half of a surrogate pair."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
