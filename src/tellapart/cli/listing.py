"""`tellapart list`: what can be named in a recipe or on the command line."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from tellapart.captioners.parts import CAPTIONERS
from tellapart.captioners.settings.kinds import CaptionerPart
from tellapart.cli.console import say, tell_table
from tellapart.data.readers import FORMATS
from tellapart.data.text import PRESETS
from tellapart.extras import in_short
from tellapart.metrics.parts import METRICS
from tellapart.objectives.parts import OBJECTIVES
from tellapart.recipe import built_in_recipes
from tellapart.registry import Registry
from tellapart.retrievers.settings import RANKINGS, RETRIEVERS
from tellapart.vision.parts import ENCODERS


class Kind(StrEnum):
    """What can be listed."""

    captioners = "captioners"
    objectives = "objectives"
    encoders = "encoders"
    retrievers = "retrievers"
    rankings = "rankings"
    metrics = "metrics"
    recipes = "recipes"
    formats = "formats"
    presets = "presets"


REGISTRIES: dict[Kind, Registry[Any]] = {
    Kind.captioners: CAPTIONERS,
    Kind.objectives: OBJECTIVES,
    Kind.encoders: ENCODERS,
    Kind.retrievers: RETRIEVERS,
    Kind.rankings: RANKINGS,
    Kind.metrics: METRICS,
}


_READY: list[dict[str, object]] = [
    {"name": "judge", "what": "a trained dual encoder that ships: to judge captions", "paper": ""},
    {
        "name": "reranker",
        "what": "another, trained apart from it: to choose captions and search",
        "paper": "",
    },
    {"name": "FOLDER", "what": "a dual encoder or the run that trained it", "paper": ""},
    {"name": "clip:MODEL", "what": "CLIP from a folder or by hub name", "paper": "Radford et al. 2021"},
    {"name": "siglip:MODEL", "what": "SigLIP from a folder or by hub name", "paper": "Zhai et al. 2023"},
    {"name": "likelihood", "what": "the captioner's own: for self-retrieve", "paper": "Dai & Lin 2017"},
]
"""Retrievers that are not built from a recipe but named where one is asked for."""


def list_parts(
    kind: Annotated[Kind, typer.Argument(help="What to list.", show_default=False)],
    json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """List the parts there are.

    Example: tellapart list encoders
    """
    rows = _rows(kind)
    if json:
        say(rows)
        return
    table = Table(box=None, pad_edge=False)
    for column in rows[0]:
        table.add_column(column, overflow="fold", no_wrap=column in ("name", "parameters"))
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row.values()))
    tell_table(table)


def _rows(kind: Kind) -> list[dict[str, object]]:
    if kind is Kind.captioners:
        return _captioners()
    if kind in REGISTRIES:
        parts = [REGISTRIES[kind].get(name) for name in REGISTRIES[kind].names()]
        rows: list[dict[str, object]] = [
            {"name": part.name, "what": part.summary, "paper": part.paper} for part in parts
        ]
        return rows + (_READY if kind is Kind.retrievers else [])
    if kind is Kind.presets:
        return [{"name": name, **rules.model_dump()} for name, rules in PRESETS.items()]
    return [{"name": name} for name in (built_in_recipes() if kind is Kind.recipes else FORMATS)]


def _captioners() -> list[dict[str, object]]:
    """With their parameters: of the default settings, 10,000 words and the default encoder."""
    parts = [CAPTIONERS.get(name) for name in CAPTIONERS.names()]
    return [
        {
            "name": part.name,
            "what": part.summary,
            "parameters": _parameters(part),
            "presets": sorted(part.presets),
            "paper": part.paper,
        }
        for part in parts
    ]


def _cell(value: object) -> str:
    """A value as a table shows it."""
    if value is None:
        return "checkpoint"
    if isinstance(value, list):
        return ", ".join(value)
    return f"{value:,}" if type(value) is int else str(value)


def _parameters(part: CaptionerPart) -> int | str | None:
    from tellapart.captioners.size import count_parameters

    try:
        return count_parameters(part)
    except Exception as error:  # the code may be another package's: it may raise anything
        return f"cannot be built: {in_short(error)}"
