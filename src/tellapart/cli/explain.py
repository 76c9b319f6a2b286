"""`tellapart explain`: which words make a picture's caption distinctive, and where the captioner looked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from tellapart.cli.console import counting, one_line, say, stderr, tell, tell_left_out, tell_table, waiting
from tellapart.cli.options import expect_page

if TYPE_CHECKING:
    from tellapart.explanation import Explanation
    from tellapart.word_penalties import Guess, Penalty

MOST_PROBLEMS = 10  # lines about files that cannot be compared


def explain(
    image: Annotated[Path, typer.Argument(help="A picture.", show_default=False)],
    among: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the pictures to tell it apart from (searched recursively).",
            show_default="the picture's own",
        ),
    ] = None,
    caption: Annotated[
        str | None,
        typer.Option(help="The sentence to explain.", show_default="what the captioner writes"),
    ] = None,
    captioner: Annotated[
        str, typer.Option(help="'default', a captioner or run folder, or pretrained: blip[:FOLDER].")
    ] = "default",
    by: Annotated[
        str,
        typer.Option(
            help="Who compares: 'reranker', 'judge', a retriever or run folder, clip:FOLDER, siglip:FOLDER."
        ),
    ] = "reranker",
    neighbours: Annotated[
        int, typer.Option(min=1, help="How many of the most similar pictures are rivals.")
    ] = 10,
    page: Annotated[
        Path | None,
        typer.Option(help="Also write a web page (.html) with pictures and maps.", show_default=False),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    """Explain a caption: which words tell its picture apart, what they cost, where the captioner looked.

    Example: tellapart explain photos/dog.jpg --page why.html
    """
    expect_page(page)
    with waiting("loading captioner and retriever"):
        from tellapart.captioning import load
        from tellapart.explaining import Asked, explain_picture
        from tellapart.searching import named_retriever

        describer, retriever = load(captioner), named_retriever(by)
    with counting("looking at what is new") as watch:
        found = explain_picture(Asked(image, among, caption, neighbours), describer, retriever, watch=watch)
    tell_left_out(found.problems, found.notes, most=MOST_PROBLEMS)
    if json:
        say(found.to_json())
    else:
        _show(found)
    if page is not None:
        from tellapart.report.explain_page import write_explain_page

        write_explain_page(page, found)
        stderr.print(f"page: {page}")


def _show(found: Explanation) -> None:
    tell(f"{one_line(str(found.image))}: {one_line(found.caption)}")
    tell(_standing(found))
    tell("")
    tell_table(_table(found))
    if found.ranking:
        what = "margin" if found.margin is not None else "closeness"
        drops = [
            (word.margin_drop if found.margin is not None else word.closeness_drop) for word in found.words
        ]
        ranked = [f"{one_line(found.words[place].text)} {_signed(drops[place])}" for place in found.ranking]
        tell("")
        tell(f"by what they add to the {what}: {', '.join(ranked)}")
    if found.helpful:
        words = [f"{one_line(each.word)} {_signed(each.gain)}" for each in found.helpful]
        tell(f"words of other candidates that would add to it, put at the end: {', '.join(words)}")


def _standing(found: Explanation) -> str:
    """How close the caption is to its picture, and whether a rival is closer."""
    strongest = found.strongest
    if strongest is None or found.margin is None:
        return f"closeness {found.closeness:.3f} by {one_line(found.retriever)}; no rival"
    return (
        f"closeness {found.closeness:.3f} by {one_line(found.retriever)}, margin {_signed(found.margin)}: "
        f"the strongest of {len(found.rivals)} rivals, {one_line(str(strongest.path))}, "
        f"has {strongest.closeness:.3f}" + (" and wins" if found.margin < 0 else "")
    )


def _table(found: Explanation) -> Table:
    """The words in the order of the sentence; what they add, what they cost, what was likelier."""
    table = Table(box=None, pad_edge=False)
    table.add_column("word", no_wrap=True)
    for heading in ("margin", "closeness", "MLE", "SMILE"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("likeliest", no_wrap=True)
    table.add_column("of its own", no_wrap=True)
    for word in found.words:
        drops = (_signed(word.margin_drop), _signed(word.closeness_drop))
        table.add_row(one_line(word.text), *drops, *_cells(word.penalty))
    table.add_row("(end)", "", "", *_cells(found.end))
    whole = [sum(getattr(word.penalty, loss) for word in found.words) for loss in ("mle", "smile")]
    sums = (f"{whole[0] + found.end.mle:.2f}", f"{whole[1] + found.end.smile:.2f}")
    table.add_row("sum", "", "", *sums, "", "")
    return table


def _cells(penalty: Penalty) -> tuple[str, str, str, str]:
    guesses = (_guess(penalty.likeliest), _guess(penalty.likeliest_own))
    return f"{penalty.mle:.2f}", f"{penalty.smile:.2f}", *guesses


def _guess(guess: Guess | None) -> str:
    return f"{one_line(guess.word)} {guess.probability:.0%}" if guess else ""


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{round(value, 3) + 0.0:+.3f}"  # zero has no minus
