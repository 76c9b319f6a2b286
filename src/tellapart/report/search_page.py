"""A page of what a search has found: pictures with their scores and captions; needs no other file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, select_autoescape

from tellapart.errors import TellapartError
from tellapart.report.thumbnails import Thumbnail, thumbnail
from tellapart.searching import Found
from tellapart.storage import new_file


@dataclass(frozen=True, slots=True)
class Card:
    """One picture on the page."""

    rank: int
    picture: Thumbnail
    score: str
    name: str
    captions: tuple[str, ...]
    mark: str


def write_search_page(path: Path, found: Found) -> None:
    """Write the page picture by picture: memory does not grow with their number."""
    pages = Environment(loader=PackageLoader("tellapart.report"), autoescape=select_autoescape(["html"]))
    pieces = pages.get_template("search.html").generate(
        query=found.query.image.name if found.query.image else found.query.text,
        asked=thumbnail(found.query.image) if found.query.image else None,
        found=found,
        count=f"{found.count:,}",
        cards=_cards(found),
        lines=[(f"{line.score:.3f}", line.caption, line.images) for line in found.captions],
    )
    # The name of a picture need not be text: what cannot be written is spelt out.
    with (
        new_file(path) as temporary,
        temporary.open("w", encoding="utf-8", errors="backslashreplace") as file,
    ):
        file.writelines(pieces)


def _cards(found: Found) -> Iterator[Card]:
    for rank, hit in enumerate(found.hits, start=1):
        try:
            picture = thumbnail(hit.path)
        except TellapartError:
            continue  # gone since it was found
        mark = found.mark(hit).replace(f"{found.folder}/", "", 1)
        yield Card(rank, picture, f"{hit.score:.3f}", hit.name, hit.captions, mark)
