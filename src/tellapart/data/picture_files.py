"""Picture files: finding them in folders, and reading their bytes. Nothing here opens a picture."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from tellapart.errors import TellapartError

PICTURE_SUFFIXES: frozenset[str] = frozenset(
    {".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".png", ".apng", ".gif", ".bmp", ".tif", ".tiff", ".webp"}
    | {".avif", ".jp2", ".j2k", ".jpf", ".jpx", ".ppm", ".pgm", ".pbm", ".pnm", ".pfm"}
    | {".heic", ".heif"}
)
"""How the names of pictures end, in small letters: what is taken from a folder.

HEIC cannot be opened, but a telephone's photographs must not be passed over without a word.
"""


def find_pictures(paths: Iterable[Path]) -> Iterator[Path | TellapartError]:
    """Pictures among files and folders, found while one reads them.

    A file is taken as named. A folder gives the pictures in it and in its sub-folders, by name and in sorted
    order; hidden ones and folders behind links are left out. What cannot be searched, or holds no picture,
    stands as an error in its place.
    """
    for path in paths:
        try:
            is_folder = stat.S_ISDIR(path.stat().st_mode)
        except (OSError, ValueError) as error:
            yield _unreachable(path, error)
            continue
        if is_folder:
            yield from _pictures_in(path)
        else:
            yield path


def _pictures_in(folder: Path) -> Iterator[Path | TellapartError]:
    empty = True
    waiting: list[tuple[Path, bool]] = [(folder, True)]
    while waiting:
        path, is_folder = waiting.pop()
        if not is_folder:
            empty = False
            yield path
            continue
        try:
            waiting.extend(_entries(path))
        except OSError as error:
            empty = False
            yield _unreachable(path, error)
    if empty:
        suffixes = " ".join(sorted(PICTURE_SUFFIXES))
        yield TellapartError(f"{folder} has no pictures in it", hint=f"their names should end in {suffixes}")


def _entries(folder: Path) -> list[tuple[Path, bool]]:
    """Sub-folders (true) and pictures (false) of one folder, last name first."""
    with os.scandir(folder) as entries:
        seen = [
            (folder / entry.name, entry.is_dir(follow_symlinks=False))
            for entry in entries
            if not entry.name.startswith(".") and _may_hold_picture(entry)
        ]
    return sorted(seen, reverse=True)


def _may_hold_picture(entry: os.DirEntry[str]) -> bool:
    if entry.is_dir(follow_symlinks=False):
        return True
    if Path(entry.name).suffix.lower() not in PICTURE_SUFFIXES:
        return False
    try:
        return not entry.is_dir()
    except OSError:  # a link that leads nowhere: reading it tells the user
        return True


def read_bytes(path: Path) -> bytes:
    """All bytes of a file. A pipe or device is refused: it may never end."""
    try:
        if stat.S_ISDIR(mode := path.stat().st_mode):
            raise TellapartError(f"{path} is a folder, not a picture", hint="name a picture inside it")
        if not stat.S_ISREG(mode):
            raise TellapartError(f"{path} is not a file", hint="save the picture in a file first")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise _unreachable(path, error) from error


def _unreachable(path: Path, error: OSError | ValueError) -> TellapartError:
    if isinstance(error, FileNotFoundError) and path.is_symlink():
        return TellapartError(
            f"{path} is a link to a file that does not exist", hint="restore what it points to"
        )
    if isinstance(error, FileNotFoundError):
        return TellapartError(f"{path} does not exist", hint="check the spelling of the path")
    if isinstance(error, PermissionError):
        return TellapartError(f"{path} may not be read: permission denied", hint="change its permissions")
    return TellapartError(f"{path} cannot be read: {one_line(error)}", hint="check the path and the disk")


def one_line(error: Exception) -> str:
    """What an error says, without line breaks; what says nothing, by its name."""
    return " ".join(str(error).split()) or type(error).__name__
