"""All races of the project, one benchmark after another, and one table of them.

    TELLAPART_DATA=DATA python -m benchmarks.everything [--full] [--only NAME …]

Small sizes, which end within ten minutes on 2 cores (the very first time Flickr8k's photographs are looked at
and METEOR's index is made as well, three minutes more); `--full` takes the sizes that each benchmark has when
it runs by itself. Every ratio is of competitors that took turns. What comes is told on stderr, the table goes
to stdout. A benchmark that misses data or a library says so in its row, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import torch

from benchmarks import captioners, collection, likelihood, metrics, objective_cost, pipeline, search
from benchmarks.machine import machine
from benchmarks.race import NotRun, Race, table
from benchmarks.turns import threads
from tellapart.errors import TellapartError
from tellapart.extras import in_short

Races = Callable[[], Iterator[Race]]


@dataclass(frozen=True)
class Benchmark:
    """One benchmark in both sizes."""

    full: Races
    small: Races


BENCHMARKS: Mapping[str, Benchmark] = {
    "pipeline": Benchmark(
        pipeline.races, partial(pipeline.races, images=100, steps=10, sentences=50, captioned=(50, 200))
    ),
    "metrics": Benchmark(metrics.races, partial(metrics.races, rounds=2)),
    "captioners": Benchmark(
        partial(captioners.races, ("grouped", "products")),
        partial(captioners.races, ("grouped", "products"), rounds=2, presets=("small",)),
    ),
    # By itself, as it alone needs transformers.
    "blip": Benchmark(
        partial(captioners.races, ("blip",)), partial(captioners.races, ("blip",), rounds=2, batches=(1, 2))
    ),
    "likelihood": Benchmark(likelihood.races, partial(likelihood.races, rounds=2, images=10, count=100)),
    "search": Benchmark(search.races, partial(search.races, sizes=(1_000, 10_000), rounds=3)),
    "collection": Benchmark(collection.races, partial(collection.races, count=100, rounds=2, by_blip=4)),
    "objectives": Benchmark(objective_cost.races, partial(objective_cost.races, captioner="mrnn", rounds=2)),
}


def hold(name: str, *, full: bool) -> Iterator[Race | NotRun]:
    """The races of one benchmark; one that fails keeps no other from its turn."""
    benchmark = BENCHMARKS[name]
    try:
        with threads(torch.get_num_threads()):  # some choose how many for themselves
            yield from benchmark.full() if full else benchmark.small()
    except Exception as error:
        if not isinstance(error, TellapartError):
            traceback.print_exc()
        yield NotRun(name, in_short(error))


def main() -> None:
    """Hold them, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--full", action="store_true", help="the sizes that each has when it runs by itself")
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=list(BENCHMARKS), metavar="NAME")
    arguments = parser.parse_args()
    began, where = time.perf_counter(), machine()
    rows: list[Race | NotRun] = []
    for number, name in enumerate(arguments.only, 1):
        print(f"{name}, {number} of {len(arguments.only)} …", file=sys.stderr, flush=True)
        for row in hold(name, full=arguments.full):
            minutes = (time.perf_counter() - began) / 60
            print(f"  {minutes:.1f} min  {row}", file=sys.stderr, flush=True)
            rows.append(row)
    print(f"{where} before it began; {(time.perf_counter() - began) / 60:.0f} minutes\n\n{table(rows)}")
    sys.exit(any(isinstance(row, NotRun) for row in rows))


if __name__ == "__main__":
    main()
