"""`tellapart reproduce`: which of a paper's claims hold, on one's own machine."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tellapart.cli.console import remark, say, stderr, tell, watching

if TYPE_CHECKING:
    from tellapart.reproduction.budget import Chosen
    from tellapart.reproduction.findings import Findings
    from tellapart.reproduction.ground import Ground
    from tellapart.reproduction.plan import Plan
    from tellapart.reproduction.shelf import Shelf

Data = Annotated[
    Path | None,
    typer.Option(help="Folder that holds flickr8k/.", show_default="TELLAPART_DATA, or drawn scenes"),
]
Kept = Annotated[
    Path | None, typer.Option(help="Captions kept from before, and to be kept.", show_default="OUT/captions")
]
Budget = Annotated[
    str | None,
    typer.Option(help="Time to spend, as in 30m: what does not fit is not run.", show_default=False),
]


def reproduce(
    paper: Annotated[
        str, typer.Argument(help="mrnn, contrastive, specificity, smile, unkt, or all.", show_default=False)
    ],
    data: Data = None,
    out: Annotated[Path, typer.Option(help="Folder of the runs and the report.")] = Path("runs/reproduce"),
    kept: Kept = None,
    budget: Budget = None,
    only: Annotated[list[str] | None, typer.Option(help="These methods alone; may be repeated.")] = None,
    seed: Annotated[list[int] | None, typer.Option(help="These seeds alone; may be repeated.")] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Print what would be run, and how long it takes.")
    ] = False,
    report: Annotated[
        bool, typer.Option("--report/--no-report", help="Measure all that is there, and write the report.")
    ] = True,
    json: Annotated[bool, typer.Option("--json", help="Figures and verdicts as JSON.")] = False,
) -> None:
    """Run a paper's experiments, and say which of its claims hold: tables side by side, intervals, pictures.

    Example: tellapart reproduce mrnn --data DATA --budget 2h
    """
    from tellapart.reproduction.budget import read_minutes
    from tellapart.reproduction.ground import find_ground
    from tellapart.reproduction.library import find_papers, plan_on
    from tellapart.reproduction.shelf import Shelf

    papers = find_papers(paper)
    minutes = read_minutes(budget) if budget is not None else None
    ground = find_ground(data, out)
    shelf = Shelf(kept or out / "captions", ground.name)
    chosen = _choose(plan_on(papers, ground), minutes, shelf, ground)
    now = chosen
    if only:  # as of seeds: the report tells of all that is there
        named = [*(chosen.name(name) for name in only), *(one.name for one in ground.retrievers)]
        now = replace(now, plan=now.plan.only(named))
    if seed:
        now = replace(now, plan=now.plan.only_seeds(seed))
    if plan:
        from tellapart.reproduction.plan_text import plan_lines

        for line in plan_lines(papers, now, pace=ground.pace):
            tell(line)
        return
    for line in chosen.given_up:
        remark(f"to fit the budget: {line}")

    from tellapart.reproduction.findings import gather
    from tellapart.reproduction.running import Screen, Workshop

    shop = Workshop(out, ground, chosen.plan, shelf, Screen(stderr.print, watching))
    shop.check_shelf()
    failed = replace(shop, plan=now.plan).run()
    if report:
        command = shlex.join(["tellapart", *sys.argv[1:]])
        with watching() as watch:
            found = gather(shop, papers, chosen, command=command, watch=watch, failed=failed)
        _report(found, out / paper, as_json=json)
    if failed:
        raise typer.Exit(1)


def _choose(whole: Plan, minutes: float | None, shelf: Shelf, ground: Ground) -> Chosen:
    from tellapart.reproduction.budget import Chosen, fit
    from tellapart.reproduction.running import minutes_left

    if minutes is None:
        return Chosen(whole)
    return fit(whole, minutes, left=lambda some: minutes_left(some, shelf, ground))


def _report(found: Findings, path: Path, *, as_json: bool) -> None:
    from tellapart.report.reproduction_markdown import write_reproduction_markdown
    from tellapart.report.reproduction_page import write_reproduction_page

    write_reproduction_markdown(path.with_suffix(".md"), found)
    write_reproduction_page(path.with_suffix(".html"), found)
    if as_json:
        say(found.to_json())
        return
    for chapter in found.chapters:
        for judged in chapter.judged:
            tell(f"{chapter.paper.name}: {judged.claim.name}: {judged.said}")
    tell(f"report: {path.with_suffix('.html')}, and the same as {path.with_suffix('.md')}")
