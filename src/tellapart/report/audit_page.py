"""A page of what an audit found, for a person to read: needs no other file and no network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jinja2 import Environment, PackageLoader, select_autoescape

from tellapart.audit_findings import Audit, Confused, Recall, Side
from tellapart.errors import TellapartError
from tellapart.metrics.boilerplate import Phrase
from tellapart.report.charts import Chart, amount, length_chart, recall_chart, spread_chart
from tellapart.report.thumbnails import Thumbnail, thumbnail
from tellapart.storage import new_file

PAIRS = 40  # shown, however many were looked at: the page must stay small enough to send
GROUPS = 12
EACH = 6  # pictures of a group
LINES = 20  # of a list
LARGE, SMALL = 340, 150  # pixels of a thumbnail's longer side


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture on the page."""

    name: str
    small: Thumbnail | None  # None where the file has gone
    caption: str | None = None


@dataclass(frozen=True, slots=True)
class Word:
    """A word that would help, and whether it would be enough."""

    text: str
    is_enough: bool


@dataclass(frozen=True, slots=True)
class Half:
    """One of two pictures that are confused."""

    picture: Picture
    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two pictures that are confused."""

    own: Half
    found: Half
    place: str  # of the own picture, counted from 1
    is_mutual: bool


@dataclass(frozen=True, slots=True)
class Group:
    """Pictures that have something in common."""

    title: str
    count: int
    pictures: tuple[Picture, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """An entry of a list, with a share of the greatest for a bar beside it."""

    text: str
    value: str
    share: float
    remark: str = ""


def write_audit_page(path: Path, found: Audit) -> None:
    """Write the page picture by picture: memory does not grow with their number."""
    pages = Environment(
        loader=PackageLoader("tellapart.report"),
        autoescape=select_autoescape(["html"]),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pieces = pages.get_template("audit.html").generate(
        found=found,
        captions=len(found.material.captions),
        pictures=len(found.material.names),
        nearby=min(found.contest.neighbours, len(found.material.names) - 1),
        rows=_recalls(found),
        charts=_charts(found),
        confused=(_pair(found, pair) for pair in found.confused[:PAIRS]),
        astray=(_pair(found, pair) for pair in found.astray[:PAIRS]),
        shared=_shared(found),
        sharing=sum(map(len, found.wording.shared)),
        generic=_generic(found),
        openers=_phrases(found.wording.openers),
        fragments=_phrases(found.wording.fragments),
        faults=_faults(found),
        twins=_twins(found),
        doubled=sum(map(len, found.near_duplicates)),
        files=_files(found),
        lines=LINES,
        groups=GROUPS,
    )
    # The name of a picture need not be text: what cannot be written is spelt out.
    with (
        new_file(path) as temporary,
        temporary.open("w", encoding="utf-8", errors="backslashreplace") as file,
    ):
        file.writelines(pieces)


def _recalls(found: Audit) -> list[tuple[str, Recall]]:
    """What the captions were held against, and how often they found their pictures there."""
    if found.recalls is None:
        return []
    nearby = min(found.contest.neighbours, len(found.material.names) - 1)
    rows = [
        ("all pictures of the folder", found.recalls.whole),
        ("the same, near-duplicates aside", found.recalls.fair_whole),
        (f"the {nearby} most similar pictures", found.recalls.nearby),
        ("the same, near-duplicates aside", found.recalls.fair_nearby),
    ]
    shown = rows if found.near_duplicates else rows[::2]
    return [(name, recall) for name, recall in shown if recall is not None]


def _charts(found: Audit) -> list[Chart]:
    lengths = np.array([len(captioned.words) for captioned in found.material.captions], np.int64)
    charts = [length_chart(lengths)]
    if found.standing is not None:
        pool = len(found.material.names)
        charts[:0] = [
            recall_chart(found.standing.rank, pool),
            spread_chart(np.exp(found.standing.entropy), pool),
        ]
    return charts


def _picture(found: Audit, place: int, side: int, caption: str | None = None) -> Picture:
    try:
        small = thumbnail(found.material.path(place), side=side)
    except TellapartError:
        small = None  # gone since it was looked at
    return Picture(found.material.names[place], small, caption)


def _pair(found: Audit, pair: Confused) -> Pair:
    assert found.standing is not None
    assert pair.own.caption is not None
    place = f"{found.standing.fair_rank[pair.own.caption] + 1:,}"
    return Pair(_half(found, pair.own), _half(found, pair.found), place, pair.is_mutual)


def _half(found: Audit, side: Side) -> Half:
    caption = None if side.caption is None else found.material.captions[side.caption].caption
    words = tuple(Word(word.word, word.margin > 0) for word in side.words)
    return Half(_picture(found, side.picture, LARGE, caption), words)


def _shared(found: Audit) -> Iterator[Group]:
    captions = found.material.captions
    for rows in found.wording.shared[:GROUPS]:
        pictures = tuple(_picture(found, captions[row].picture, SMALL) for row in rows[:EACH])
        yield Group(captions[rows[0]].caption, len(rows), pictures)


def _twins(found: Audit) -> Iterator[Group]:
    for places in found.near_duplicates[:GROUPS]:
        pictures = tuple(_picture(found, place, SMALL) for place in places[:EACH])
        yield Group("", len(places), pictures)


def _generic(found: Audit) -> list[Line]:
    most = found.fits(found.generic[0]) if found.generic else 1
    return [
        Line(
            found.material.captions[row].caption,
            amount(found.fits(row)),
            found.fits(row) / most,
            f"the judge does not know: {', '.join(found.unknown[row])}" if found.unknown[row] else "",
        )
        for row in found.generic[:LINES]
    ]


def _phrases(phrases: Sequence[Phrase]) -> list[Line]:
    most = max((phrase.share for phrase in phrases), default=1)
    return [
        Line(phrase.text, f"{phrase.captions:,}", phrase.share / most, f"{phrase.share:.1%}")
        for phrase in phrases[:LINES]
    ]


def _faults(found: Audit) -> list[tuple[str, str, list[str]]]:
    """What is wrong with the form of captions: what, how many, and some of them."""
    captions = found.material.captions
    return [
        (title, f"{len(rows):,}", [captions[row].caption for row in rows[:LINES]])
        for title, rows in (
            ("Captions that repeat themselves", found.wording.repeating),
            ("Captions that break off", found.wording.broken_off),
        )
    ]


def _files(found: Audit) -> list[tuple[str, int, list[str]]]:
    """What could not be audited: what, how many, and some of them."""
    material = found.material
    lists = [
        ("Captions left out", [f"{each.image_id}: {each.why}" for each in material.left_out]),
        ("Pictures without a caption", [material.names[place] for place in material.uncaptioned]),
        ("Pictures whose caption has no words", [material.names[place] for place in material.wordless]),
        ("Files that cannot be read", [error.problem for error in found.problems]),
    ]
    return [(title, len(texts), texts[:LINES]) for title, texts in lists if texts]
