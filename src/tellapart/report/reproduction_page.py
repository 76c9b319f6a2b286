"""What came out of a reproduction: a page with pictures and plots that needs no other file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader

from tellapart.errors import TellapartError
from tellapart.report.reproduction_charts import Plot, chapter_plots
from tellapart.report.reproduction_markdown import (
    both,
    introduction,
    part_text,
    recipe_lines,
    recipe_texts,
    remarks,
    title,
)
from tellapart.report.thumbnails import Thumbnail, thumbnail
from tellapart.reproduction.findings import Chapter, Exhibit, Findings, Gallery
from tellapart.reproduction.plan import Table
from tellapart.reproduction.verdicts import Judged
from tellapart.storage import new_file

SIDE = 300  # pixels of a thumbnail's longer side
KINDS = {"holds": "yes", "holds in part": "partly", "does not": "no", "not run": "none"}


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a table: the paper's, or ours."""

    label: str
    who: str
    cells: tuple[str, ...]
    is_ours: bool


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table."""

    table: Table
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A claim, as the page shows it."""

    judged: Judged
    kind: str  # of its colour
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Card:
    """A picture with its captions."""

    exhibit: Exhibit
    small: Thumbnail | None  # None where the file has gone


@dataclass(frozen=True, slots=True)
class Wall:
    """Pictures that one rule picked."""

    rule: str
    cards: Iterator[Card]


@dataclass(frozen=True, slots=True)
class Part:
    """A paper."""

    chapter: Chapter
    verdicts: tuple[Verdict, ...]
    sheets: tuple[Sheet, ...]
    walls: tuple[Wall, ...]
    notes: tuple[str, ...]
    plots: tuple[Plot, ...]


def write_reproduction_page(path: Path, found: Findings) -> None:
    """Write the page picture by picture: memory does not grow with their number."""
    pages = Environment(
        loader=PackageLoader("tellapart.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    pieces = pages.get_template("reproduction.html").generate(
        title=title(found),
        introduction=[_plain(line) for line in introduction(found) if line],
        parts=[_part(chapter, found) for chapter in found.chapters],
        made=list({(one.method, one.seed): one for one in found.made}.values()),
        recipes=[_plain(line) for line in recipe_lines(found)],
        texts=recipe_texts(found),
        signatures=found.signatures,
    )
    # The name of a picture need not be text: what cannot be written is spelt out.
    with (
        new_file(path) as temporary,
        temporary.open("w", encoding="utf-8", errors="backslashreplace") as file,
    ):
        file.writelines(pieces)


def _plain(line: str) -> str:
    """Without the marks of Markdown."""
    return line.removeprefix("- ").replace("**", "").replace("`", "")


def _part(chapter: Chapter, found: Findings) -> Part:
    verdicts = tuple(
        Verdict(judged, KINDS[judged.verdict], tuple(map(part_text, judged.parts)))
        for judged in chapter.judged
    )
    sheets = tuple(_sheet(table, found) for table in chapter.paper.tables)
    walls = tuple(map(_wall, chapter.galleries))
    notes = tuple(_plain(line) for line in remarks(chapter, found) if line)
    return Part(chapter, verdicts, sheets, walls, notes, tuple(chapter_plots(chapter, found)))


def _sheet(table: Table, found: Findings) -> Sheet:
    lines = []
    for row in table.rows:
        for number, (who, cells) in enumerate(both(row, table.columns, found)):
            lines.append(Line("" if number else row.label, who, tuple(cells), who != "paper"))
    return Sheet(table, tuple(lines))


def _wall(gallery: Gallery) -> Wall:
    return Wall(gallery.rule, map(_card, gallery.exhibits))


def _card(exhibit: Exhibit) -> Card:
    try:
        return Card(exhibit, thumbnail(exhibit.path, side=SIDE))
    except TellapartError:
        return Card(exhibit, None)  # gone since it was captioned
