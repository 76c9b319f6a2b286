"""`tellapart correlate`: how well measures agree with people."""

from __future__ import annotations

import math
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from tellapart.cli.console import remark, say, tell, tell_table, watching
from tellapart.cli.score import Engine, Images, Meteor, MeteorResources, Metrics, SpiceJars, settings_of
from tellapart.errors import TellapartError

if TYPE_CHECKING:
    from tellapart.judgement import Agreement, Panel, Tau
    from tellapart.metrics.material import Watch
    from tellapart.metrics.score import Score


class Variant(StrEnum):
    """Kendall's tau for ties on both sides, or for few levels."""

    b = "b"
    c = "c"


Without = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Number of the caption that no image keeps as a reference.",
        show_default="2 for the crowd's file",
    ),
]


By = Annotated[
    list[str] | None,
    typer.Option(
        help="Also the cosine by a retriever: judge, reranker, a folder, clip:…", show_default=False
    ),
]


def correlate(
    judgements: Annotated[
        Path,
        typer.Argument(
            help="ExpertAnnotations.txt, CrowdFlowerAnnotations.txt or JSONL.", show_default=False
        ),
    ],
    references: Annotated[
        Path, typer.Option("--references", "-r", help="Captions of the judged images, in their order.")
    ],
    metrics: Metrics = "bleu,rouge,cider,meteor",
    by: By = None,
    images: Images = None,
    tau: Annotated[
        Variant | None, typer.Option(help="Kendall's tau-b or tau-c.", show_default="as the literature")
    ] = None,
    without: Without = None,
    draws: Annotated[int, typer.Option(min=0, help="Draws of images, for intervals.")] = 0,
    meteor: Meteor = Engine.python,
    meteor_resources: MeteorResources = None,
    spice_jars: SpiceJars = None,
    json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    """Compute Kendall's tau of each measure with human ratings of captions.

    Example: tellapart correlate flickr8k/ExpertAnnotations.txt --references flickr8k/captions.txt
    """
    _expect_judges(by, images)
    from tellapart.judgement import correlate as agree
    from tellapart.judgement import read_panel, usual_tau
    from tellapart.scoring import choose

    choice = choose(
        metrics, settings_of(meteor=meteor, meteor_resources=meteor_resources, spice_jars=spice_jars)
    )
    usual, left_out = usual_tau(judgements)
    variant: Tau = usual if tau is None else tau.value
    panel = read_panel(judgements, references, without=left_out if without is None else without)
    with watching() as watch:
        others = [_fits(name, panel, images, watch) for name in by or () if images]
        found, remarks = agree(panel, choice, tau=variant, others=others, draws=draws, watch=watch)
    if json:
        say(
            {
                "tau": {each.name: each.to_json() for each in found},
                "variant": variant,
                "pairs": len(panel.judgements),
                "ratings": panel.ratings,
                "left_out": panel.own,
                "notes": list(remarks),
            }
        )
    else:
        _show(found, variant)
        tell(f"{len(panel.judgements):,} pairs, {panel.ratings:,} ratings")
    for text in remarks:
        remark(text)
    if panel.own:
        remark(f"{panel.own} judged captions were references of their image: left out")


def _expect_judges(by: list[str] | None, images: Path | None) -> None:
    if by:
        from tellapart.judges import expect_judges

        expect_judges(by)
        if images is None:
            raise TellapartError("--by needs the pictures", hint="name their folder with --images")


def _fits(name: str, panel: Panel, images: Path, watch: Watch) -> Score:
    """What a retriever thinks of each judged caption."""
    from tellapart.data.named_pictures import pictures_of
    from tellapart.judges import fits
    from tellapart.retrievers.loading import load_retriever

    return fits(
        load_retriever(name),
        [judgement.caption for judgement in panel.judgements],
        pictures_of(images, panel.images),
        watch=lambda done, total: watch(f"{name} looks at the pictures", done, total),
    )


def _show(found: list[Agreement], variant: str) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("measure", no_wrap=True)
    table.add_column(f"tau-{variant} x 100", justify="right", no_wrap=True)
    has_intervals = any(each.low is not None for each in found)
    if has_intervals:
        table.add_column("95 % interval", justify="right", no_wrap=True)
    for each in found:
        interval = [f"{_spoken(each.low)} … {_spoken(each.high)}"] if has_intervals else []
        table.add_row(each.name, _spoken(each.tau), *interval)
    tell_table(table)


def _spoken(tau: float | None) -> str:
    return "-" if tau is None or not math.isfinite(tau) else f"{100 * tau:.1f}"
