"""The papers by name, and the plan of some of them on some ground."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tellapart.errors import UnknownName
from tellapart.registry import suggest
from tellapart.reproduction.ground import Ground
from tellapart.reproduction.papers import contrastive, everything, mrnn, smile, specificity, unkt
from tellapart.reproduction.plan import Paper, Plan, join
from tellapart.reproduction.ways import WAYS

ALL = "all"
PAPERS: Mapping[str, Paper] = {
    module.PAPER.name: module.PAPER for module in (mrnn, contrastive, specificity, smile, unkt)
}


def find_papers(name: str) -> Sequence[Paper]:
    """The paper of a name; of `all`, every one, and the methods side by side."""
    if name == ALL:
        return (everything.PAPER, *PAPERS.values())
    if name not in PAPERS:
        raise UnknownName(f"no paper is called {name!r}", hint=suggest(name, [*PAPERS, ALL]))
    return (PAPERS[name],)


def plan_on(papers: Iterable[Paper], ground: Ground) -> Plan:
    """All that papers want on that ground, with the retrievers that it has to train first."""
    plan = join(papers, WAYS)
    if ground.retrievers:
        plan = plan.without(name for name, method in plan.methods.items() if method.needs_photographs)
    first = {method.name: method for method in ground.retrievers}
    return Plan({**first, **plan.methods}, plan.ways)
