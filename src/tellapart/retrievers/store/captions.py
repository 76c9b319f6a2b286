"""Captions of a folder's pictures: from .txt files beside them, or from a caption file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tellapart.errors import TellapartError
from tellapart.retrievers.store.listing import Listing, without_ending


@dataclass(frozen=True, slots=True)
class Captions:
    """Captions by picture.

    Attributes:
        source: the folder or file they are from.
        by_picture: by the picture's path inside the folder; one that is not there, by its id in the file.
        notes: what a person should know of those left out.
    """

    source: Path
    by_picture: dict[str, tuple[str, ...]]
    notes: tuple[str, ...]

    def pictures_by_caption(self) -> dict[str, list[str]]:
        """Each caption once, with all pictures that have it."""
        found: dict[str, list[str]] = {}
        for picture, captions in self.by_picture.items():
            for caption in dict.fromkeys(captions):
                found.setdefault(caption, []).append(picture)
        return found


def read_sidecars(listing: Listing, names: Iterable[str]) -> Captions:
    """What stands in the .txt files beside these pictures, one caption a line."""
    if not listing.texts:
        return Captions(listing.folder, {}, ())
    from tellapart.data.readers.files import read_lines  # its package takes a while

    texts = {without_ending(text): text for text in listing.texts}
    found, bad = {}, []
    for name in names:
        text = texts.get(without_ending(name))
        if text is None:
            continue
        try:
            lines = read_lines(listing.folder / text)
        except TellapartError as error:
            bad.append(error.problem)
            continue
        bad += [f"{problem.where}: {problem.what}" for problem in lines.problems()]
        if captions := tuple(line.strip() for _, line in lines.good()):
            found[name] = captions
    return Captions(listing.folder, found, _left_out(bad))


def read_caption_file(path: Path, listing: Listing) -> Captions:
    """The captions of a file in any format for captioned image sets, most of them of pictures in the folder.

    A picture is known by its path inside the folder or, as `tellapart caption --json` writes it, by that
    without its ending.
    """
    from tellapart.data.readers import read_dataset

    reading = read_dataset(path, images=None if path.is_dir() else listing.folder)
    by_id = {without_ending(name): name for name in listing.names}
    names = set(listing.names)
    found: dict[str, tuple[str, ...]] = {}
    for example in reading.examples:
        inside = os.path.relpath(example.path, listing.folder)
        name = inside if inside in names else by_id.get(example.image_id, example.image_id)
        found[name] = found.get(name, ()) + example.captions
    if not found:
        for problem in reading.problems:
            raise problem.error()
        raise TellapartError(f"{path}: there is no caption in it", hint="name a file of captions")
    bad = [f"{problem.where}: {problem.what}" for problem in reading.problems]
    return Captions(path, found, _left_out(bad))


def _left_out(bad: list[str]) -> tuple[str, ...]:
    if not bad:
        return ()
    more = f"; and {len(bad) - 1} more" if len(bad) > 1 else ""
    return (f"captions left out: {bad[0]}{more}",)
