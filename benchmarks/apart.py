"""Do captions that were chosen or written against a picture's neighbours tell it from them?

    TELLAPART_DATA=DATA python -m benchmarks.apart runs/apart --split val [--captioner FOLDER]
    TELLAPART_DATA=DATA python -m benchmarks.apart runs/apart --split test [--captioner FOLDER]

Photographs of a split of Flickr8k, the captioner that ships or another, neighbours by `reranker`; whether a
caption finds its picture is said by `judge`, which chose none but the oracle's. Candidates and what is known
of them stay in the folder. Prints the table and the groups of five, and draws CIDEr-D against R@1.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.apart_candidates import (
    JUDGE,
    RERANKER,
    Candidate,
    Candidates,
    Field,
    by_beam,
    by_chance,
    by_judge,
    by_likelihood,
    by_pragmatics,
    by_reranker,
)
from benchmarks.apart_plot import Mark, draw
from benchmarks.objective_measures import WIDTH, caption_scores
from benchmarks.objective_table import number
from tellapart.comparison import compare
from tellapart.metrics.retrieval import ranks, recalled
from tellapart.metrics.score import Scores, mean_score
from tellapart.reranking.margin import Terms, choose, per_length
from tellapart.retrievers.distinct import dot_products
from tellapart.retrievers.loading import load_retriever
from tellapart.retrievers.pools import GROUP, hard_pool
from tellapart.retrievers.retriever import Retriever

# Between 0.4 and 1 the temperature of samples made no difference beyond chance on photographs of val.
TEMPERATURE, DRAWN = 0.6, 90
SLACKS = (0.0, 0.2, 0.5, 0.8, 1.3, inf)
FIT_WEIGHTS = (0.02, 0.05, 0.1, 0.2)
PMI_WEIGHTS = (0.0, 0.3, 1.0)
BOTH_WEIGHTS = (0.02, 0.05, 0.1, 0.2)  # of likelihood beside the reranker's cosines
RATIONALITIES = (0.5, 1.0, 2.0)
RATIONALITY = 1.0
FIT = 0.05  # the weight of fit where another weight is swept

PLAIN, NEAR, GROUPS = "beam of 5", "R@1-near", "groups told apart"
COLUMNS = (
    *("CIDEr-D", "METEOR", "R@1", "R@5", "R@10", "Mean-rank", NEAR),
    *("Distinct", "Novel", "Vocabulary", "Length", "Unsupported-detail"),
)
TOLD = ("CIDEr-D", "R@1", NEAR, "Mean-rank", "Unsupported-detail")  # with intervals
HARDEST = 40  # groups
DRAWS = 2000


@dataclass(frozen=True, slots=True)
class Method:
    """A way to caption, in a family of ways that differ in one setting."""

    family: str
    setting: str
    captions: Sequence[str]

    @property
    def name(self) -> str:
        """As the table has it."""
        return f"{self.family} {self.setting}".strip()


def methods(field: Field) -> Iterator[Method]:
    """All ways, plain beam first."""
    yield Method(PLAIN, "", [group[0].caption for group in by_beam(field, WIDTH).groups])
    ten = by_beam(field, 10)
    hundred = ten.joined(by_chance(field, DRAWN, TEMPERATURE))
    yield from against_neighbours(field, ten, hundred)
    for rationality in RATIONALITIES:
        found = by_pragmatics(field, rationality)
        yield Method(
            "pragmatic, rationality", f"{rationality:g}", [group[0].caption for group in found.groups]
        )
    both = by_pragmatics(field, RATIONALITY).joined(ten)
    closeness = by_reranker(field, both)
    for weight in (0.0, *FIT_WEIGHTS):
        picked = chosen(both, closeness, Terms(fit_weight=weight))
        yield Method("pragmatic and beam, margin, fit", f"{weight:g}", picked)
    yield Method("oracle of 10", "", by_oracle(ten, by_judge(field, ten), inf))
    for slack in SLACKS:
        picked = by_oracle(hundred, by_judge(field, hundred), slack)
        yield Method("oracle of 100, slack", f"{slack:g}", picked)


def against_neighbours(field: Field, ten: Candidates, hundred: Candidates) -> Iterator[Method]:
    """Margin reranking by the reranker's cosines and by the captioner's own likelihood."""
    for family, some in (("margin of 10, fit", ten), ("margin of 100, fit", hundred)):
        closeness = by_reranker(field, some)
        for weight in FIT_WEIGHTS:
            yield Method(family, f"{weight:g}", chosen(some, closeness, Terms(fit_weight=weight)))
    closeness = by_reranker(field, hundred)
    for slack in SLACKS:
        picked = chosen(hundred, closeness, Terms(fit_weight=0.0, fit_slack=slack))
        yield Method("margin of 100, slack", f"{slack:g}", picked)
    for weight in (0.0, 1.0):
        yield Method("margin of 100, others", f"{weight:g}", chosen(hundred, closeness, Terms(weight)))
    pairs = zip(by_likelihood(field, ten), ten.groups, strict=True)
    likely = [per_length(each, lengths(group), 1.0) for each, group in pairs]
    for weight in PMI_WEIGHTS:
        picked = chosen(ten, likely, Terms(1.0, 1.0, fit_weight=weight))
        yield Method("PMI of 10, fit", f"{weight:g}", picked)
    cosines = by_reranker(field, ten)
    for weight in BOTH_WEIGHTS:
        both = [near + weight * each for near, each in zip(cosines, likely, strict=True)]
        yield Method("margin and PMI of 10, PMI", f"{weight:g}", chosen(ten, both, Terms(fit_weight=FIT)))


def chosen(some: Candidates, closeness: Sequence[NDArray[np.floating]], terms: Terms) -> list[str]:
    """The captions that margin reranking takes."""
    found = []
    for group, near in zip(some.groups, closeness, strict=True):
        likely = np.array([one.log_probability for one in group])
        found.append(group[choose(near, likely, lengths(group), terms).chosen].caption)
    return found


def lengths(group: Sequence[Candidate]) -> NDArray[np.int64]:
    """Words of each candidate, with the end sign."""
    return np.array([one.length for one in group])


def by_oracle(some: Candidates, found: Sequence[NDArray[np.int64]], slack: float) -> list[str]:
    """The captions above a floor on fit by which the judge itself finds the photograph best."""
    # The less a caption is off, the closer it is; there are no neighbours beside, and equal ones go by fit.
    closeness = [-places[:, None].astype(np.float64) for places in found]
    return chosen(some, closeness, Terms(0.0, fit_weight=0.0, fit_slack=slack))


@dataclass(frozen=True)
class Bench:
    """The judge at work on the captions of a field."""

    field: Field
    judge: Retriever
    groups: NDArray[np.int64]  # five photographs that are alike in each row, the most alike first

    @classmethod
    def of(cls, field: Field) -> Bench:
        """As many whole groups as there are photographs for, but one: a pool of all is not grouped."""
        count = (len(field.shown) - 1) // GROUP
        rows = hard_pool(field.pictures(RERANKER), count * GROUP, group=GROUP)
        return cls(field, load_retriever(JUDGE), rows.reshape(count, GROUP))

    def matrix(self, captions: Sequence[str]) -> NDArray[np.float32]:
        """The judge's cosines of all captions with all photographs."""
        return dot_products(self.judge.embed_texts(captions), self.field.pictures(JUDGE))

    def scores(self, captions: Sequence[str]) -> Scores:
        """All figures, and whether captions find their photograph among its neighbours."""
        field, matrix = self.field, self.matrix(captions)
        named = {some.image_id: caption for some, caption in zip(field.shown, captions, strict=True)}
        train = [list(some.captions) for some in field.train]
        found = caption_scores(named, field.shown, train, matrix=matrix, judge=self.judge.identity)
        near = recalled(self.places(matrix, field.company), 1)
        parts = {**found.parts, NEAR: mean_score(NEAR, near, found["R@1"].signature)}
        return Scores(found.ids, parts, {})

    @staticmethod
    def places(matrix: NDArray[np.float32], company: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rank of the first photograph of each row of the company, by the caption of that photograph."""
        return ranks(np.take_along_axis(matrix[company[:, 0]], company, axis=1), np.zeros(len(company), int))

    def told_apart(self, captions: Sequence[str]) -> NDArray[np.bool_]:
        """For each group, whether all captions differ and each finds its photograph within it."""
        matrix = self.matrix(captions)
        first = [self.places(matrix, np.roll(self.groups, -place, axis=1)) == 0 for place in range(GROUP)]
        differ = [len({captions[row] for row in group}) == GROUP for group in self.groups.tolist()]
        return np.asarray(np.all(first, axis=0) & differ)

    def people(self) -> dict[str, float]:
        """Recalls of the captions that people wrote, all of them, by the same judge."""
        count = min(len(some.captions) for some in self.field.shown)
        found: dict[str, list[float]] = {
            name: [] for name in ("R@1", "R@5", "R@10", "Mean-rank", NEAR, GROUPS)
        }
        for place in range(count):
            captions = [some.captions[place] for some in self.field.shown]
            matrix = self.matrix(captions)
            rank = ranks(matrix)
            for name, value in (
                ("R@1", rank < 1),
                ("R@5", rank < 5),
                ("R@10", rank < 10),
                ("Mean-rank", rank + 1),
            ):
                found[name].append(float(value.mean()))
            found[NEAR].append(float((self.places(matrix, self.field.company) == 0).mean()))
            found[GROUPS].append(float(self.told_apart(captions).mean()))
        return {name: float(np.mean(values)) for name, values in found.items()}


def main() -> None:
    """Measure all ways on one split."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--split", choices=("val", "test"), default="val")
    parser.add_argument("--captioner", default="default")
    arguments = parser.parse_args()
    bench = Bench.of(Field.read(arguments.split, arguments.folder, arguments.captioner))
    people, marks, lines = bench.people(), [], []
    plain: Scores | None = None
    print("| |", " | ".join((*COLUMNS, GROUPS, f"the {HARDEST} most alike")), "|")
    print(f"|{'---|' * (len(COLUMNS) + 3)}")
    for method in methods(bench.field):
        scores, told = bench.scores(method.captions), bench.told_apart(method.captions)
        plain = plain or scores
        cells = [number(scores[name].corpus) for name in COLUMNS]
        cells += [number(float(told.mean())), number(float(told[:HARDEST].mean()))]
        print("|", " | ".join([method.name, *cells]), "|", flush=True)
        if not method.family.startswith("oracle"):  # far away: they would press all others into a corner
            marks.append(Mark(method.family, method.setting, scores["R@1"].corpus, scores["CIDEr-D"].corpus))
        lines.append(record(method, scores, plain, told))
    print(
        "| people |",
        " | ".join(number(people[name]) if name in people else "" for name in (*COLUMNS, GROUPS)),
        "| |",
    )
    base = arguments.folder / f"{arguments.split}-apart"
    base.with_suffix(".jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
    )
    draw(base.with_suffix(".png"), marks, title=f"Flickr8k {arguments.split}", people=people["R@1"])


def record(method: Method, scores: Scores, plain: Scores, told: NDArray[np.bool_]) -> dict[str, object]:
    """A line of the file: figures, and differences from plain beam with their intervals."""
    against = {
        one.name: [one.value, one.low, one.high]
        for one in compare(plain, scores, draws=DRAWS)
        if one.name in TOLD
    }
    return {
        "name": method.name,
        "scores": {name: scores[name].corpus for name in COLUMNS},
        "groups": float(told.mean()),
        "against": against,
        "captions": list(method.captions),
    }


if __name__ == "__main__":
    main()
