"""A page of pictures and captions that needs no other file and no network."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TextIO

from jinja2 import Environment, PackageLoader, select_autoescape
from PIL import Image

from tellapart.captioning import Captioned
from tellapart.data.images import read_picture
from tellapart.errors import TellapartError
from tellapart.storage import new_file

SIDE = 360  # pixels of a thumbnail's longer side: sharp at the size it is shown


@dataclass(frozen=True, slots=True)
class Card:
    """One picture on the page."""

    picture: str  # data URI
    width: int
    height: int
    name: str
    caption: str
    others: tuple[str, ...]


def write_gallery(path: Path, results: Iterable[Captioned], *, title: str, model: str) -> None:
    """Write the page as the captions come: memory does not grow with their number."""
    pages = Environment(loader=PackageLoader("tellapart.report"), autoescape=select_autoescape(["html"]))
    template = pages.get_template("gallery.html")
    with new_file(path) as temporary, _text_file(temporary) as file:
        for piece in template.generate(title=title, model=model, cards=_cards(results)):
            file.write(piece)


def _text_file(path: Path) -> TextIO:
    # The name of a picture need not be text: what cannot be written is spelt out.
    return path.open("w", encoding="utf-8", errors="backslashreplace")


def _cards(results: Iterable[Captioned]) -> Iterator[Card]:
    for result in results:
        try:
            picture = read_picture(result.image, at_least=SIDE)
        except TellapartError:
            continue  # gone since it was captioned
        picture.thumbnail((SIDE, SIDE))
        others = tuple(candidate.caption for candidate in result.candidates[1:])
        yield Card(_data_uri(picture), *picture.size, result.image.name, result.caption, others)


def _data_uri(picture: Image.Image) -> str:
    buffer = BytesIO()
    picture.save(buffer, "JPEG", quality=82)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
