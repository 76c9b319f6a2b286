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
from pathlib import Path
from typing import Any

from tellapart.data.picture_files import PICTURE_SUFFIXES, find_pictures, read_bytes
from tellapart.errors import TellapartError


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen, pictures in the order in which `find_pictures` gives them."""

    names: list[str]  # paths inside the folder
    sizes: array[int]
    changed: array[int]  # time of the last change, in nanoseconds
    texts: list[str]  # the .txt files there
    problems: list[TellapartError]  # what cannot be looked at
    when: int  # the time at which the look began, in nanoseconds


@dataclass(frozen=True, slots=True)
class _Found:
    names: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    problems: list[TellapartError] = field(default_factory=list)


def look(folder: Path) -> Look:
    """Look through a folder; one that is none, or holds no picture, is an error."""
    if not folder.is_dir():
        there = "is not a folder" if folder.exists() else "does not exist"
        raise TellapartError(f"{folder} {there}", hint="name the folder that holds the pictures")
    when = time.time_ns()
    found = _Found(folders=[""])
    is_flat = True
    while found.folders:
        inside = found.folders.pop()
        is_flat = is_flat and not inside
        _look_into(folder, inside, found)
    if not found.names and not found.problems:
        raise _problem_of(folder)
    # Folder by folder: as mere letters, "a b/1.jpg" would stand before "a/1.jpg".
    keys: list[Any] = found.names if is_flat else [name.split("/") for name in found.names]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return Look(
        [found.names[place] for place in order],
        array("q", [found.sizes[place] for place in order]),
        array("q", [found.changed[place] for place in order]),
        found.texts,
        found.problems,
        when,
    )


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
            yield lambda: _seen_by(other) or look(folder)
        finally:
            other.kill()


def _seen_by(other: subprocess.Popen[bytes]) -> Look | None:
    """What another process saw; None where it came to grief, whatever the reason."""
    data, _ = other.communicate()
    if other.returncode or not data:
        return None
    names, sizes, changed, texts, problems, when = pickle.loads(data)  # noqa: S301 - our own process's
    errors = [TellapartError(problem, hint=hint) for problem, hint in problems]
    return Look(names, array("q", sizes), array("q", changed), texts, errors, when)


def _tell(folder: Path) -> None:
    """Look on behalf of another process."""
    seen = look(folder)
    problems = [(error.problem, error.hint) for error in seen.problems]
    told = (seen.names, seen.sizes.tobytes(), seen.changed.tobytes(), seen.texts, problems, seen.when)
    sys.stdout.buffer.write(pickle.dumps(told))


def _look_into(folder: Path, inside: str, found: _Found) -> None:
    """Add what stands in one folder."""
    prefix = f"{inside}/" if inside else ""
    try:
        with os.scandir(f"{folder}/{inside}") as entries:
            for entry in entries:
                name = entry.name
                if name[0] == ".":
                    continue
                ending = name[name.rfind(".") :]
                if ending in PICTURE_SUFFIXES or ending.lower() in PICTURE_SUFFIXES:
                    _look_at(entry, prefix + name, found)
                elif entry.is_dir(follow_symlinks=False):
                    found.folders.append(prefix + name)
                elif ending.lower() == ".txt":
                    found.texts.append(prefix + name)
    except OSError:
        found.problems.append(_problem_of(folder / inside))


def _look_at(entry: os.DirEntry[str], name: str, found: _Found) -> None:
    """Add what is named like a picture."""
    try:
        about = entry.stat()
    except OSError:  # a link that leads nowhere
        found.problems.append(_problem_of(Path(entry.path)))
        return
    if stat.S_ISREG(about.st_mode):
        found.names.append(name)
        found.sizes.append(about.st_size)
        found.changed.append(about.st_mtime_ns)
    elif not stat.S_ISDIR(about.st_mode):
        found.problems.append(_problem_of(Path(entry.path)))
    elif entry.is_dir(follow_symlinks=False):
        found.folders.append(name)


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
