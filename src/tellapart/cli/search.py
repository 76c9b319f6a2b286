"""`tellapart search`: the pictures of a folder nearest to a sentence or to a picture."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tellapart.cli.console import complain, counting, one_line, say, stderr, tell, tell_left_out, waiting
from tellapart.cli.options import expect_page

if TYPE_CHECKING:
    from tellapart.searching import Found


class IndexKind(StrEnum):
    """How the nearest are found; both ways give the same answer."""

    auto = "auto"
    exact = "exact"
    faiss = "faiss"


def search(
    query: Annotated[str, typer.Argument(help="A sentence, or an image file.", show_default=False)],
    folder: Annotated[
        Path, typer.Argument(help="Folder of pictures (searched recursively).", show_default=False)
    ],
    count: Annotated[int, typer.Option("--count", "-k", min=1, help="How many to find.")] = 10,
    retriever: Annotated[
        str, typer.Option(help="'reranker', 'judge', a retriever or run folder, clip:FOLDER, siglip:FOLDER.")
    ] = "reranker",
    captions: Annotated[
        Path | None,
        typer.Option(help="File of captions, in any format for image sets.", show_default=".txt sidecars"),
    ] = None,
    index: Annotated[
        IndexKind, typer.Option(help="'auto' takes FAISS, where installed, beyond 100,000 pictures.")
    ] = IndexKind.auto,
    page: Annotated[
        Path | None,
        typer.Option(help="Also write a web page (.html) of thumbnails.", show_default=False),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    """Find the pictures nearest to a sentence, or to a picture: for that, the nearest captions too.

    Example: tellapart search "a dog in a red collar" photos/ --page found.html
    """
    expect_page(page)
    from tellapart.retrievers.store.look import looking_ahead

    with looking_ahead(folder) as look:
        with waiting("loading the retriever"):
            from tellapart.retrievers.store.listing import listing_of
            from tellapart.searching import Wish, find, named_retriever, nothing_to_search, read_query

            asked = read_query(query)
            loaded = named_retriever(retriever)
        wish = Wish(count, index.value, captions)
        with counting("looking at what is new") as watch:
            found = find(asked, folder, loaded, wish, look=lambda: listing_of(folder, look()), watch=watch)
    tell_left_out(found.problems, found.notes)
    if not found.count:
        complain(nothing_to_search(found))
        raise typer.Exit(1)
    if json:
        say(found.to_json())
    else:
        _show(found)
    if page is not None:
        from tellapart.report.search_page import write_search_page

        write_search_page(page, found)
        stderr.print(f"page: {page}")


def _show(found: Found) -> None:
    for hit in found.hits:
        caption = f": {one_line(hit.captions[0])}" if hit.captions else ""
        mark = f" ({one_line(found.mark(hit))})" if found.mark(hit) else ""
        tell(f"{hit.score:6.3f}  {one_line(str(hit.path))}{caption}{mark}")
    if found.captions:
        tell("")
    for line in found.captions:
        more = f" and {len(line.images) - 1} more" if len(line.images) > 1 else ""
        tell(f"{line.score:6.3f}  {one_line(line.caption)} ({one_line(line.images[0])}{more})")
