"""Small plots as shapes that a template draws: sharp at any size, and nothing to load.

Places are in the units of a drawing that is 400 wide and 220 high, with room for words around the axes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

LEFT, RIGHT, TOP, BOTTOM = 46, 376, 12, 172
POINTS = 120  # of a curve

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a histogram."""

    x: float
    y: float
    width: float
    height: float
    label: str


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A plot: bars, or curves, between two axes."""

    title: str
    says: str  # in words, for those who cannot see it
    across: str  # what the axis below means
    ticks: tuple[Tick, ...]
    heights: tuple[Tick, ...]
    bars: tuple[Bar, ...] = ()
    curve: str = ""  # points of a line
    chance: str = ""  # points of the line that chance gives


def recall_chart(ranks: NDArray[np.int64], pool: int) -> Chart:
    """The share of captions whose picture is among the first K, for all K; ranks are counted from 0."""
    across = _logarithmic(1, max(pool, 2))
    at = np.unique(np.geomspace(1, pool, POINTS).round().astype(int))
    shares = [float((ranks < k).mean()) for k in at]
    return Chart(
        "How far down the list its picture is",
        f"{shares[0]:.0%} of the captions put their picture first; {_share_of_half(ranks)}",
        f"the first K of {pool:,} pictures",
        tuple(Tick(across(k), f"{k:,}") for k in _decades(1, pool)),
        tuple(Tick(_up(share), f"{share:.0%}") for share in (0, 0.25, 0.5, 0.75, 1)),
        curve=_points((across(k), _up(share)) for k, share in zip(at, shares, strict=True)),
        chance=_points((across(k), _up(k / pool)) for k in at),
    )


def spread_chart(pictures: NDArray[np.float64], pool: int) -> Chart:
    """Among how many pictures captions are torn."""
    last = max(pool, 2)
    across = _logarithmic(1, last)
    edges = np.geomspace(1, last, 19)
    labels = [f"{low:,.0f} to {high:,.0f} pictures" for low, high in pairwise(edges)]
    counts = np.histogram(np.clip(pictures, 1, last), edges)[0]
    return Chart(
        "How many pictures a caption fits",
        f"half of the captions fit {amount(float(np.median(pictures)))} or more",
        "pictures, by the judge",
        tuple(Tick(across(k), f"{k:,}") for k in _decades(1, last)),
        _counts(counts),
        bars=_bars(counts, [across(edge) for edge in edges], labels),
    )


def length_chart(lengths: NDArray[np.int64]) -> Chart:
    """How long captions are, in words; of very long ones, several lengths share a bar."""
    first, last = int(lengths.min()), int(lengths.max())
    step = max(1, math.ceil((last - first + 1) / 30))
    count = (last - first) // step + 1
    edges = [first + step * number for number in range(count + 1)]
    counts = np.histogram(lengths, [edge - 0.5 for edge in edges])[0]
    across = _linear(edges[0] - 0.5, edges[-1] - 0.5)
    labels = [_words(low, high - 1) for low, high in pairwise(edges)]
    every = max(1, math.ceil(count / 8))
    return Chart(
        "How long captions are",
        f"from {first} to {last} words, {lengths.mean():.1f} on average",
        "words",
        tuple(Tick(across(edge + (step - 1) / 2), str(edge)) for edge in edges[:-1:every]),
        _counts(counts),
        bars=_bars(counts, [across(edge - 0.5) for edge in edges], labels),
    )


def amount(value: float) -> str:
    """A number of things: whole where there are many, with a decimal where there are few."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def _share_of_half(ranks: NDArray[np.int64]) -> str:
    """How far one must look for half of the pictures."""
    first = int(np.sort(ranks)[(len(ranks) - 1) // 2]) + 1
    return "half or more do" if first == 1 else f"half have it among the first {first:,}"


def _words(first: int, last: int) -> str:
    return f"{first} words" if first == last else f"{first} to {last} words"


def _linear(first: float, last: float) -> Callable[[float], float]:
    return lambda value: LEFT + (RIGHT - LEFT) * (value - first) / (last - first)


def _logarithmic(first: float, last: float) -> Callable[[float], float]:
    return lambda value: LEFT + (RIGHT - LEFT) * math.log(value / first) / math.log(last / first)


def _up(share: float) -> float:
    return BOTTOM - (BOTTOM - TOP) * share


def _points(places: Iterable[Point]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def _decades(first: int, last: int) -> list[int]:
    """Round numbers: 1, 10, 100; where these are few, also 2 and 5 times as much."""
    digits = (1, 2, 5) if last < 300 else (1,)
    ticks = [digit * 10**power for power in range(len(str(last))) for digit in digits]
    return [tick for tick in ticks if first <= tick <= last]


def _counts(counts: NDArray[np.int64]) -> tuple[Tick, ...]:
    """Whole numbers on the axis at the left, the greatest count at its end."""
    most = int(counts.max())
    values = sorted({0, most // 2, most})
    return tuple(Tick(_up(value / most), f"{value:,}") for value in values)


def _bars(counts: NDArray[np.int64], edges: Sequence[float], labels: Sequence[str]) -> tuple[Bar, ...]:
    most = counts.max()
    found = []
    for count, left, right, label in zip(counts.tolist(), edges, edges[1:], labels, strict=False):
        top = _up(count / most)
        captions = "caption" if count == 1 else "captions"
        found.append(
            Bar(left + 0.75, top, right - left - 1.5, BOTTOM - top, f"{label}: {count:,} {captions}")
        )
    return tuple(found)
