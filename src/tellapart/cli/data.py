"""`tellapart data`: look after captioned image sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tellapart.cli.console import complain, counting, say, tell, waiting

app = typer.Typer(help="Look after captioned image sets.", no_args_is_help=True, add_completion=False)


@app.command()
def check(
    path: Annotated[
        Path, typer.Argument(help="Caption file, or folder with .txt sidecars.", show_default=False)
    ],
    images: Annotated[
        Path | None, typer.Option(help="Folder of the pictures.", show_default="beside the file")
    ] = None,
    format: Annotated[
        str, typer.Option(help="One of 'tellapart list formats'; found out by itself.")
    ] = "auto",
    json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    """Find missing, unreadable, duplicate and caption-less images, and say which line of which file.

    Example: tellapart data check captions.jsonl --images photos/
    """
    from tellapart.data.check import check_dataset
    from tellapart.data.readers import read_dataset

    reading = read_dataset(path, format=format, images=images)
    with counting("checking") as watch:
        result = check_dataset(reading, progress=watch)
    if json:
        say(result.to_json())
    else:
        for problem in result.problems:
            complain(problem.error())
        splits = ", ".join(
            f"{count} {split or 'in no split'}" for split, count in sorted(result.splits.items())
        )
        tell(
            f"{result.images} images ({splits}), {result.captions} captions; problems: {len(result.problems)}"
        )
        if result.unmentioned:
            tell(f"{result.unmentioned} more pictures beside them are not mentioned")
    if result.problems:
        raise typer.Exit(1)


@app.command()
def shapes(
    folder: Annotated[Path, typer.Argument(help="Folder to write.", show_default=False)],
    count: Annotated[int, typer.Option(min=1, help="How many scenes.")] = 1000,
    look_alikes: Annotated[int, typer.Option(min=1, help="Size of the groups of look-alikes; 1: none.")] = 1,
    seed: Annotated[int, typer.Option(help="Another seed, other scenes.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    """Draw scenes of coloured shapes with captions whose truth is known.

    Example: tellapart data shapes drawn/ --count 200 --look-alikes 4
    """
    from tellapart.data.shapes.dataset import write_shapes

    with waiting("drawing"):
        write_shapes(folder, count=count, seed=seed, look_alikes=look_alikes)
    captions = folder / "captions.jsonl"
    if json:
        say({"captions": str(captions), "images": count})
    else:
        tell(f"{count} scenes in {folder}; captions in {captions}")
