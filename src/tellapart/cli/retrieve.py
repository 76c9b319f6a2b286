"""`tellapart retrieve`: m-RNN's tables, sentences found by pictures and pictures found by sentences."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from tellapart.cli.console import remark, say, stderr, tell, tell_table, watching
from tellapart.errors import TellapartError

if TYPE_CHECKING:
    from tellapart.retrieval import Tables


class Normalise(StrEnum):
    """What sentences are ranked by."""

    plain = "plain"
    eq7 = "eq7"
    pmi = "pmi"
    mean_image = "mean-image"
    mean_image_per_word = "mean-image-per-word"


Name = Annotated[
    str,
    typer.Argument(
        help="Run folder or recipe; with --recipe, any captioner or retriever.", show_default=False
    ),
]
Images = Annotated[int | None, typer.Option(min=1, help="Only so many of its pictures.", show_default="all")]
Ways = Annotated[
    list[Normalise] | None,
    typer.Option(
        help="What a captioner ranks sentences by; may be repeated. plain: p(c|I). eq7 (m-RNN): p(c|I) over "
        "p(c), the mean of training pictures. pmi: over p(c) by --language-model. mean-image: over p(c|mean "
        "training picture). mean-image-per-word: the same of perplexities (Kiros).",
        show_default="plain",
    ),
]
LanguageModel = Annotated[
    str | None, typer.Option(help="A run of rnn-base, for the p(c) of pmi.", show_default="as in eq7")
]
OtherRecipe = Annotated[
    str | None, typer.Option(help="Look in the data of this recipe.", show_default="the run's own")
]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change a value of --recipe: section.key=value.", show_default=False),
]
Curves = Annotated[Path | None, typer.Option(help="Draw the recall curves here (.png).", show_default=False)]


def retrieve(
    run: Name,
    split: Annotated[str, typer.Option(help="train, val, test, or held-out of an extra source.")] = "test",
    images: Images = None,
    normalise: Ways = None,
    samples: Annotated[int, typer.Option(min=1, help="Training pictures that eq7 takes the mean of.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Another seed, other samples.")] = 0,
    language_model: LanguageModel = None,
    recipe: OtherRecipe = None,
    changes: Changes = None,
    curves: Curves = None,
    json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    """Let each picture look for its sentences, and each sentence for its picture.

    A captioner ranks them by how likely it finds a sentence, a retriever by their cosine.

    Example: tellapart retrieve runs/mrnn-flickr8k --normalise plain --normalise eq7 --curves curves.png
    """
    from tellapart.recipe import load_experiment

    if changes and not recipe:
        raise TellapartError("--set changes a recipe, and none is named", hint="add --recipe NAME")
    if curves is not None and curves.suffix.lower() != ".png":  # `--curves *.jpg` would replace a photograph
        raise TellapartError(f"--curves {curves}: not the name of a PNG picture", hint="let it end in .png")
    other = load_experiment(recipe, changes=changes or ()) if recipe else None  # before torch is imported

    from tellapart.retrieval import Wish
    from tellapart.retrieval import retrieve as retrieve_both_ways

    ways = tuple(each.value for each in normalise or [Normalise.plain])
    wish = Wish(split, images, ways, samples, seed, language_model)
    with watching() as watch:
        tables = retrieve_both_ways(run, wish, watch=watch, recipe=other)
    if json:
        say({"run": run, **tables.to_json()})
    else:
        _show(tables)
    for note in tables.notes:
        remark(note)
    if curves is not None:
        from tellapart.report.recall_curves import write_curves

        write_curves(curves, tables.found, title=f"{run}: {tables.images:,} pictures of {split!r}")
        stderr.print(f"curves: {curves}")


def _show(tables: Tables) -> None:
    table = Table(box=None, pad_edge=False)
    results = [found.to_json() for found in tables.found]
    measures = [name for name in results[0] if name.startswith("R@")]
    for column in ("direction", "ranked by", *measures, "Med r"):
        left = column in ("direction", "ranked by")
        table.add_column(column, justify="left" if left else "right", no_wrap=True)
    for result in results:
        recalls = (f"{100 * result[name]:.1f}" for name in measures)
        table.add_row(result["direction"], result["normalisation"], *recalls, f"{result['median_rank']:g}")
    tell_table(table)
    tell(
        f"{tables.images:,} pictures of {tables.split!r}, {tables.captions:,} captions; recalls in %, "
        "ranks counted from 1"
    )
