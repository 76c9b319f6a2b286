"""`tellapart audit`: do the captions of a folder tell its pictures apart?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from tellapart.cli.console import one_line, say, stderr, tell, tell_left_out, tell_table, waiting, watching
from tellapart.cli.options import expect_page

if TYPE_CHECKING:
    from tellapart.audit_findings import Audit, Confused, Recall
    from tellapart.metrics.boilerplate import Phrase

SHOWN = 3  # pairs of a kind on the screen; the page and --json have more

Images = Annotated[
    Path | None,
    typer.Option(help="Folder of the pictures (searched recursively).", show_default="that of .txt files"),
]
Captioner = Annotated[str | None, typer.Option(help="Who wrote them.", show_default="as the file says")]
Page = Annotated[
    Path | None,
    typer.Option(help="Also write a web page (.html) with thumbnails and plots.", show_default=False),
]


def audit(
    captions: Annotated[
        Path,
        typer.Argument(
            help="JSONL, COCO results, CSV, or a folder of .txt files beside pictures.", show_default=False
        ),
    ],
    images: Images = None,
    by: Annotated[
        str, typer.Option(help="Who looks for the pictures: judge, reranker, a folder, clip:…, siglip:….")
    ] = "judge",
    neighbours: Annotated[
        int, typer.Option(min=1, help="Most similar pictures that each must be told from.")
    ] = 10,
    near: Annotated[
        float, typer.Option(min=-1, help="Cosine from which on two pictures are near-duplicates.")
    ] = 0.99,
    temperature: Annotated[
        float, typer.Option(help="What cosines are divided by, for the entropy; CLIP's is 0.01.")
    ] = 0.07,
    pairs: Annotated[
        int, typer.Option(min=0, help="Confused pairs of each kind for which to look for words.")
    ] = 20,
    captioner: Captioner = None,
    page: Page = None,
    json: Annotated[bool, typer.Option("--json", help="Everything, as one JSON object.")] = False,
) -> None:
    """Say which captions find their picture, which do not, and what is wrong with them.

    Example: tellapart audit captions.jsonl --images photos/ --page audit.html
    """
    expect_page(page)
    with waiting("loading the judge"):
        from tellapart.auditing import Terms
        from tellapart.auditing import audit as look
        from tellapart.retrievers.loading import load_retriever
        from tellapart.retrievers.rivals import Contest

        terms = Terms(Contest(neighbours, near, temperature), pairs, captioner=captioner or "")
        retriever = load_retriever(by)
    with watching() as watch:
        found = look(captions, images, by=retriever, terms=terms, watch=watch)
    tell_left_out(found.problems, found.notes)
    if json:
        say(found.to_json())
    else:
        _show(found)
    if page is not None:  # last: what took minutes is on the screen, should the disk be full
        from tellapart.report.audit_page import write_audit_page

        write_audit_page(page, found)
        stderr.print(f"page: {one_line(str(page))}")


def _show(found: Audit) -> None:
    material = found.material
    tell(
        f"{len(material.captions):,} captions, {len(material.names):,} pictures in "
        f"{one_line(str(material.folder))}, by {one_line(found.judge.name)} ({found.judge.identity})"
    )
    for caution in found.cautions:
        tell(f"  {caution}")
    if found.recalls is not None:
        tell("")
        _show_recalls(found)
    tell("")
    table = Table(box=None, pad_edge=False)
    table.add_column("what was found", no_wrap=True)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("for example", overflow="fold")
    for name, count, example in _faults(found):
        table.add_row(name, count, one_line(example))
    tell_table(table)
    for title, pairs in (
        ("look-alikes that are confused:", found.confused),
        ("captions farthest from their picture:", found.astray),
    ):
        if pairs:
            tell("")
            tell(title)
        for pair in pairs[:SHOWN]:
            _show_pair(found, pair)
    if found.missed:
        tell("")
        tell("more with --page audit.html, all of them with --json")


def _show_recalls(found: Audit) -> None:
    assert found.recalls is not None
    recalls, nearby = found.recalls, min(found.contest.neighbours, len(found.material.names) - 1)
    table = Table(box=None, pad_edge=False)
    for heading in ("captions find their picture", "at once (R@1)", "in five (R@5)", "mean rank", "captions"):
        table.add_column(heading, justify="left" if heading.startswith("captions f") else "right")
    rows: list[tuple[str, Recall | None]] = [
        ("in the whole folder", recalls.whole),
        (f"among the {nearby} nearest", recalls.nearby),
    ]
    if found.near_duplicates:
        rows.insert(1, ("  near-duplicates aside", recalls.fair_whole))
        rows.append(("  near-duplicates aside", recalls.fair_nearby))
    for name, recall in rows:
        values = ("-", "-", "-", "0") if recall is None else _spoken(recall)
        table.add_row(name, *values)
    tell_table(table)


def _spoken(recall: Recall) -> tuple[str, str, str, str]:
    return (
        f"{recall.first:.1%}",
        f"{recall.five:.1%}",
        f"{recall.mean_rank:,.1f}",
        f"{recall.captions:,}",
    )


def _faults(found: Audit) -> Iterator[tuple[str, str, str]]:
    """What was found, how often, and an example of each."""
    captions, names = found.material.captions, found.material.names
    shared = sum(map(len, found.wording.shared))
    example = (
        f"“{captions[found.wording.shared[0][0]].caption}” × {len(found.wording.shared[0])}" if shared else ""
    )
    yield "captions that another picture has too", f"{shared:,}", example
    if found.standing is not None:
        yield "captions that find another picture", f"{len(found.missed):,}", ""
        most = found.generic[0]
        yield (
            "pictures that the most generic one fits",
            f"{found.fits(most):,.1f}",
            f"“{captions[most].caption}”",
        )
    yield "openers of many captions", f"{len(found.wording.openers):,}", _phrases(found.wording.openers)
    yield "fragments in many captions", f"{len(found.wording.fragments):,}", _phrases(found.wording.fragments)
    for name, rows in (
        ("captions that repeat themselves", found.wording.repeating),
        ("captions that break off", found.wording.broken_off),
    ):
        yield name, f"{len(rows):,}", f"“{captions[rows[0]].caption}”" if rows else ""
    twins = sum(map(len, found.near_duplicates))
    same = " = ".join(names[place] for place in found.near_duplicates[0][:3]) if twins else ""
    yield "near-duplicate pictures", f"{twins:,}", same


def _phrases(phrases: Sequence[Phrase]) -> str:
    return ", ".join(f"“{phrase.text}” ({phrase.share:.1%})" for phrase in phrases[:3])


def _show_pair(found: Audit, pair: Confused) -> None:
    """A caption, the picture that it finds instead, and words for both."""
    names, captions = found.material.names, found.material.captions
    assert pair.own.caption is not None
    tell(f"  {one_line(captions[pair.own.caption].caption)}")
    for side, what in ((pair.own, "is of"), (pair.found, "finds")):
        words = ", ".join(word.word for word in side.words) or "none"
        tell(f"    {what} {one_line(names[side.picture])}  words for it: {words}")
