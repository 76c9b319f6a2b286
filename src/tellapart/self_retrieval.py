"""Does a caption find its own picture? Ranks by one judge or several, and what it found instead."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import gammaln
from scipy.stats import kendalltau

from tellapart.arrays import Float, Int
from tellapart.errors import TellapartError
from tellapart.judges import LIKELIHOOD, Author, Judge, cautions
from tellapart.metrics.crowding import crowding
from tellapart.metrics.parts import RetrievalConfig
from tellapart.metrics.retrieval import rank_scores, ranks, recalled
from tellapart.metrics.score import Floats, Score, Scores, gathered, mean_score, plain
from tellapart.metrics.sentences import Ints
from tellapart.picture_pools import Pool
from tellapart.retrievers.pools import indistinguishable

AT = (1, 5, 10)
AT_BY_LIKELIHOOD = (1, 5, 50, 500)  # Dai & Lin 2017, Table 1

SAME = 0.9
"""The cosine of two pictures' features from which on nobody is asked to tell them apart.

By efficientnet-lite2, five pairs of Flickr8k's 8,091 photographs are as close: one photograph that is there
twice, and shots of a series. From 0.85 on there are 45 pairs, most of which words can tell apart.
"""

DRAWS = 1000
LEVEL = 0.95
_CELLS = 4_000_000  # captions drawn together
_MEAN, _MEDIAN = "Mean-rank", "Median-rank"

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Finding:
    """What one caption found."""

    image_id: str
    caption: str
    picture: Path
    rank: int  # of its own picture, counted from 0
    score: float  # of its own picture
    found: Path  # the closest of the other pictures
    found_score: float

    def to_json(self, judge: str, *, ranks_from: int) -> dict[str, Any]:
        """As a line of a file."""
        return {
            "judge": judge,
            "image_id": self.image_id,
            "image": str(self.picture),
            "caption": self.caption,
            "rank": self.rank + ranks_from,
            "score": self.score,
            "found": str(self.found),
            "found_score": self.found_score,
        }


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one judge says of all captions."""

    judge: Judge
    scores: Scores
    intervals: Mapping[str, Interval]
    findings: tuple[Finding, ...]
    cautions: tuple[str, ...]

    def to_json(self, author: Author | None) -> dict[str, Any]:
        """As plain values."""
        return {
            **self.judge.to_json(author),
            "cautions": list(self.cautions),
            **self.scores.to_json(),
            "intervals": {name: [plain(end) for end in ends] for name, ends in self.intervals.items()},
        }

    def spoken(self, name: str) -> tuple[str, str]:
        """A measure for people, and its interval: recalls with three decimals, ranks with one."""
        if name not in self.scores:
            return "-", ""
        digits = 1 if "rank" in name else 3
        value = f"{self.scores[name].corpus:,.{digits}f}"
        if name not in self.intervals:
            return value, ""
        low, high = self.intervals[name]
        return value, f"[{low:,.{digits}f}, {high:,.{digits}f}]"


@dataclass(frozen=True, slots=True)
class Accord:
    """How far two judges say the same of the same captions."""

    judges: tuple[str, str]
    tau: float  # Kendall's tau-b of the ranks that they give
    both: float  # share of the captions whose picture both put first
    one: float  # share of those whose picture one of them does
    kappa: float  # Cohen's, of putting first: 0 is what chance gives, 1 is to say the same of each

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {**asdict(self), "tau": plain(self.tau), "kappa": plain(self.kappa)}


def accord(one: Verdict, other: Verdict) -> Accord:
    """How far two verdicts on the same captions agree."""
    ranks_of_one, ranks_of_other = (
        np.array([finding.rank for finding in verdict.findings]) for verdict in (one, other)
    )
    first, second = ranks_of_one == 0, ranks_of_other == 0
    both, differ = float((first & second).mean()), float((first != second).mean())
    by_chance = first.mean() * second.mean() + (1 - first.mean()) * (1 - second.mean())
    kappa = (1 - differ - by_chance) / (1 - by_chance) if by_chance < 1 else math.nan
    tau = float(kendalltau(ranks_of_one, ranks_of_other, variant="b").statistic)
    return Accord((one.judge.name, other.judge.name), tau, both, differ, float(kappa))


@dataclass(frozen=True, slots=True)
class Terms:
    """How ranks are summed up."""

    at: tuple[int, ...] | None = None  # the k of recall@k; None: those usual for the judge
    ranks_from: int = 1
    same: float = SAME  # cosine from which on two pictures count as one in R@1-merged
    draws: int = DRAWS  # of captions, for intervals; 0: none

    def config(self, judge: Judge) -> RetrievalConfig:
        """As the measure takes them."""
        usual = AT_BY_LIKELIHOOD if judge.name == LIKELIHOOD else AT
        return RetrievalConfig(at=self.at or usual, ranks_from=1 if self.ranks_from else 0)


def retrieve(pool: Pool, judge: Judge, terms: Terms, *, author: Author | None = None) -> Verdict:
    """Rank the own picture of each caption among the pictures of a pool, and sum the ranks up.

    There are recalls, mean and median rank of all captions, and of those of the 20 % most and least crowded
    pictures. R@1-merged is recall@1 where a caption may also find a picture that nobody could tell from its
    own: one of the same content, or whose features have at least the cosine `terms.same` with its own. Where
    the pool is a choice from more pictures, R@1-random-pool is the recall@1 to be expected of the same
    captions in a pool of the same size that is drawn from them at random: how much harder is the choice?
    """
    config, named = terms.config(judge), judge.identity
    scores = _scores(pool, judge)
    everywhere = ranks(scores, ids=pool.ids)
    field = _field(pool, scores)
    found = ranks(field.block, field.own) if pool.is_chosen else everywhere
    crowded = crowding(pool.pictures.features[: pool.inside])
    summed = rank_scores(found, config, pool=pool.size, retriever=named)
    signature = summed[0].signature
    summed.append(_merged(pool, field, found, same=terms.same, signature=signature))
    if pool.is_chosen:
        each = first_at_random(everywhere, pictures=len(pool.pictures), pool=pool.size)
        summed.append(mean_score("R@1-random-pool", each, f"{signature}|drawn-from:{len(pool.pictures)}"))
    summed += rank_scores(found, config, pool=pool.size, retriever=named, crowded=crowded)
    notes = (*pool.notes, *judge.remark(pool.captions))
    gathered_scores = gathered(pool.ids, summed, skipped={}, remarks=notes, treatment=f"pictures:{pool.name}")
    return Verdict(
        judge,
        gathered_scores,
        intervals(gathered_scores, draws=terms.draws),
        tuple(_findings(pool, field, found)),
        tuple(cautions(judge, author)),
    )


def first_at_random(found: Ints, *, pictures: int, pool: int) -> Floats:
    """How likely a picture comes first in a pool drawn at random, it and `pool` - 1 of the others.

    It does if none of the `found` pictures that rank before it is drawn: (M-1-r over N-1) / (M-1 over N-1),
    with M pictures, N of them in the pool, and the rank r counted from 0.
    """
    others, drawn = pictures - 1, pool - 1
    left = np.maximum(others - found, drawn)  # fewer cannot be drawn without one of those before it
    logs = gammaln(left + 1) - gammaln(left - drawn + 1) - gammaln(others + 1) + gammaln(others - drawn + 1)
    return np.asarray(np.where(others - found < drawn, 0.0, np.minimum(np.exp(logs), 1.0)))


@dataclass(frozen=True, slots=True)
class _Field:
    """Scores of the captions (rows) with the pictures that each is held against (columns)."""

    block: Float[np.ndarray, "n k"]
    own: Int[np.ndarray, " n"]  # column of the caption's own picture
    rows: Int[np.ndarray, "n k"] | None  # of the pool that the columns are; None: all, in their order

    def pictures(self, caption: int) -> Int[np.ndarray, " k"]:
        """The rows of the pool that a caption's columns are."""
        return np.arange(self.block.shape[1]) if self.rows is None else self.rows[caption]


def _scores(pool: Pool, judge: Judge) -> Float[np.ndarray, "n m"]:
    scores = np.asarray(judge.score(pool.captions, pool.pictures.paths))
    if scores.shape != (len(pool.ids), len(pool.pictures)):
        raise TellapartError(
            f"{judge.name} gave scores of shape {scores.shape} for {len(pool.ids)} captions and "
            f"{len(pool.pictures)} pictures",
            hint="a judge gives a row for each caption and a column for each picture",
        )
    return scores


def _field(pool: Pool, scores: Float[np.ndarray, "n m"]) -> _Field:
    everyone = np.arange(len(pool.ids))
    if pool.sets is None:
        return _Field(scores[:, : pool.inside], everyone, None)
    rows = np.column_stack([everyone, pool.sets])
    return _Field(np.take_along_axis(scores, rows, axis=1), np.zeros(len(rows), np.int64), rows)


def _merged(pool: Pool, field: _Field, found: Ints, *, same: float, signature: str) -> Score:
    """Recall@1 where a picture that nobody could tell from the own one is as good as it.

    The best of them all stands for the own picture, and the others of them leave the pool.
    """
    alike = indistinguishable(pool.pictures.features, pool.pictures.digests, len(pool.ids), cosine=same)
    block, several = field.block.copy(), []
    for caption, twins in enumerate(alike):
        columns = np.flatnonzero(np.isin(field.pictures(caption), twins))
        if len(columns) > 1:
            best = block[caption, columns].max()
            block[caption, columns] = np.finfo(block.dtype).min
            block[caption, field.own[caption]] = best
            several.append(caption)
    ranked = found.copy()
    if several:
        ranked[several] = ranks(block[several], field.own[several])
    details = f"{signature}|merged:cosine-{same:g}|with-twins:{len(several)}"
    return mean_score("R@1-merged", recalled(ranked, 1), details)


def _findings(pool: Pool, field: _Field, found: Ints) -> Iterator[Finding]:
    others = field.block.copy()
    captions = np.arange(len(others))
    others[captions, field.own] = -np.inf
    closest = others.argmax(axis=1)
    for caption, column in enumerate(closest.tolist()):
        yield Finding(
            pool.ids[caption],
            pool.captions[caption],
            pool.pictures.paths[caption],
            int(found[caption]),
            float(field.block[caption, field.own[caption]]),
            pool.pictures.paths[field.pictures(caption)[column]],
            float(others[caption, column]),
        )


def intervals(scores: Scores, *, draws: int = DRAWS, seed: int = 0) -> dict[str, Interval]:
    """Where 95 % of the values fall if captions are drawn anew, for each measure; none without draws."""
    found = {}
    for name in scores if draws else ():
        is_median = name.startswith(_MEDIAN)
        each = scores[name.replace(_MEDIAN, _MEAN) if is_median else name].each
        assert each is not None
        # Sorted: what is drawn must not hang on the order of a file.
        values = np.sort(each[np.isfinite(each)])
        found[name] = _interval(values, np.median if is_median else np.mean, draws, seed)
    return found


def _interval(values: Floats, statistic: Callable[..., Any], draws: int, seed: int) -> Interval:
    chance = np.random.default_rng(seed)
    together = max(1, _CELLS // len(values))
    drawn = [
        statistic(
            values[chance.integers(0, len(values), (min(together, draws - first), len(values)))], axis=1
        )
        for first in range(0, draws, together)
    ]
    low, high = np.quantile(np.concatenate(drawn), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
