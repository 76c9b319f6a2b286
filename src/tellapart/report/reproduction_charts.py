"""Plots of a reproduction as shapes that a template draws: how runs learnt, and accuracy against finding.

Places are in the units of a drawing that is 640 wide and 300 high.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle

from tellapart.report.charts import Tick
from tellapart.reproduction.findings import Curve, Mark

LEFT, RIGHT, TOP, BOTTOM = 52, 628, 12, 252
COLOURS = ("#2f6db3", "#a63f28", "#1f6f50", "#8a5a00", "#6b4aa0", "#0d7f86", "#b0307a", "#5f5f66")
TICKS = 4


@dataclass(frozen=True, slots=True)
class Series:
    """A line, and whose it is."""

    name: str
    colour: str
    points: str


@dataclass(frozen=True, slots=True)
class Dot:
    """A mark with its name."""

    x: float
    y: float
    name: str
    label: str  # "" where it would stand on another
    is_best: bool  # whether no other is better in both


@dataclass(frozen=True, slots=True)
class Plot:
    """What a template draws."""

    title: str
    across: str
    ticks: tuple[Tick, ...]
    heights: tuple[Tick, ...]
    lines: tuple[Series, ...] = ()
    dots: tuple[Dot, ...] = ()


@dataclass(frozen=True, slots=True)
class _Axes:
    across: tuple[float, float]
    up: tuple[float, float]

    @classmethod
    def around(cls, xs: Sequence[float], ys: Sequence[float]) -> _Axes:
        """With a little room on all sides."""
        return cls(_room(xs), _room(ys))

    def point(self, x: float, y: float) -> tuple[float, float]:
        """The place of a value."""
        (first, last), (low, high) = self.across, self.up
        return (
            LEFT + (RIGHT - LEFT) * (x - first) / (last - first),
            BOTTOM - (BOTTOM - TOP) * (y - low) / (high - low),
        )

    def ticks(self) -> tuple[tuple[Tick, ...], tuple[Tick, ...]]:
        """Marks on both axes."""
        across = tuple(Tick(self.point(x, self.up[0])[0], f"{x:.3g}") for x in _steps(self.across))
        return across, tuple(Tick(self.point(self.across[0], y)[1], f"{y:.3g}") for y in _steps(self.up))


def _room(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    room = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
    return low - room, high + room


def _steps(ends: tuple[float, float]) -> list[float]:
    low, high = ends
    return [low + (high - low) * (number + 0.5) / TICKS for number in range(TICKS)]


def learning_plots(curves: Sequence[Curve]) -> list[Plot]:
    """A plot for each measure that runs were validated by."""
    plots = []
    for measure in dict.fromkeys(curve.measure for curve in curves):
        some = [curve for curve in curves if curve.measure == measure]
        axes = _Axes.around(
            [float(step) for curve in some for step in curve.steps],
            [value for curve in some for value in curve.values],
        )
        methods = list(dict.fromkeys(curve.method for curve in some))
        colours = dict(zip(methods, cycle(COLOURS), strict=False))
        lines = tuple(Series(curve.job, colours[curve.method], _points(axes, curve)) for curve in some)
        title = f"{measure} on the validation split"
        plots.append(Plot(title, "steps", *axes.ticks(), lines=lines))
    return plots


def _points(axes: _Axes, curve: Curve) -> str:
    places = (axes.point(step, value) for step, value in zip(curve.steps, curve.values, strict=True))
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def front_plot(marks: Sequence[Mark]) -> Plot | None:
    """Accuracy against how often captions find their picture; None where nothing was run."""
    if not marks:
        return None
    axes = _Axes.around([mark.found for mark in marks], [mark.accuracy for mark in marks])
    dots: list[Dot] = []
    for mark in sorted(marks, key=lambda mark: not mark.is_best):  # the best get their names first
        x, y = axes.point(mark.found, mark.accuracy)
        is_free = all(abs(dot.x - x) > 95 or abs(dot.y - y) > 11 for dot in dots if dot.label)
        dots.append(Dot(x, y, mark.name, mark.name if is_free else "", mark.is_best))
    return Plot("CIDEr-D (up) against R@1 by the judge (across)", "R@1", *axes.ticks(), dots=tuple(dots))
