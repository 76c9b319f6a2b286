"""A page of captions that found another picture than their own: needs no other file and no network."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from jinja2 import Environment, PackageLoader, select_autoescape

from tellapart.data.images import read_picture
from tellapart.errors import TellapartError
from tellapart.picture_pools import Pool
from tellapart.self_retrieval import Finding, Verdict
from tellapart.storage import new_file

GROUPS = ("", "-most-crowded", "-least-crowded")
SHOWN = 60  # captions of a judge
SIDE = 360  # pixels of a thumbnail's longer side: sharp at the size it is shown


@dataclass(frozen=True, slots=True)
class Card:
    """One caption, its own picture, and the one it found."""

    image_id: str
    caption: str
    place: int  # of its own picture, counted from 1
    own: str  # data URI; "" where the file has gone
    score: str
    other: str
    other_score: str
    other_name: str


@dataclass(frozen=True, slots=True)
class Part:
    """What one judge said."""

    judge: str
    identity: str
    cautions: tuple[str, ...]
    values: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]  # measure; value and interval of each group
    missed: int
    shown: int
    cards: Iterator[Card]


def write_self_retrieval(path: Path, verdicts: Sequence[Verdict], pool: Pool) -> None:
    """Write the page, picture by picture: memory does not grow with their number."""
    pages = Environment(loader=PackageLoader("tellapart.report"), autoescape=select_autoescape(["html"]))
    template = pages.get_template("self_retrieval.html")
    pieces = template.generate(
        captions=f"{len(pool.ids):,}", size=f"{pool.size:,}", choice=pool.name, parts=map(_part, verdicts)
    )
    # The name of a picture need not be text: what cannot be written is spelt out.
    with (
        new_file(path) as temporary,
        temporary.open("w", encoding="utf-8", errors="backslashreplace") as file,
    ):
        file.writelines(pieces)


def _part(verdict: Verdict) -> Part:
    missed = sorted(
        (finding for finding in verdict.findings if finding.rank > 0), key=lambda finding: -finding.rank
    )
    values = tuple(
        (name, tuple(verdict.spoken(name + group) for group in GROUPS))
        for name in verdict.scores
        if not name.endswith(GROUPS[1:])
    )
    judge, shown = verdict.judge, missed[:SHOWN]
    cards = map(_card, shown)
    return Part(judge.name, judge.identity, verdict.cautions, values, len(missed), len(shown), cards)


def _card(finding: Finding) -> Card:
    return Card(
        finding.image_id,
        finding.caption,
        finding.rank + 1,
        _thumbnail(finding.picture),
        f"{finding.score:.3f}",
        _thumbnail(finding.found),
        f"{finding.found_score:.3f}",
        finding.found.name,
    )


def _thumbnail(path: Path) -> str:
    try:
        picture = read_picture(path, at_least=SIDE)
    except TellapartError:
        return ""  # gone since it was looked at
    picture.thumbnail((SIDE, SIDE))
    buffer = BytesIO()
    picture.save(buffer, "JPEG", quality=82)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
