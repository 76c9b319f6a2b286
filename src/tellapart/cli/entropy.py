"""`tellapart entropy`: which captions of a training set are generic."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from tellapart.cli.console import one_line, remark, say, stderr, tell, tell_table, waiting, watching
from tellapart.errors import TellapartError

if TYPE_CHECKING:
    from tellapart.data.examples import Example
    from tellapart.genericity import Genericity


TopN = Annotated[
    int | None,
    typer.Option(min=1, help="So many of the closest pictures take part.", show_default="the whole pool"),
]
AskedPictures = Annotated[
    Path | None, typer.Option(help="Pictures asked: a folder or caption file.", show_default="the set's own")
]
Images = Annotated[
    Path | None, typer.Option(help="Folder of the pictures of a caption file.", show_default="beside it")
]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change a value of the recipe: section.key=value.", show_default=False),
]
Out = Annotated[
    Path | None,
    typer.Option(
        help="Folder for entropy.jsonl, high.jsonl, low.jsonl and summary.json.", show_default=False
    ),
]


def entropy(
    source: Annotated[
        str, typer.Argument(help="Recipe, run folder or caption file: a training set.", show_default=False)
    ],
    by: Annotated[
        str, typer.Option(help="Retriever: judge, reranker, a folder, clip:…, siglip:….")
    ] = "judge",
    temperature: Annotated[
        float, typer.Option(help="What cosines are divided by, as in its training; CLIP's is 0.01.")
    ] = 0.07,
    top_n: TopN = None,
    pool: AskedPictures = None,
    images: Images = None,
    changes: Changes = None,
    out: Out = None,
    json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    """Divide a training set into captions that fit many pictures (high entropy) and those that fit few.

    Example: tellapart entropy mrnn-flickr8k --top-n 1000 --out halves/
    """
    from tellapart.genericity import (
        Hesitation,
        expect_free,
        measure_genericity,
        to_filter,
        write_genericity,
    )

    if out is not None:
        expect_free(out)  # before minutes of work
    everything = _read(source, images, changes or ())
    examples = to_filter(everything)
    with waiting("loading the retriever"):
        from tellapart.retrievers.loading import load_retriever

        retriever = load_retriever(by)
    with watching() as watch:
        found = measure_genericity(
            examples, retriever, Hesitation(temperature, top_n), pool=_pool(pool), watch=watch
        )
    if json:
        say(found.to_json())
    else:
        _show(found)
    for note in found.notes:
        remark(f"{retriever.name}: {note}: of these it may make nothing, and call them generic")
    if found.is_high.all():
        remark("all captions are as generic: there is no lower half")
    if out is not None:  # last: what took minutes is on the screen, should the disk be full
        write_genericity(out, found, everything)
        stderr.print(f"written: {out}")


def _read(source: str, images: Path | None, changes: list[str] | tuple[()]) -> list[Example]:
    """The examples of a caption file; else those of a recipe, or of that of a run."""
    from tellapart.data.readers import read_dataset
    from tellapart.recipe import load_experiment
    from tellapart.run import Run
    from tellapart.sources import read_examples

    path = Path(source)
    run = Run(path)
    if path.exists() and path.suffix != ".toml" and not run.recipe.exists():
        if changes:
            raise TellapartError("--set changes a recipe, and none is named", hint="name a recipe")
        return list(read_dataset(path, images=images).strict())
    if images is not None:
        raise TellapartError(
            "--images is for caption files", hint="a recipe says itself where its pictures are"
        )
    recipe = load_experiment(str(run.recipe) if run.recipe.exists() else source, changes=changes)
    return list(read_examples(recipe.data, seed=recipe.seed))


def _pool(source: Path | None) -> list[Path] | None:
    """The pictures of a folder or caption file; one that cannot be reached is an error."""
    from tellapart.picture_pools import find_distractors

    if source is None:
        return None
    found = find_distractors(source)
    for path in found:
        if isinstance(path, TellapartError):
            raise path
    return [path for path in found if isinstance(path, Path)]


def _show(found: Genericity) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("half", "pairs", "entropy", "words", "vocabulary", "distinct"):
        table.add_column(heading, justify="left" if heading == "half" else "right", no_wrap=True)
    for name, high in (("high: generic", True), ("low: specific", False)):
        half = found.half(high=high)
        table.add_row(
            name,
            f"{half.pairs:,}",
            f"{half.mean_entropy:.3f}",
            f"{half.mean_length:.2f}",
            f"{half.vocabulary:,}",
            f"{half.distinct:.3f}",
        )
    tell_table(table)
    most, least = found.extremes()
    for title, sentences in (("most generic", most), ("least generic", least)):
        tell(f"{title}:")
        for caption, value in sentences:
            tell(f"  {value:.3f}  {one_line(caption)}")
    asked = found.hesitation
    is_all = asked.top_n is None or asked.top_n >= found.pictures
    closest = "all" if is_all else f"the {asked.top_n:,} closest"
    tell(
        f"in nats, by {found.retriever} over {closest} of {found.pictures:,} pictures, "
        f"temperature {asked.temperature:g}"
    )
