"""`tellapart caption`: captions of files and folders, as they come."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tellapart.cli.console import complain, counting, one_line, say, stderr, tell, waiting
from tellapart.cli.options import LengthPenalty
from tellapart.errors import TellapartError

if TYPE_CHECKING:
    from tellapart.captioning import Captioned

PAGE_SUFFIXES = (".html", ".htm")


def caption(
    paths: Annotated[
        list[Path], typer.Argument(help="Image files and folders (searched recursively).", show_default=False)
    ],
    captioner: Annotated[
        str, typer.Option(help="'default', a captioner or run folder, or pretrained: blip[:FOLDER].")
    ] = "default",
    beam: Annotated[
        int | None,
        typer.Option(min=1, help="Width of the beam; 1 is greedy.", show_default="the captioner's own"),
    ] = None,
    candidates: Annotated[
        int, typer.Option(min=1, help="How many captions an image to give, best first.")
    ] = 1,
    prefix: Annotated[str, typer.Option(help="Words every caption is to begin with.")] = "",
    max_words: Annotated[
        int | None, typer.Option(min=1, help="Longest caption.", show_default="the captioner's own")
    ] = None,
    length_penalty: LengthPenalty = None,
    page: Annotated[
        Path | None,
        typer.Option(help="Also write a web page (.html) with pictures and captions.", show_default=False),
    ] = None,
    cache: Annotated[bool, typer.Option(help="Remember what the encoder saw in each picture.")] = True,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a line (predictions JSONL).")] = False,
) -> None:
    """Caption images.

    Example: tellapart caption photos/ --candidates 3
    """
    with waiting("loading the captioner"):
        from tellapart.captioning import load

        describer = load(captioner, cached=cache)
        wish = describer.wish(
            width=beam, keep=candidates, prefix=prefix, max_words=max_words, length_penalty=length_penalty
        )
    root = paths[0] if len(paths) == 1 and paths[0].is_dir() else None
    failed = False

    def shown() -> Iterator[Captioned]:
        nonlocal failed
        for result in _with_bar(describer.caption_each(paths, wish, root=root)):
            if isinstance(result, TellapartError):
                failed = True
                complain(result)
                continue
            if json:
                say(result.to_json(model=describer.name))
            else:
                _print(result)
            yield result

    if page is None:
        for _ in shown():
            pass
    else:
        _write_page(page, shown(), model=describer.name)
    if failed:
        raise typer.Exit(1)


def _write_page(page: Path, results: Iterator[Captioned], *, model: str) -> None:
    """Write the page; without a single caption there is none, and what stood there stays."""
    from tellapart.report.gallery import write_gallery

    if page.suffix.lower() not in PAGE_SUFFIXES:  # `--page *.jpg` would replace a photograph by a page
        raise TellapartError(f"--page {page}: not the name of a page", hint="let it end in .html")
    first = next(results, None)
    if first is not None:
        write_gallery(page, chain([first], results), title="Captions", model=model)
        stderr.print(f"page: {page}")


def _print(result: Captioned) -> None:
    tell(f"{one_line(str(result.image))}: {result.caption}")
    for candidate in result.candidates[1:]:
        tell(f"    {candidate.caption}")


def _with_bar(
    results: Iterable[Captioned | TellapartError],
) -> Iterator[Captioned | TellapartError]:
    """Count on a bar, unless the captions themselves appear on the screen and show the progress."""
    with ExitStack() as stack:
        watch = None if sys.stdout.isatty() else stack.enter_context(counting("captioning"))
        for done, result in enumerate(results, start=1):
            if watch:
                watch(done, 0)
            yield result
