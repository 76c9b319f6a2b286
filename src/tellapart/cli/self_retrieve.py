"""`tellapart self-retrieve`: does a caption find its own picture?"""

from __future__ import annotations

import json as jsons
from collections.abc import Callable, Sequence
from enum import StrEnum
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from tellapart.cli.console import counting, one_line, remark, say, stderr, tell, tell_table, waiting
from tellapart.cli.options import expect_page
from tellapart.errors import TellapartError
from tellapart.storage import new_file

if TYPE_CHECKING:
    from tellapart.judges import Author, Judge
    from tellapart.picture_pools import Pool
    from tellapart.retrievers.retriever import Watch
    from tellapart.self_retrieval import Verdict
    from tellapart.written_captions import WrittenCaptions


class Choice(StrEnum):
    """Which pictures a caption is held against."""

    whole = "split"
    hard = "hard"
    sets = "sets"


By = Annotated[
    list[str] | None,
    typer.Option(
        help="Who judges; may be repeated: judge, reranker, a folder, clip:…, siglip:…, likelihood.",
        show_default="judge",
    ),
]
Beam = Annotated[
    int | None,
    typer.Option(min=1, help="Width by which a run wrote them.", show_default="the captioner's own"),
]
Images = Annotated[Path | None, typer.Option(help="Folder of the pictures.", show_default="as the file says")]
Captioner = Annotated[str | None, typer.Option(help="Who wrote them.", show_default="as the file says")]
Size = Annotated[
    int | None,
    typer.Option(min=1, help="Pictures of the hard pool; others in a set.", show_default="a fifth; 9"),
]
Distractors = Annotated[
    Path | None, typer.Option(help="More pictures: a folder, or a caption file.", show_default=False)
]
Same = Annotated[
    float, typer.Option(min=-1, help="Cosine from which on two pictures count as one in R@1-merged.")
]
At = Annotated[str, typer.Option(help="The k of recall@k.", show_default="1,5,10; by likelihood 1,5,50,500")]
Out = Annotated[Path | None, typer.Option(help="Write what each caption found here, as JSONL.")]
Page = Annotated[
    Path | None, typer.Option(help="Write a web page (.html) of captions that found another picture.")
]


def self_retrieve(
    captions: Annotated[
        Path, typer.Argument(help="Predictions, as 'score' takes them; or a run.", show_default=False)
    ],
    by: By = None,
    split: Annotated[str, typer.Option(help="Of a run's data.")] = "test",
    beam: Beam = None,
    images: Images = None,
    captioner: Captioner = None,
    pool: Annotated[
        Choice, typer.Option(help="All pictures; the most similar; or each with its nearest.")
    ] = Choice.whole,
    size: Size = None,
    distractors: Distractors = None,
    encoder: Annotated[str, typer.Option(help="Tells which pictures look alike.")] = "efficientnet-lite2",
    same: Same = 0.9,
    at: At = "",
    ranks_from: Annotated[int, typer.Option(min=0, max=1, help="The rank of what comes first.")] = 1,
    draws: Annotated[int, typer.Option(min=0, help="Draws of captions, for intervals.")] = 1000,
    out: Out = None,
    page: Page = None,
    json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    """Let judges look for the picture of each caption, and count how often they find it.

    Example: tellapart self-retrieve runs/mrnn-flickr8k --split test --by judge --by likelihood
    """
    places = _numbers(at)
    _expect_files(out, page)
    with waiting("reading the captions"):
        from tellapart.judges import expect_judges
        from tellapart.self_retrieval import Terms, retrieve
        from tellapart.written_captions import read_written

        names = by or ["judge"]
        expect_judges(names)
        written = read_written(captions, split=split, beam=beam, images=images)
        author = _author(captioner, written.captioner)
        judges = [_judge(name, author) for name in names]
    field = _pool(written, pool, size=size, distractors=distractors, encoder=encoder)
    terms = Terms(at=places, ranks_from=ranks_from, same=same, draws=draws)
    verdicts = []
    for name, judge in zip(names, judges, strict=True):
        with counting(f"asking {name}") as watch:
            verdicts.append(retrieve(field, judge(watch), terms, author=author))
    if json:
        say(_as_json(field, verdicts, author, ranks_from=ranks_from))
    else:
        _show(field, verdicts, author, ranks_from=ranks_from)
    for note in dict.fromkeys(note for verdict in verdicts for note in verdict.scores.notes):
        remark(note)
    _write(out, page, verdicts, field, ranks_from=ranks_from)


def _expect_files(out: Path | None, page: Path | None) -> None:
    """What is to be written must be a file: before minutes of work."""
    if out is not None and out.is_dir():
        raise TellapartError(f"--out {out} is a folder", hint="name a file to write to")
    expect_page(page)


def _numbers(text: str) -> tuple[int, ...] | None:
    try:
        numbers = tuple(int(number) for number in text.split(",") if number.strip())
    except ValueError as error:
        raise TellapartError(f"--at {text!r} are no numbers", hint="write them as in --at 1,5,10") from error
    if any(number < 1 for number in numbers):
        raise TellapartError(f"--at {text!r}: recall@1 is the least there is", hint="as in --at 1,5,10")
    return numbers or None


def _author(given: str | None, named: str) -> Author | None:
    """The captioner, where it is at hand; one that the user names must be."""
    from tellapart.judges import find_author

    if given:
        return find_author(given)
    try:
        return find_author(named) if named else None
    except TellapartError:
        return None


def _judge(name: str, author: Author | None) -> Callable[[Watch], Judge]:
    """A judge who is there, and only has to be told who watches."""
    from tellapart.judges import LIKELIHOOD, judge_by, judge_by_likelihood
    from tellapart.retrievers.loading import load_retriever

    if name != LIKELIHOOD:
        retriever = load_retriever(name)
        return lambda watch: judge_by(retriever, watch=watch)
    if author is None:
        raise TellapartError(
            f"--by {LIKELIHOOD} asks the captioner, and it is not known who wrote these captions",
            hint="name the captioner with --captioner",
        )
    known = author
    return lambda watch: judge_by_likelihood(known, watch=watch)


def _pool(
    written: WrittenCaptions, choice: Choice, *, size: int | None, distractors: Path | None, encoder: str
) -> Pool:
    from tellapart.picture_pools import find_distractors, hardest_pool, pool_of_sets, see_pictures, whole_pool
    from tellapart.vision.parts import load_encoder

    if size and choice is Choice.whole:
        raise TellapartError("--size is for --pool hard and --pool sets", hint="name one of these pools")
    sight = load_encoder(encoder)
    with counting("looking at pictures") as watch:
        own, bad = see_pictures(written.pictures, sight, total=len(written.pictures), watch=watch)
        for error in bad:
            raise error
        others = None
        if distractors is not None:
            paths = find_distractors(distractors)
            others, bad = see_pictures(paths, sight, total=len(paths), watch=watch)
            if bad:
                remark(f"{len(bad)} distractors cannot be read: left out (first: {bad[0].problem})")
    whole = whole_pool(written.ids, written.captions, own, others)
    with counting("looking for similar pictures") as watch:
        if choice is Choice.hard:
            return hardest_pool(whole, size=size, watch=watch)
        if choice is Choice.sets:
            return pool_of_sets(whole, others=size, watch=watch) if size else pool_of_sets(whole, watch=watch)
    return whole


def _as_json(
    pool: Pool, verdicts: Sequence[Verdict], author: Author | None, *, ranks_from: int
) -> dict[str, object]:
    from tellapart.self_retrieval import accord

    return {
        "pool": pool.to_json(),
        "ranks_from": ranks_from,
        "captioner": None if author is None else author.to_json(),
        "judges": [verdict.to_json(author) for verdict in verdicts],
        "accord": [accord(*pair).to_json() for pair in combinations(verdicts, 2)],
    }


def _show(pool: Pool, verdicts: Sequence[Verdict], author: Author | None, *, ranks_from: int) -> None:
    """The values as a table, a column for each judge, and what to know about pool and judges below it."""
    table = Table(box=None, pad_edge=False)
    table.add_column("measure", no_wrap=True)
    for verdict in verdicts:
        table.add_column(one_line(verdict.judge.name), justify="right")
    for name in dict.fromkeys(name for verdict in verdicts for name in verdict.scores):
        table.add_row(name, *(" ".join(verdict.spoken(name)).strip() for verdict in verdicts))
    tell_table(table)
    others = pool.inside - len(pool.ids)
    tell(
        f"{len(pool.ids):,} captions, each in a pool of {pool.size:,} pictures ({pool.name}; {others:,} have "
        f"no caption); ranks from {ranks_from}, ties pessimistic"
        + ("; in brackets 95 % intervals" if any(verdict.intervals for verdict in verdicts) else "")
    )
    if author is None:
        tell("captioner: not known (name it with --captioner)")
    else:
        teachers = ", ".join(author.taught_by) or "no retriever"
        tell(f"captioner: {one_line(author.name)}, encoder {author.encoder}, taught by {teachers}")
    for verdict in verdicts:
        judge = verdict.judge
        tell(
            f"judge {one_line(judge.name)}: {judge.identity}, encoder {judge.encoder or 'its own'}, "
            f"trained on {judge.trained_on or 'what is not said'}"
        )
        for caution in verdict.cautions:
            tell(f"  {caution}")
    _show_accord(verdicts)


def _show_accord(verdicts: Sequence[Verdict]) -> None:
    from tellapart.self_retrieval import accord

    for pair in combinations(verdicts, 2):
        found = accord(*pair)
        tell(
            f"{' and '.join(map(one_line, found.judges))}: both put the picture of {found.both:.1%} first, "
            f"one alone that of {found.one:.1%} (kappa {found.kappa:.2f}); "
            f"tau-b of their ranks {found.tau:.2f}"
        )


def _write(
    out: Path | None, page: Path | None, verdicts: Sequence[Verdict], pool: Pool, *, ranks_from: int
) -> None:
    """The files asked for; last, for what took minutes is on the screen should the disk be full."""
    if out is not None:
        with (
            new_file(out) as temporary,
            temporary.open(
                "w",
                encoding="utf-8",
                errors="backslashreplace",  # as JSON spells what is no text, such as a file's name
            ) as file,
        ):
            for verdict in verdicts:
                lines = (
                    finding.to_json(verdict.judge.name, ranks_from=ranks_from) for finding in verdict.findings
                )
                file.writelines(jsons.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        stderr.print(f"written: {out}")
    if page is not None:
        from tellapart.report.self_retrieval_page import write_self_retrieval

        write_self_retrieval(page, verdicts, pool)
        stderr.print(f"page: {page}")
