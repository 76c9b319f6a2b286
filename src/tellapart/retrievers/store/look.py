"""One look at a folder: which pictures it holds, and when each last changed. No file is opened.

Asking the system for sizes and times of 100,000 files takes as long as importing all that a search needs: a
second process can look while the first one starts. So that it can begin at once, nothing here imports NumPy.
"""

from __future__ import annotations

import os
import pickle
import stat
import subprocess
import sys
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tellapart.data.picture_files import PICTURE_SUFFIXES, find_pictures, read_bytes
from tellapart.errors import TellapartError


def _numbers() -> array[int]:
    return array("q")


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen, in no particular order."""

    when: int  # the time at which the look began, in nanoseconds
    names: list[str] = field(default_factory=list)  # paths inside the folder
    sizes: array[int] = field(default_factory=_numbers)
    changed: array[int] = field(default_factory=_numbers)  # time of the last change, in nanoseconds
    texts: list[str] = field(default_factory=list)  # the .txt files there
    problems: list[TellapartError] = field(default_factory=list)  # what cannot be looked at


def look(folder: Path) -> Look:
    """Look through a folder; one that is none, or holds no picture, is an error."""
    if not folder.is_dir():
        there = "is not a folder" if folder.exists() else "does not exist"
        raise TellapartError(f"{folder} {there}", hint="name the folder that holds the pictures")
    seen = Look(time.time_ns())
    folders = [""]
    while folders:
        folders += _look_into(folder, folders.pop(), seen)
    if not seen.names and not seen.problems:
        raise _problem_of(folder)
    return seen


@contextmanager
def looking_ahead(folder: Path) -> Iterator[Callable[[], Look]]:
    """Let another process look at the folder meanwhile; what is given waits for it and says what it saw."""
    try:
        # Without -P a file of the folder one happens to be in could pass for a part of Python.
        command = [sys.executable, "-P", "-m", "tellapart.retrievers.store.look", str(folder)]
        other = subprocess.Popen(  # noqa: S603 - ourselves
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except OSError:
        yield lambda: look(folder)
        return
    with other:
        try:
            yield cache(lambda: _seen_by(other) or look(folder))
        finally:
            other.kill()


def _seen_by(other: subprocess.Popen[bytes]) -> Look | None:
    """What another process saw; None where it came to grief, whatever the reason."""
    data, _ = other.communicate()
    if other.returncode or not data:
        return None
    when, names, sizes, changed, texts, problems = pickle.loads(data)  # noqa: S301 - from our own process
    errors = [TellapartError(problem, hint=hint) for problem, hint in problems]
    return Look(when, names, sizes, changed, texts, errors)


def _tell(folder: Path) -> None:
    """Look on behalf of another process."""
    seen = look(folder)
    problems = [(error.problem, error.hint) for error in seen.problems]
    told = (seen.when, seen.names, seen.sizes, seen.changed, seen.texts, problems)
    sys.stdout.buffer.write(pickle.dumps(told, protocol=5))


def _look_into(folder: Path, inside: str, seen: Look) -> list[str]:
    """Add what stands in one folder; the folders in it are given back."""
    prefix = f"{inside}/" if inside else ""
    folders = []
    try:
        with os.scandir(f"{folder}/{inside}") as entries:
            for entry in entries:
                name = entry.name
                if name[0] == ".":
                    continue
                ending = name[name.rfind(".") :]
                if ending in PICTURE_SUFFIXES or ending.lower() in PICTURE_SUFFIXES:
                    if _is_folder(entry, prefix + name, seen):
                        folders.append(prefix + name)
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(prefix + name)
                elif ending.lower() == ".txt":
                    seen.texts.append(prefix + name)
    except OSError:
        seen.problems.append(_problem_of(folder / inside))
    return folders


def _is_folder(entry: os.DirEntry[str], name: str, seen: Look) -> bool:
    """Add what is named like a picture, unless it is a folder."""
    try:
        about = entry.stat()
    except OSError:  # a link that leads nowhere
        seen.problems.append(_problem_of(Path(entry.path)))
        return False
    if stat.S_ISREG(about.st_mode):
        seen.names.append(name)
        seen.sizes.append(about.st_size)
        seen.changed.append(about.st_mtime_ns)
    elif not stat.S_ISDIR(about.st_mode):
        seen.problems.append(_problem_of(Path(entry.path)))
    return entry.is_dir(follow_symlinks=False)


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


if __name__ == "__main__":
    try:
        _tell(Path(sys.argv[1]))
    except TellapartError:
        sys.exit(1)  # the one who asked will find the same
