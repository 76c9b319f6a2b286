"""Captions by anyone and a folder of pictures brought together, and what could not be.

Nothing is dropped without a word: captions without a picture, pictures without a caption, and pictures that
cannot be read are all named.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tellapart.data.caption_file import Entry
from tellapart.data.named_pictures import by_name, of_name
from tellapart.data.text import TextRules, words
from tellapart.errors import TellapartError

WHOLE = TextRules(keep_emoji=True, max_words=1_000_000)
"""A caption in lower case, without punctuation, however long it is."""

_COCO_DIGITS = 12  # COCO's pictures are called by their ids with zeros before them


@dataclass(frozen=True, slots=True)
class Captioned:
    """A picture and its caption."""

    image_id: str
    picture: int  # its place among the pictures of the folder
    caption: str
    words: tuple[str, ...]
    others: tuple[str, ...] = ()  # captions that the file has of it besides


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A caption that cannot be held against pictures."""

    image_id: str
    where: str  # in the file
    why: str

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {"image_id": self.image_id, "where": self.where, "why": self.why}


@dataclass(frozen=True, slots=True)
class CaptionedFolder:
    """The pictures of a folder, and the captions of some of them.

    Attributes:
        folder: where the pictures are.
        names: of all pictures that can be seen, as paths inside the folder.
        captions: what is said of them, in the order of the file.
        left_out: captions without a picture that can be seen.
        wordless: places of pictures whose caption has no word.
        uncaptioned: places of pictures of which nothing is said at all.
    """

    folder: Path
    names: tuple[str, ...]
    captions: tuple[Captioned, ...]
    left_out: tuple[LeftOut, ...]
    wordless: tuple[int, ...]
    uncaptioned: tuple[int, ...]

    def path(self, picture: int) -> Path:
        """The file of a picture."""
        return self.folder / self.names[picture]


def bring_together(
    entries: Sequence[Entry], folder: Path, names: Sequence[str], unseen: Iterable[str], *, beside: Path
) -> CaptionedFolder:
    """Find the picture of each caption: by the file name that is given with it, else by its id.

    Args:
        entries: images with their captions; of several captions of one, the first counts.
        folder: where the pictures are.
        names: of the pictures that can be seen, as paths inside the folder.
        unseen: of those that are there and cannot be.
        beside: folder of the caption file, from which it may name the pictures.
    """
    places = {name: place for place, name in enumerate(names)}
    there = by_name((name, name) for name in (*names, *unseen))
    captions, left_out, wordless = [], [], []
    for entry in entries:
        name = _picture_of(entry, there, folder, beside)
        if isinstance(name, TellapartError) or name not in places:
            why = name.problem if isinstance(name, TellapartError) else f"{folder / name} cannot be read"
            left_out.append(LeftOut(entry.image_id, entry.where, why))
            continue
        first, *others = entry.captions
        found = tuple(words(first, WHOLE))
        if found:
            captions.append(Captioned(entry.image_id, places[name], first, found, tuple(others)))
        else:
            wordless.append(places[name])
    spoken_of = {captioned.picture for captioned in captions}
    wordless = sorted(set(wordless) - spoken_of)
    silent = set(range(len(names))) - spoken_of - set(wordless)
    return CaptionedFolder(
        folder, tuple(names), tuple(captions), tuple(left_out), tuple(wordless), tuple(sorted(silent))
    )


def _picture_of(
    entry: Entry, there: Sequence[Mapping[str, Sequence[str]]], folder: Path, beside: Path
) -> str | TellapartError:
    names = [entry.name, entry.image_id]
    if entry.image_id.isdecimal():
        names.append(entry.image_id.zfill(_COCO_DIGITS))
    if entry.name:
        names += [os.path.relpath(start / entry.name, folder) for start in (Path(), beside)]
    try:
        found = of_name(entry, names, there)
    except TellapartError as error:  # several pictures of that name
        return error
    if found is None:
        return TellapartError(
            f"there is no picture of image {entry.image_id!r} in {folder}",
            hint="name the folder of the pictures, or give their file names as 'image'",
        )
    return found
