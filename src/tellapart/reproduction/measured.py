"""Figures of all that is on the shelf, each measured once.

Programs in one folder share the measuring: each takes what no other is at, and reads what others have found.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, replace

import tellapart
from tellapart.reproduction.measuring import Bench, Figures
from tellapart.reproduction.plan import Cell, Job, Way
from tellapart.reproduction.running import PATIENCE, Workshop, cells_on
from tellapart.reproduction.score_files import read_scores, write_scores
from tellapart.reproduction.shelf import Kept, Line, Made, check_pictures
from tellapart.reproduction.writing import Watch


@dataclass(frozen=True, slots=True)
class Measured:
    """A file of the shelf, without most of its captions, and its figures."""

    cell: Cell
    seed: int
    made: Made
    lines: tuple[Line, ...]  # of the first seed alone, with the first caption of each picture
    figures: Figures


def measure_shelf(shop: Workshop, bench: Bench, watch: Watch) -> list[Measured]:
    """All of it, in the plan's order."""
    present = list(cells_on(shop.shelf, shop.plan))
    found: dict[int, Measured] = {}
    while len(found) < len(present):
        for place, (job, way) in enumerate(present):
            if place not in found:
                watch("measuring", len(found), len(present))
                one = _measure_alone(shop, bench, job, way)
                if one is not None:
                    found[place] = one
        if len(found) < len(present):
            time.sleep(PATIENCE)
    return [found[place] for place in range(len(present))]


def _measure_alone(shop: Workshop, bench: Bench, job: Job, way: Way) -> Measured | None:
    """One file of the shelf; None while another program is at it."""
    with shop.locked(f"{job.name}-{way.name}-figures") as is_mine:
        if not is_mine:
            return None
        kept = shop.shelf.read(job, way.name, digest=shop.digest(job.method, way.name))
        check_pictures(kept.path, kept.lines, shop.shown.ids)
        figures = _measure(shop, bench, job, way, kept)
    shown = (replace(line, captions=line.captions[:1]) for line in kept.lines if job.seed == 1)
    return Measured(Cell(job.method.name, way.name), job.seed, kept.made, tuple(shown), figures)


def _measure(shop: Workshop, bench: Bench, job: Job, way: Way, kept: Kept) -> Figures:
    path = shop.out / "scores" / f"{job.name}-{way.name}.npz"
    fluently = way.fluency and job.seed == 1
    measured_by = (bench.judge.identity, bench.encoder, tellapart.__version__, way.sets, fluently)
    key = hashlib.sha256(kept.path.read_bytes() + repr(measured_by).encode()).hexdigest()
    scores = read_scores(path, key=key)
    figures = bench.measure(way, kept.lines, known=scores, fluently=fluently)
    if scores is None:
        write_scores(path, figures.scores, key=key)
    return figures
