"""All that came out of a plan, as the report tells it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tellapart.data.examples import Example
from tellapart.errors import TellapartError
from tellapart.metrics.score import plain
from tellapart.reproduction.budget import Chosen
from tellapart.reproduction.measured import measure_shelf
from tellapart.reproduction.measuring import Bench, Figures
from tellapart.reproduction.plan import Cell, Claim, Job, Paper, cell
from tellapart.reproduction.running import Workshop
from tellapart.reproduction.shelf import LOG, Line, Made, about_here
from tellapart.reproduction.verdicts import Judged, judge
from tellapart.reproduction.writing import Watch
from tellapart.sources import by_hash

SHOWN = 6  # pictures of a gallery by each rule


@dataclass(frozen=True, slots=True)
class Curve:
    """How a run learnt: a measure on the validation split, by step."""

    method: str
    seed: int
    measure: str
    steps: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A picture, what people wrote of it, and what methods did."""

    image_id: str
    path: Path
    people: str
    captions: tuple[tuple[str, str], ...]  # the cell and its caption


@dataclass(frozen=True, slots=True)
class Gallery:
    """Pictures, and the rule that picked them: nobody did by hand."""

    rule: str
    exhibits: tuple[Exhibit, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A cell by how accurate its captions are, and how often they find their picture."""

    name: str
    found: float  # R@1 by the judge
    accuracy: float  # CIDEr-D
    is_best: bool  # whether no other is better in both


@dataclass(frozen=True, slots=True)
class Chapter:
    """A paper, its claims judged, and pictures."""

    paper: Paper
    judged: tuple[Judged, ...]
    galleries: tuple[Gallery, ...]


@dataclass(frozen=True)
class Findings:
    """Everything, whatever form it is told in."""

    ground: str
    command: str
    chosen: Chosen
    chapters: tuple[Chapter, ...]
    cells: Mapping[Cell, Mapping[int, Figures]]
    made: tuple[Made, ...]
    curves: tuple[Curve, ...]
    judge: str
    teacher: str
    pictures: int
    recipes: Mapping[
        str, tuple[str, tuple[str, ...]]
    ]  # of each method: its recipe, and what is changed in it
    failed: Mapping[str, str] = field(default_factory=dict)  # jobs that could not be run, and why
    about: Mapping[str, str] = field(default_factory=about_here)

    def seeds(self, text: str) -> Mapping[int, Figures]:
        """What is known of a cell as papers name it, by seed."""
        wanted = cell(text)
        return self.cells.get(Cell(self.chosen.name(wanted.method), wanted.way), {})

    def value(self, text: str, measure: str) -> float | None:
        """The mean over seeds of a measure; None where it was not run or not measured."""
        found = [one.scores[measure].corpus for one in self.seeds(text).values() if measure in one]
        return plain(float(np.mean(found))) if found else None

    def spread(self, text: str, measure: str) -> float | None:
        """The standard deviation over seeds, where there are several."""
        found = [one.scores[measure].corpus for one in self.seeds(text).values() if measure in one]
        return float(np.std(found, ddof=1)) if len(found) > 1 else None

    def marks(self, paper: Paper) -> list[Mark]:
        """The rows of the table that a paper wants drawn, those that were run."""
        rows = [row.ours for table in paper.tables if table.name == paper.plot for row in table.rows]
        places = {name: (self.value(name, "R@1"), self.value(name, "CIDEr-D")) for name in rows}
        known = {
            name: (found, accuracy)
            for name, (found, accuracy) in places.items()
            if found is not None and accuracy is not None
        }
        return [Mark(name, *place, is_best=name in front(known)) for name, place in known.items()]

    def best(self, paper: Paper) -> dict[str, Mark]:
        """The mark that is best in each of three senses, by the words for it.

        What is held to be accurate enough is what stands in the table's first row, the plain captioner;
        without it nothing is best.
        """
        marks = self.marks(paper)
        first = next((table.rows[0].ours for table in paper.tables if table.name == paper.plot), "")
        start = next((mark for mark in marks if mark.name == first), None)
        if start is None:
            return {}
        enough = [mark for mark in marks if mark.accuracy >= start.accuracy]
        return {
            "the most accurate": max(marks, key=lambda mark: (mark.accuracy, mark.found)),
            f"no less accurate than {start.name}, and finds its picture most often": max(
                enough, key=lambda mark: (mark.found, mark.accuracy)
            ),
            "finds its picture most often": max(marks, key=lambda mark: (mark.found, mark.accuracy)),
        }

    def curves_of(self, paper: Paper) -> list[Curve]:
        """How the methods of a paper learnt."""
        names = {self.chosen.name(method.name) for method in paper.methods}
        return [curve for curve in self.curves if curve.method in names]

    @property
    def trained_again(self) -> dict[str, list[str]]:
        """The ways that another training of the same settings has written than what is first of a job."""
        first: dict[str, str] = {}
        found: dict[str, list[str]] = {}
        for one in self.made:
            job = f"{one.method}, seed {one.seed}"
            if first.setdefault(job, one.weights) != one.weights:
                found.setdefault(job, []).append(one.way)
        return found

    @property
    def signatures(self) -> dict[str, str]:
        """How each measure was computed; where ways differ in it, the first."""
        found: dict[str, str] = {}
        for figures in self._figures():
            for name, signature in figures.scores.signatures.items():
                found.setdefault(name, signature)
        return found

    @property
    def skipped(self) -> dict[str, str]:
        """Measures that could not run here, and why."""
        return {name: why for figures in self._figures() for name, why in figures.scores.skipped.items()}

    def _figures(self) -> Iterator[Figures]:
        return (figures for seeds in self.cells.values() for figures in seeds.values())

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "ground": self.ground,
            "command": self.command,
            "about": dict(self.about),
            "given_up": list(self.chosen.given_up),
            "failed": dict(self.failed),
            "judge": self.judge,
            "teacher": self.teacher,
            "claims": [
                _claim(chapter.paper.name, one) for chapter in self.chapters for one in chapter.judged
            ],
            "cells": {
                str(name): {
                    "seeds": sorted(seeds),
                    "scores": {measure: self.value(str(name), measure) for measure in _measures(seeds)},
                }
                for name, seeds in self.cells.items()
            },
            "signatures": self.signatures,
        }


def front(places: Mapping[str, tuple[float, float]]) -> set[str]:
    """The names that no other is better than in both, nor better in one and as good in the other (Pareto)."""
    return {
        name
        for name, (x, y) in places.items()
        if not any(a >= x and b >= y and (a, b) != (x, y) for a, b in places.values())
    }


def _measures(seeds: Mapping[int, Figures]) -> list[str]:
    return list(dict.fromkeys(name for figures in seeds.values() for name in figures.scores))


def _claim(paper: str, judged: Judged) -> dict[str, Any]:
    return {
        "paper": paper,
        "claim": judged.claim.name,
        "verdict": judged.verdict,
        "said": judged.said,
        "parts": [
            {
                "measure": one.part.measure,
                "one": one.part.one,
                "direction": one.part.direction,
                "other": one.part.other,
                "difference": one.value,
                "interval": [one.low, one.high],
                "holds": one.holds,
                "opposed": one.is_opposed,
                "seeds": one.seeds,
                "seeds_planned": one.planned,
            }
            for one in judged.parts
        ],
    }


def gather(
    shop: Workshop,
    papers: Sequence[Paper],
    chosen: Chosen,
    *,
    command: str,
    watch: Watch,
    failed: Mapping[str, TellapartError] | None = None,
) -> Findings:
    """Measure all that is on the shelf, and judge every claim."""
    ground = shop.ground
    bench = Bench(shop.shown, shop.retriever(ground.judge), ground.encoder, ground.language_model)
    cells, made, first = _measured(shop, bench, watch)
    by_name = {str(name): seeds for name, seeds in cells.items()}
    chapters = tuple(
        Chapter(
            paper,
            tuple(judge(_of_size(claim, chosen), by_name, chosen.plan) for claim in paper.claims),
            _galleries(paper, shop, chosen, cells, first),
        )
        for paper in papers
    )
    return Findings(
        ground.name,
        command,
        chosen,
        chapters,
        cells,
        tuple(made),
        tuple(_curves(shop)),
        bench.judge.identity,
        ground.teacher,
        len(shop.shown.test),
        {
            name: (ground.recipe_of(method), ground.changes_of(method))
            for name, method in chosen.plan.methods.items()
            if method.recipe
        },
        {job: f"{error.problem} ({error.hint})" for job, error in (failed or {}).items()},
    )


def _of_size(claim: Claim, chosen: Chosen) -> Claim:
    """The claim of what was run: a smaller size under its own name."""

    def named(text: str) -> str:
        return str(Cell(chosen.name(cell(text).method), cell(text).way))

    parts = (
        replace(part, one=named(part.one), other=named(part.other), after=part.after and named(part.after))
        for part in claim.parts
    )
    return replace(claim, parts=tuple(parts))


Captions = dict[Cell, dict[str, str]]  # of the first seed, by picture


def _measured(
    shop: Workshop, bench: Bench, watch: Watch
) -> tuple[dict[Cell, dict[int, Figures]], list[Made], Captions]:
    cells: dict[Cell, dict[int, Figures]] = {}
    made, captions = [], Captions()
    for one in measure_shelf(shop, bench, watch):
        made.append(one.made)
        cells.setdefault(one.cell, {})[one.seed] = one.figures
        if any(line.captions for line in one.lines):
            captions[one.cell] = {line.image_id: _told(line) for line in one.lines}
    return cells, made, captions


def _told(line: Line) -> str:
    """What a gallery shows of a picture: its caption or, where that is known, what each word of it cost."""
    if not line.penalties:
        return line.captions[0]
    return ", ".join(f"{word} {mle:.2f} → {smile:.2f}" for word, mle, smile in line.penalties)


def _curves(shop: Workshop) -> Iterator[Curve]:
    for job in shop.plan.jobs:
        if shop.shelf.holds(job, LOG):
            kept = shop.shelf.read(job, LOG, digest=shop.digest(job.method))
            yield from _curves_of(job, kept.entries)


def _curves_of(job: Job, entries: Sequence[Mapping[str, Any]]) -> Iterator[Curve]:
    """A curve for each measure that was validated more than once."""
    for measure in entries[0]["validation"] if len(entries) > 1 else ():
        values = [entry["validation"].get(measure) for entry in entries]
        if all(isinstance(value, int | float) for value in values):
            steps = tuple(int(entry["step"]) for entry in entries)
            yield Curve(job.method.name, job.seed, measure, steps, tuple(map(float, values)))


def _galleries(
    paper: Paper,
    shop: Workshop,
    chosen: Chosen,
    cells: Mapping[Cell, Mapping[int, Figures]],
    captions: Captions,
) -> tuple[Gallery, ...]:
    """Pictures by the hash of their ids; and those whose rank the last method changed most, either way."""

    def run(names: Sequence[str]) -> list[Cell]:
        sized = (Cell(chosen.name(cell(text).method), cell(text).way) for text in names)
        return [one for one in sized if one in captions]

    shown, punished = run(paper.gallery.cells), run(paper.gallery.penalties)
    if not shown:
        return ()
    by_id = {some.image_id: some for some in shop.shown.test}

    def exhibit(example: Example, names: Sequence[Cell] = shown) -> Exhibit:
        said = tuple((str(name), captions[name][example.image_id]) for name in names)
        return Exhibit(example.image_id, example.path, example.captions[0], said)

    first = by_hash(shop.shown.test)[:SHOWN]
    by_chance = f"the first {SHOWN} test pictures in the order of the SHA-256 of their ids"
    hashed = [Gallery(by_chance, tuple(exhibit(some) for some in first))]
    if punished:
        rule = f"-ln p of each word that people wrote, by MLE → by SMILE, of {by_chance}"
        hashed.append(Gallery(rule, tuple(exhibit(some, punished) for some in first)))
    gains = _gains(cells, shown)
    if not gains:
        return tuple(hashed)
    told = f"by the judge, of {shown[-1]} against {shown[0]}, seed 1; ties by id"
    best = Gallery(
        f"the {SHOWN} largest gains in the rank of the own picture {told}",
        _pick(gains[:SHOWN], by_id, exhibit),
    )
    worst = Gallery(
        f"the {SHOWN} largest losses in that rank {told}", _pick(gains[::-1][:SHOWN], by_id, exhibit)
    )
    return (*hashed, best, worst)


def _pick(names: Sequence[str], by_id: Mapping[str, Example], exhibit: Any) -> tuple[Exhibit, ...]:
    return tuple(exhibit(by_id[name]) for name in names)


def _gains(cells: Mapping[Cell, Mapping[int, Figures]], shown: Sequence[Cell]) -> list[str]:
    """Ids of pictures, those whose rank fell most first; none where the judge has not ranked both."""
    first, last = (cells[name].get(1) for name in (shown[0], shown[-1]))
    if first is None or last is None or shown[0] == shown[-1]:
        return []
    if "Mean-rank" not in first or "Mean-rank" not in last:
        return []
    before, after = first.scores["Mean-rank"].each, last.scores["Mean-rank"].each
    assert before is not None
    assert after is not None
    ids = first.scores.ids
    return [name for _, name in sorted(zip((after - before).tolist(), ids, strict=True))]
