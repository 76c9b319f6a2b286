"""`tellapart evaluate`: a run's captioner on a split of its data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tellapart.cli.console import counting, say, tell
from tellapart.cli.options import LengthPenalty
from tellapart.errors import TellapartError


def evaluate(
    run: Annotated[
        Path, typer.Argument(help="Run folder; with --recipe, any captioner's.", show_default=False)
    ],
    split: Annotated[str, typer.Option(help="train, val, test, or held-out of an extra source.")] = "test",
    beam: Annotated[
        int | None, typer.Option(min=1, help="Width of the beam; 1 is greedy.", show_default="the recipe's")
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(help="Measure on the data of this recipe instead.", show_default="the run's own"),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a value of --recipe: section.key=value.", show_default=False),
    ] = None,
    length_penalty: LengthPenalty = None,
    json: Annotated[bool, typer.Option("--json", help="The result as JSON.")] = False,
) -> None:
    """Measure perplexity on a split and write the captioner's own captions of it into the run folder.

    Example: tellapart evaluate runs/mrnn-flickr8k --split test --beam 1
    """
    from tellapart.recipe import load_recipe

    if changes and not recipe:
        raise TellapartError("--set changes a recipe, and none is named", hint="add --recipe NAME")
    other = load_recipe(recipe, changes=changes or ()) if recipe else None  # before torch is imported

    from tellapart.evaluation import evaluate_run

    with counting("evaluating") as watch:
        result = evaluate_run(
            run, split=split, width=beam, watch=watch, recipe=other, length_penalty=length_penalty
        )
    if json:
        say(result.to_json())
        return
    tell(f"{result.images} images of {split!r}, {result.captions} captions; {result.vocabulary} words known")
    tell(f"perplexity {result.fit.perplexity:.2f} (end sign counted); next word {result.fit.accuracy:.1%}")
    tell(f"captions: {result.predictions}")
