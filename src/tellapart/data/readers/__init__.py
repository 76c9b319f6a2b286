"""Readers of captioned image sets, one a format; all answer in the same records.

Captions are kept as written, but for space around them, and in their order. No reader looks at the pictures
themselves: that is the work of `tellapart.data.check`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from tellapart.data.examples import Reading
from tellapart.data.readers.coco import read_coco
from tellapart.data.readers.detection import FORMATS, detect
from tellapart.data.readers.flickr import read_flickr
from tellapart.data.readers.folder import read_folder
from tellapart.data.readers.jsonl import read_jsonl
from tellapart.data.readers.karpathy import read_karpathy
from tellapart.data.readers.msrvtt import read_msrvtt
from tellapart.data.readers.table import read_csv
from tellapart.errors import TellapartError
from tellapart.registry import suggest

__all__ = [
    "FORMATS",
    "read_coco",
    "read_csv",
    "read_dataset",
    "read_flickr",
    "read_folder",
    "read_jsonl",
    "read_karpathy",
    "read_msrvtt",
]


class _Reader(Protocol):
    def __call__(self, path: Path, *, images: Path | None = None) -> Reading: ...


_READERS: Mapping[str, _Reader] = {
    "karpathy": read_karpathy,
    "coco": read_coco,
    "flickr": read_flickr,
    "jsonl": read_jsonl,
    "csv": read_csv,
    "msrvtt": read_msrvtt,
}


def read_dataset(
    path: Path,
    *,
    format: str = "auto",  # noqa: A002 - the word that recipes and the command line use
    images: Path | None = None,
) -> Reading:
    """A captioned image set in any of the formats, with all that is wrong with its files.

    Args:
        path: the caption file, or for the format "folder" the folder of pictures.
        format: one of FORMATS, or "auto" to tell it from the name and the content.
        images: the folder of the pictures; where none is given, `images` beside the file if there is such
            a folder, else the file's own.
    """
    if format not in ("auto", *FORMATS):
        raise TellapartError(f"no format is called {format!r}", hint=suggest(format, ("auto", *FORMATS)))
    if images is not None and not images.is_dir():
        raise TellapartError(f"{images} is not a folder", hint="name the folder that holds the pictures")
    found = detect(path) if format == "auto" else format
    if found != "folder":
        return _READERS[found](path, images=images)
    if images is not None:
        raise TellapartError(
            f"{path} is a folder whose pictures stand beside their .txt files, not in {images}",
            hint="leave the images' folder out, or name a caption file",
        )
    return read_folder(path)
