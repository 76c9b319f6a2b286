"""Competitors that take turns, so that a busy neighbour slows all of them alike."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

import torch

ENOUGH = 8.0  # seconds, of competitors some of whom are slow

Work = Callable[[], object]


def seconds(work: Work, clock: Callable[[], float] = time.perf_counter) -> float:
    """What one call takes by that clock."""
    started = clock()
    work()
    return clock() - started


def in_turns(
    works: Mapping[str, Work],
    rounds: int,
    *,
    enough: float = math.inf,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Seconds of each in each round, after one call that is not counted.

    Who took more than enough seconds is not asked for another round, nor are the others.
    """
    for work in works.values():
        work()
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            times[name].append(seconds(work, clock))
        if max(map(sum, times.values())) > enough:
            break
    return times


def milliseconds(rounds: Iterable[float], pieces: int = 1) -> list[float]:
    """What each of so many pieces took, of rounds told in seconds."""
    return [1000 * took / pieces for took in rounds]


@contextmanager
def threads(count: int) -> Iterator[None]:
    """So many threads of torch within the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
