"""Files that are either whole or not there, and the one folder for what can be made again."""

from __future__ import annotations

import ctypes
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from platformdirs import user_cache_path

_LONGEST = 255  # bytes of a file's name, on all systems that people use
_TEMPORARY = re.compile(r"\..*\.[0-9a-f]{16}\.part", re.DOTALL)
_ABANDONED = 3600  # seconds after which nobody can still be writing a temporary file


def cache_folder() -> Path:
    """Where features and exported encoders are kept: TELLAPART_CACHE, or the user's cache folder."""
    chosen = os.environ.get("TELLAPART_CACHE")
    return Path(chosen) if chosen else user_cache_path("tellapart")


@contextmanager
def new_file(path: Path, *, lasting: bool = True) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place when the block ends without an error.

    It is whole after a kill at any moment; if lasting, after a loss of power too, for which the disk takes
    some milliseconds.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _beside(path, "part")
    temporary.touch(exist_ok=False)
    try:
        yield temporary
        if lasting:
            _flush(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """A temporary folder beside `path` that replaces it when the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = _beside(path, "part")
    temporary.mkdir()
    try:
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                _flush(file)
        if not path.exists():
            temporary.rename(path)
        elif not _exchange(temporary, path):
            # A rename cannot replace a folder that holds files: the old one steps aside first.
            aside = _beside(path, "old")
            path.rename(aside)
            temporary.rename(path)
            shutil.rmtree(aside)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    """Write a whole text file, or leave what was there."""
    with new_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def is_abandoned(entry: os.DirEntry[str]) -> bool:
    """Whether a file is what a killed writer of `new_file` has left."""
    if _TEMPORARY.fullmatch(entry.name) is None:
        return False
    try:
        return time.time() - entry.stat(follow_symlinks=False).st_mtime > _ABANDONED
    except OSError:  # its writer has just finished
        return False


def left_over(path: Path) -> list[Path]:
    """What writers of this file have left who were killed; only its one writer may ask."""
    start = _start(path)
    return [
        found
        for found in path.parent.iterdir()
        if found.name.startswith(start) and _TEMPORARY.fullmatch(found.name) is not None
    ]


def _beside(path: Path, ending: str) -> Path:
    # Not by `tempfile`, whose files only their owner may read: the umask that would tell what to change that
    # to can be asked for only by changing it, for all threads at once.
    return path.parent / f"{_start(path)}{secrets.token_hex(8)}.{ending}"


def _start(path: Path) -> str:
    """How the names of temporary files begin: with the file's own, as far as there is room for it."""
    room = _LONGEST - len("..") - 16 - len(".part")
    name = os.fsencode(path.name)
    return f".{path.name if len(name) <= room else name[:room].decode('utf-8', 'ignore')}."


def _exchange(one: Path, other: Path) -> bool:
    """Let two paths change places in one step, where the system can (Linux); say whether it did."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    here, exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE
    return rename is not None and rename(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0


def _flush(file: Path) -> None:
    with file.open("rb") as handle:
        os.fsync(handle.fileno())
