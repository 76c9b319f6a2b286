"""Captions that were written about pictures, with the pictures at hand, and who wrote them if one knows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tellapart.captioners.folder import read_settings
from tellapart.data.caption_file import Entry, read_candidates
from tellapart.data.readers.files import read_lines
from tellapart.errors import TellapartError
from tellapart.run import Run
from tellapart.score_files import read_material

_HINT = "name the folder of the pictures with --images"


@dataclass(frozen=True, slots=True)
class WrittenCaptions:
    """One caption a picture; all in the same order."""

    ids: tuple[str, ...]
    captions: tuple[str, ...]
    pictures: tuple[Path, ...]
    captioner: str = ""  # as it is called on the command line; "" where nobody says


def read_written(
    source: Path, *, split: str = "test", beam: int | None = None, images: Path | None = None
) -> WrittenCaptions:
    """The captions of a predictions file, or those that a run wrote of a split.

    Args:
        source: any file of candidates, or the folder of a run.
        split: of the run's data.
        beam: the width by which the run wrote them; the captioner's own if None.
        images: folder of the pictures; where none is given, the file itself says where they are.
    """
    run = Run(source)
    path = source
    if run.recipe.exists():
        width = beam or read_settings(run.captioner).width
        path = run.predictions(split, width=width)
        if not path.exists():
            raise TellapartError(
                f"{source}: the run has written no captions of {split!r} by a beam of {width}",
                hint=f"let it: tellapart evaluate {source} --split {split} --beam {width}",
            )
    material, _ = read_material(path, images=images)
    pictures = material.pictures or _named(read_candidates(path).entries, path)
    _expect_there(pictures, material.ids)
    captioner = str(source) if path is not source else captioner_of(path)
    return WrittenCaptions(material.ids, material.captions, tuple(pictures), captioner)


def _named(entries: Sequence[Entry], path: Path) -> list[Path]:
    """The picture of each caption as the file names it: from here, else from where the file is."""
    found = []
    for entry in entries:
        if not entry.name:
            raise TellapartError(f"{entry.where}: image {entry.image_id!r} names no picture", hint=_HINT)
        here, beside = Path(entry.name), path.parent / entry.name
        found.append(beside if beside.exists() and not here.exists() else here)
    return found


def _expect_there(pictures: Sequence[Path], ids: Sequence[str]) -> None:
    missing = [
        (picture, image_id) for picture, image_id in zip(pictures, ids, strict=True) if not picture.is_file()
    ]
    if missing:
        picture, image_id = missing[0]
        raise TellapartError(
            f"{picture}, the picture of image {image_id!r}, does not exist "
            f"({len(missing)} of {len(pictures)} do not)",
            hint=f"restore it, or {_HINT}",
        )


def captioner_of(path: Path) -> str:
    """Who wrote a JSONL of predictions, where every line of it says the same."""
    if path.is_dir() or path.suffix.lower() not in (".jsonl", ".ndjson"):
        return ""
    named = [json.loads(text).get("model") for _, text in read_lines(path).good()]
    return named[0] if isinstance(named[0], str) and named.count(named[0]) == len(named) else ""
