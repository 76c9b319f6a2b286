"""Small pictures inside a page, so that it needs no other file."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from PIL import Image

from tellapart.data.images import read_picture

SIDE = 360  # pixels of a thumbnail's longer side: sharp at the size it is shown


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """A picture as text, and its size."""

    uri: str
    width: int
    height: int


def thumbnail(path: Path, *, side: int = SIDE) -> Thumbnail:
    """A small JPEG of a picture file; a file that is none is an error."""
    picture = read_picture(path, at_least=side)
    picture.thumbnail((side, side))
    return as_text(picture)


def as_text(picture: Image.Image) -> Thumbnail:
    """A picture as a JPEG inside a page."""
    buffer = BytesIO()
    picture.save(buffer, "JPEG", quality=82)
    uri = "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
    return Thumbnail(uri, *picture.size)
