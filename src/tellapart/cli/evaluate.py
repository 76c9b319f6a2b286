"""`tellapart evaluate`: a run's captioner on a split of its data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tellapart.cli.console import counting, say, tell


def evaluate(
    run: Annotated[Path, typer.Argument(help="Run folder.", show_default=False)],
    split: Annotated[str, typer.Option(help="train, val or test.")] = "test",
    beam: Annotated[
        int | None, typer.Option(min=1, help="Width of the beam; 1 is greedy.", show_default="the recipe's")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="The result as JSON.")] = False,
) -> None:
    """Measure perplexity on a split and write the captioner's own captions of it into the run folder.

    Example: tellapart evaluate runs/mrnn-flickr8k --split test --beam 1
    """
    from tellapart.evaluation import evaluate_run

    with counting("evaluating") as watch:
        result = evaluate_run(run, split=split, width=beam, watch=watch)
    if json:
        say(result.to_json())
        return
    tell(f"{result.images} images of {split!r}, {result.captions} captions; {result.vocabulary} words known")
    tell(f"perplexity {result.fit.perplexity:.2f} (end sign counted); next word {result.fit.accuracy:.1%}")
    tell(f"captions: {result.predictions}")
