"""`tellapart compare`: whether two sets of captions differ by more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from tellapart.cli.console import remark, say, tell, tell_table, watching
from tellapart.cli.score import (
    Df,
    DropRepeats,
    Engine,
    Images,
    Meteor,
    MeteorResources,
    Metrics,
    References,
    SpiceJars,
    Train,
    remarks_of,
    settings_of,
    spoken,
)
from tellapart.errors import TellapartError

if TYPE_CHECKING:
    from tellapart.comparison import Difference


def compare(
    a: Annotated[Path, typer.Argument(help="Captions, or what 'score --json' printed.", show_default=False)],
    b: Annotated[Path, typer.Argument(help="The same of another system.", show_default=False)],
    references: References = None,
    metrics: Metrics = None,
    train: Train = None,
    images: Images = None,
    df: Df = None,
    meteor: Meteor = Engine.python,
    meteor_resources: MeteorResources = None,
    spice_jars: SpiceJars = None,
    drop_repeats: DropRepeats = False,
    draws: Annotated[int, typer.Option(min=100, help="How often chance is asked.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Another seed, other draws.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    """Say by how much B differs from A, with 95 % intervals and a test, both paired by image.

    Example: tellapart compare greedy.jsonl beam.jsonl --references captions_val2017.json --metrics cider
    """
    from tellapart.comparison import compare as compare_scores
    from tellapart.comparison import compare_printed, read_printed
    from tellapart.score_files import read_material
    from tellapart.scoring import choose, measure

    printed = [found for found in map(read_printed, (a, b)) if found is not None]
    if len(printed) == 2:
        _report(compare_printed(*printed), images=printed[0].images, json=json)
        remark("printed results have no values of single images: give the captions themselves for intervals")
        return
    if printed:
        raise TellapartError(
            "one of the two is what 'score --json' printed and the other is not",
            hint="give two files of captions, or two printed results",
        )
    choice = choose(
        metrics,
        settings_of(
            df=df, train=train, meteor=meteor, meteor_resources=meteor_resources, spice_jars=spice_jars
        ),
    )
    results = []
    with watching() as watch:
        for path in (a, b):
            material, remarks = read_material(path, references, train=train, images=images)
            results.append(measure(material, choice, drop_repeats=drop_repeats, remarks=remarks, watch=watch))
        found = compare_scores(results[0], results[1], draws=draws, seed=seed, watch=watch)
    notes = list(dict.fromkeys(note for result in results for note in remarks_of(result)))
    _report(found, images=results[0].images, draws=draws, json=json, notes=notes)
    for note in notes:
        remark(note)


def _report(
    found: list[Difference], *, images: int, json: bool, draws: int = 0, notes: Sequence[str] = ()
) -> None:
    if json:
        differences = {each.name: each.to_json() for each in found}
        say({"differences": differences, "images": images, "draws": draws, "notes": list(notes)})
        return
    _show(found)
    tell(f"{images:,} images" + (f", {draws:,} draws; interval and p are those of B - A" if draws else ""))


def _show(found: list[Difference]) -> None:
    table = Table(box=None, pad_edge=False)
    for column in ("measure", "A", "B", "B - A", "95 % interval", "p"):
        table.add_column(column, justify="left" if column == "measure" else "right", no_wrap=True)
    for each in found:
        has_interval = each.low is not None and each.high is not None
        interval = f"{_signed(each.low)} … {_signed(each.high)}" if has_interval else ""
        p = "" if each.p is None else f"{each.p:.4f}"
        table.add_row(each.name, spoken(each.a), spoken(each.b), _signed(each.value), interval, p)
    tell_table(table)


def _signed(value: float | None) -> str:
    return "" if value is None else ("+" if value > 0 else "") + spoken(value)
