"""A plan as Markdown: every run, its seeds, its minutes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tellapart.reproduction.budget import Chosen
from tellapart.reproduction.plan import Method, Paper, Plan


def plan_lines(papers: Sequence[Paper], chosen: Chosen, *, pace: float) -> Iterator[str]:
    """The lines of a Markdown document."""
    plan = chosen.plan
    yield "# What is run, and how long it takes"
    yield ""
    yield (
        f"{len(plan.methods)} methods, {len(plan.jobs)} runs, {spoken(plan.minutes * pace)} in all on 2 "
        "cores, the writing of captions included. Bases and full methods have three seeds, ablations one; "
        "`ranks`, which take four times as long as training, are of the first. A method that several papers "
        "name is trained once."
    )
    for line in chosen.given_up:
        yield from ("", f"To fit the budget: {line}.")
    named = {chosen.name(method.name) for paper in papers for method in paper.methods}
    for name in (name for name in plan.methods if name not in named):
        yield from ("", f"First: {name} ({plan.methods[name].says}).")
    seen: set[str] = set()
    for paper in papers:
        yield from ("", f"## {paper.name}: {paper.title}", "")
        yield "| method | what it is | goes on from | seeds | minutes a seed | ways | minutes in all |"
        yield "|---|---|---|---|---|---|---|"
        for method in paper.methods:
            name = chosen.name(method.name)
            if name in plan.methods:
                yield _row(plan.methods[name], plan, is_new=name not in seen, pace=pace)
            else:
                yield f"| {method.name} | {method.says} | | not run here | | | |"
            seen.add(name)
        yield from (f"\nNot run: {line}." for line in paper.left_out)


def _row(method: Method, plan: Plan, *, is_new: bool, pace: float) -> str:
    jobs = [job for job in plan.jobs if job.method.name == method.name]
    ways = ", ".join(way.name for way in plan.ways.get(method.name, ())) or "–"
    total = f"{sum(job.minutes for job in jobs) * pace:.1f}" if is_new else "above"
    start = method.start or ", ".join(method.others) or "–"
    cells = [method.name, method.says, start, str(len(jobs)), f"{method.minutes * pace:.1f}", ways, total]
    return f"| {' | '.join(cells)} |"


def spoken(minutes: float) -> str:
    """A time for people."""
    if minutes < 60:
        return f"{minutes:.0f} minutes"
    hours, rest = divmod(round(minutes), 60)
    return f"{hours} h {rest} min"
