"""Pictures and captions brought together by the names that their files give them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from tellapart.data.caption_file import Entry
from tellapart.data.picture_files import find_pictures
from tellapart.data.readers.records import stem
from tellapart.errors import TellapartError

T = TypeVar("T")

_COCO_DIGITS = 12  # COCO's pictures are called by their ids with zeros before them


def pictures_of(
    folder: Path, entries: Sequence[Entry], matched: Sequence[Entry] | None = None
) -> tuple[Path, ...]:
    """The picture of each candidate: by the file name that either file gives, else by its id."""
    if not folder.is_dir():
        raise TellapartError(f"{folder} is not a folder", hint="name the folder that holds the pictures")
    pictures = list(find_pictures([folder]))
    for picture in pictures:
        if isinstance(picture, TellapartError):
            raise picture
    there = by_name(
        (path.relative_to(folder).as_posix(), path) for path in pictures if isinstance(path, Path)
    )
    found = []
    for entry, own in zip(entries, matched or entries, strict=True):
        names = [entry.name, own.name, entry.image_id, own.image_id]
        padded = [name.zfill(_COCO_DIGITS) for name in names[2:] if name.isdecimal()]
        path = of_name(entry, [*names, *padded], there)
        if path is None:
            raise TellapartError(
                f"{entry.where}: there is no picture of image {entry.image_id!r} in {folder}",
                hint="name the folder of the pictures, or give their file names as 'image'",
            )
        found.append(path)
    return tuple(found)


def by_name(named: Iterable[tuple[str, T]]) -> list[dict[str, list[T]]]:
    """Things by the spellings of a picture's name, a dict for each spelling, the most exact first."""
    found: list[dict[str, list[T]]] = [{} for _ in _spellings("")]
    for name, thing in named:
        for lookup, spelling in zip(found, _spellings(name), strict=True):
            lookup.setdefault(spelling, []).append(thing)
    return found


def _spellings(name: str) -> tuple[str, str, str, str]:
    """As it is, without its ending, and both without its folders."""
    last = name.rpartition("/")[2]
    return name, stem(name), last, stem(last)


def of_name(entry: Entry, names: Sequence[str], lookups: Sequence[Mapping[str, Sequence[T]]]) -> T | None:
    """The one thing that bears one of these names; two folders may hold pictures of the same name."""
    for level, lookup in enumerate(lookups):
        for name in filter(None, names):
            found = lookup.get(_spellings(name)[level], ())
            if len(found) > 1:
                raise TellapartError(
                    f"{entry.where}: image {entry.image_id!r} may be any of {len(found)} pictures "
                    f"called {_spellings(name)[level]!r}",
                    hint="give candidates, references and pictures names that fit one only",
                )
            if found:
                return found[0]
    return None
