"""Does a claim hold? By the interval of each difference that it speaks of, over pictures drawn anew.

A part of a claim holds if the whole 95 % interval lies on the claimed side. A claim holds if all its parts
do, does not if none does, and else holds in part; where a row is missing it was not run, and nothing is said.
That a claim does not hold is not yet that its opposite does: that is said where an interval shows it.

Figures are means over the seeds that both sides have. What pictures drawn anew do not tell is how another
seed would have come out: of a method with one seed, an interval speaks of this one captioner. Where seeds of
the plan are still missing, the verdict stands so far.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tellapart.arrays import Float32
from tellapart.comparison import LEVEL, compare
from tellapart.metrics.score import Floats, Pooled, Score, Scores
from tellapart.reproduction.measuring import OF_ONE_SEED, Figures
from tellapart.reproduction.plan import Claim, Direction, Part, Plan, cell

Verdict = Literal["holds", "holds in part", "does not", "not run"]
Seeds = Mapping[int, Figures]  # of one cell

DRAWS, HALVES = 2000, 1000
COUNTED: Mapping[str, Callable[[Sequence[str]], Sequence[str]]] = {
    "Vocabulary": lambda tokens: tokens,
    "Distinct": lambda tokens: [" ".join(tokens)],
}
"""Measures that count different things over a whole set, and what each caption adds to the count.

A picture drawn twice adds nothing the second time, so that drawing with replacement would make every set
poorer than it is. Instead the interval is over random halves of the pictures, each without replacement: how
the two compare on a half. The spread of a mean over halves is that of a mean over as many pictures drawn with
replacement.
"""


@dataclass(frozen=True, slots=True)
class Compared:
    """A part of a claim, and what came out."""

    part: Part
    value: float | None = None  # of the difference, one less the other; None where one was not measured
    low: float | None = None
    high: float | None = None
    seeds: int = 0
    planned: int = 0  # seeds that the plan has of both
    margin: float = 0.0  # of the difference, where the part has one

    @property
    def claimed(self) -> tuple[float, float]:
        """Where the difference has to lie."""
        ends: Mapping[Direction, tuple[float, float]] = {
            "above": (0.0, math.inf),
            "below": (-math.inf, 0.0),
            "slightly below": (-self.margin, 0.0),
            "alike": (-self.margin, self.margin),
            "not above": (-math.inf, self.margin),
        }
        return ends[self.part.direction]

    @property
    def holds(self) -> bool | None:
        """Whether the whole interval is where the claim has it; None without an interval."""
        if self.low is None or self.high is None:
            return None
        first, last = self.claimed
        return first < self.low and self.high < last

    @property
    def is_opposed(self) -> bool:
        """Whether the whole interval is elsewhere: the opposite is so."""
        if self.low is None or self.high is None:
            return False
        first, last = self.claimed
        return self.high < first or last < self.low

    @property
    def is_of_halves(self) -> bool:
        """Whether difference and interval are of halves of the pictures."""
        return self.part.measure in COUNTED


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim, and whether it holds."""

    claim: Claim
    parts: tuple[Compared, ...]

    @property
    def verdict(self) -> Verdict:
        """In the words of the report."""
        return verdict([part.holds for part in self.parts])

    @property
    def said(self) -> str:
        """The verdict with what has to be known of it."""
        words: str = self.verdict
        if words == "not run":
            return words
        opposed = sum(part.is_opposed for part in self.parts)
        if opposed == len(self.parts):
            words += ": the opposite is so"
        elif opposed:
            words += f": the opposite is so of {opposed} of {len(self.parts)} parts"
        elif words == "does not":
            words += ": not shown, nor is the opposite"
        if any(part.seeds < part.planned for part in self.parts):
            words += " (so far: seeds are missing)"
        return words


def verdict(parts: Sequence[bool | None]) -> Verdict:
    """Of a claim, by its parts; None is a part that has no interval."""
    if not parts or any(part is None for part in parts):
        return "not run"
    if all(parts):
        return "holds"
    return "holds in part" if any(parts) else "does not"


def judge(claim: Claim, cells: Mapping[str, Seeds], plan: Plan) -> Judged:
    """All parts of a claim."""
    return Judged(claim, tuple(_compare(part, cells, plan) for part in claim.parts))


def _compare(part: Part, cells: Mapping[str, Seeds], plan: Plan) -> Compared:
    one, other, before = (cells.get(name, {}) for name in (part.one, part.other, part.after))
    if plan.is_seedless(cell(part.other)) and other:
        other = dict.fromkeys(one, next(iter(other.values())))  # people are the same to every seed
        planned = plan.seeds_of(cell(part.one))
    else:
        planned = min(plan.seeds_of(cell(name)) for name in part.cells)
    if part.measure in OF_ONE_SEED:
        planned = min(planned, 1)
    than = part.than or part.measure
    seeds = [
        seed
        for seed in sorted(one.keys() & other.keys())
        if part.measure in one[seed] and than in other[seed]
        if not part.after or (seed in before and than in before[seed])
    ]
    if not seeds:
        return Compared(part, planned=planned)
    ours, theirs = [one[seed] for seed in seeds], [other[seed] for seed in seeds]
    found: tuple[float, float | None, float | None]
    if part.measure in COUNTED:
        found = difference_of_counts(ours, theirs, part.measure)
    else:
        mean, against = mean_over_seeds(ours, part.measure), mean_over_seeds(theirs, than)
        if part.after:
            against = gained_again(against, mean_over_seeds([before[seed] for seed in seeds], than))
        found = _difference(mean, renamed(against, mean[part.measure]))
    margin = part.margin * abs(float(np.mean([figures.scores[than].corpus for figures in theirs])))
    return Compared(part, *found, len(seeds), planned, margin)


def _difference(one: Scores, other: Scores) -> tuple[float, float | None, float | None]:
    (found,) = compare(other, one, draws=DRAWS)
    return found.value, found.low, found.high


def gained_again(after: Scores, before: Scores) -> Scores:
    """What a score would be if it rose once more by as much as it has risen, picture by picture."""
    ((name, score),) = after.parts.items()
    start = before[name]
    assert score.each is not None, f"{name} is a formula: its gains do not add up"
    assert start.each is not None
    risen = 2 * score.each - start.each[_rows(after.ids, before.ids)]
    return replace(after, parts={name: replace(score, corpus=2 * score.corpus - start.corpus, each=risen)})


def renamed(scores: Scores, like: Score) -> Scores:
    """The only score under another's name and signature: a claim may hold one measure against another."""
    ((before, score),) = scores.parts.items()
    if before == like.name:
        return scores
    return replace(scores, parts={like.name: replace(score, name=like.name, signature=like.signature)})


def mean_over_seeds(figures: Sequence[Figures], name: str) -> Scores:
    """A measure, averaged over seeds that captioned the same pictures; of formulas, their values are."""
    first = figures[0].scores
    rows = [_rows(first.ids, each.scores.ids) for each in figures]
    scores = [each.scores[name] for each in figures]
    corpus = float(np.mean([score.corpus for score in scores]))
    whole = replace(scores[0], corpus=corpus, each=None, pooled=None)
    if all(score.pooled is not None for score in scores):
        whole = replace(whole, pooled=_together(scores, rows))
    elif all(score.each is not None for score in scores):
        each = [score.each[row] for score, row in zip(scores, rows, strict=True) if score.each is not None]
        whole = replace(whole, each=np.mean(each, axis=0))
    return Scores(first.ids, {name: whole}, {})


def _rows(wanted: Sequence[str], ids: Sequence[str]) -> list[int]:
    places = {name: row for row, name in enumerate(ids)}
    return [places[name] for name in wanted]


def _together(scores: Sequence[Score], rows: Sequence[list[int]]) -> Pooled:
    """Sums of all seeds side by side, and the mean of the formula's values."""
    pooled = [score.pooled for score in scores if score.pooled is not None]
    cuts = np.cumsum([one.statistics.shape[1] for one in pooled])[:-1]

    def formula(sums: Floats) -> Floats:
        pieces = np.split(sums, cuts, axis=-1)
        return np.asarray(
            np.mean([one.formula(piece) for one, piece in zip(pooled, pieces, strict=True)], axis=0)
        )

    statistics = [one.statistics[row] for one, row in zip(pooled, rows, strict=True)]
    return Pooled(np.hstack(statistics), formula)


def difference_of_counts(
    one: Sequence[Figures], other: Sequence[Figures], name: str, *, halves: int = HALVES
) -> tuple[float, float, float]:
    """By how much more one counts on halves of the pictures: the mean, and where 95 % of halves put it."""
    images = len(one[0].tokens)
    chance = np.random.default_rng(0)
    drawn = np.zeros((halves, images), np.float32)
    for row in drawn:
        row[chance.permutation(images)[: max(1, images // 2)]] = 1
    # Pictures in the same order for both, or a half of one would not be the same half of the other.
    order = np.argsort(one[0].scores.ids)
    differences = np.zeros(halves)
    for figures, sign in ((one, 1), (other, -1)):
        for each in figures:
            rows = np.argsort(each.scores.ids)
            assert [each.scores.ids[row] for row in rows] == [one[0].scores.ids[row] for row in order]
            counts = _counts([each.tokens[row] for row in rows], drawn, name)
            differences += sign * counts / len(figures)
    low, high = np.quantile(differences, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(differences.mean()), float(low), float(high)


def _counts(captions: Sequence[Sequence[str]], drawn: Float32[np.ndarray, "h n"], name: str) -> Floats:
    """How many different things the captions of each half hold; of `Distinct`, as a share of the captions."""
    things: dict[str, int] = {}
    held = [[things.setdefault(thing, len(things)) for thing in COUNTED[name](tokens)] for tokens in captions]
    incidence = np.zeros((len(captions), len(things)), np.float32)
    for row, columns in enumerate(held):
        incidence[row, columns] = 1
    counts = np.count_nonzero(drawn @ incidence, axis=1).astype(np.float64)
    return np.asarray(counts / drawn.sum(axis=1) if name == "Distinct" else counts)
