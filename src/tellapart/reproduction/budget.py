"""What fits into the time that there is: fewer seeds, then fewer epochs, then fewer methods.

What is smaller has another name, and what is left out is not run: neither stands where the whole would.
What is kept from before costs nothing. Minutes are the plan's, and no promise.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tellapart.errors import TellapartError
from tellapart.reproduction.plan import PLACE, Method, Plan

SHARES = (0.5, 0.25)
DEAR = 5.0  # minutes of a way from which on it goes before methods do
_UNITS = {"s": 1 / 60, "m": 1.0, "h": 60.0}


@dataclass(frozen=True, slots=True)
class Chosen:
    """A plan that fits, and what was given up for it."""

    plan: Plan
    share: float = 1.0  # of the epochs
    given_up: tuple[str, ...] = ()  # in words

    def name(self, method: str) -> str:
        """What a method is called in it."""
        short = shortened(method, self.share)
        return short if short in self.plan.methods else method


def read_minutes(text: str) -> float:
    """A time as people write it: 30m, 2h, 1h30m."""
    found = re.findall(r"(\d+(?:\.\d+)?)([hms])", text)
    minutes = sum(float(number) * _UNITS[unit] for number, unit in found)
    if "".join(number + unit for number, unit in found) != text or not 0 < minutes < math.inf:
        raise TellapartError(
            f"--budget {text!r} is no time", hint="write it as in --budget 30m or --budget 1h30m"
        )
    return minutes


def fit(plan: Plan, minutes: float, *, left: Callable[[Plan], float] = lambda plan: plan.minutes) -> Chosen:
    """As much of a plan as fits into so many minutes; `left` tells how many a plan still takes."""
    chosen = Chosen(plan)

    def fits(some: Plan) -> bool:
        return left(some) <= minutes

    for seeds in (2, 1):
        if fits(chosen.plan):
            return chosen
        said = f"{seeds} seed{'s' if seeds > 1 else ''} of every method instead of up to 3"
        chosen = Chosen(plan.with_seeds(seeds), given_up=(said,))
    for share in SHARES:
        if fits(chosen.plan):
            return chosen
        said = f"{share:g} of the epochs of every method, one at least; it is then called so: mrnn~{share:g}"
        one_seed = plan.with_seeds(1)
        chosen = Chosen(shorten(one_seed, share), share, (chosen.given_up[0], said))
    return chosen if fits(chosen.plan) else _with_fewer(chosen, minutes, fits)


def _with_fewer(chosen: Chosen, minutes: float, fits: Callable[[Plan], bool]) -> Chosen:
    """Without the ways that take longest, then without methods, the least first."""
    said = f"not run: {', '.join(_dear_ways(chosen.plan))} of any method"
    chosen = replace(chosen, plan=_without_dear_ways(chosen.plan), given_up=(*chosen.given_up, said))
    while not fits(chosen.plan):
        smaller = _without_last(chosen.plan)
        if not smaller.methods:
            raise TellapartError(
                f"nothing of the plan fits into {minutes:g} minutes", hint="give more, such as --budget 30m"
            )
        gone = [name for name in chosen.plan.methods if name not in smaller.methods]
        said = f"not run: {', '.join(gone)}"
        chosen = replace(chosen, plan=smaller, given_up=(*chosen.given_up, said))
    return chosen


def _dear_ways(plan: Plan) -> list[str]:
    """Ways that take long, and that no other way chooses from."""
    every = [way for ways in plan.ways.values() for way in ways]
    return sorted({way.name for way in every if way.minutes >= DEAR} - {way.of for way in every})


def _without_dear_ways(plan: Plan) -> Plan:
    dear = _dear_ways(plan)
    ways = {name: tuple(way for way in some if way.name not in dear) for name, some in plan.ways.items()}
    return replace(plan, ways=ways)


def _without_last(plan: Plan) -> Plan:
    """Without the method that matters least, the last of its kind, and what hangs on it."""
    least = max(method.priority for method in plan.methods.values())
    last = [name for name, method in plan.methods.items() if method.priority == least][-1]
    return plan.without([last])


def shortened(name: str, share: float) -> str:
    """What a method with a share of its epochs is called."""
    return name if share == 1 else f"{name}~{share:g}"


def shorten(plan: Plan, share: float) -> Plan:
    """All methods that train captioners with a share of their epochs, under names that say so."""
    names = {
        name: shortened(name, share)
        for name, method in plan.methods.items()
        if method.kind == "train" and not method.recipe.startswith("retriever")
    }
    methods = {
        names.get(name, name): _shorter(method, names, share) if name in names else method
        for name, method in plan.methods.items()
    }
    return replace(
        plan, methods=methods, ways={names.get(name, name): ways for name, ways in plan.ways.items()}
    )


def _shorter(method: Method, names: Mapping[str, str], share: float) -> Method:
    def renamed(change: str) -> str:
        return PLACE.sub(lambda found: f"{{{names.get(found[1], found[1])}}}", change)

    return replace(
        method,
        name=names[method.name],
        start=names.get(method.start, method.start),
        changes=tuple(map(renamed, method.changes)),
        share=share,
        minutes=method.minutes * share,
    )
