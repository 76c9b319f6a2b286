"""Plots of a reproduction as shapes that a template draws: how runs learnt, and accuracy against finding.

Places are in the units of a drawing that is 640 wide and 300 high, and higher where a key stands below it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tellapart.report.charts import Tick
from tellapart.reproduction.findings import Chapter, Curve, Findings, Mark
from tellapart.reproduction.plan import Figure, Table

LEFT, RIGHT, TOP, BOTTOM = 52, 628, 12, 252
COLOURS = ("#2f6db3", "#a63f28", "#1f6f50", "#8a5a00", "#6b4aa0", "#0d7f86", "#b0307a", "#5f5f66")
DASHES = ("", "6 3", "2 3", "9 3 2 3")  # where there are more lines than colours
TICKS = 4
ABOVE_KEY, KEY_ROW, KEY_COLUMNS = 306, 18, 3
LEARNING = ("perplexity", "cider_d", "recall")  # measures on the validation split that every report draws


@dataclass(frozen=True, slots=True)
class Series:
    """A line, and whose it is."""

    name: str
    colour: str
    dash: str
    points: str
    key: tuple[float, float]  # where its name stands below the drawing


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

    name: str  # for a file
    title: str
    across: str
    ticks: tuple[Tick, ...]
    heights: tuple[Tick, ...]
    lines: tuple[Series, ...] = ()
    dots: tuple[Dot, ...] = ()

    @property
    def height(self) -> int:
        """Of the whole drawing."""
        return ABOVE_KEY + KEY_ROW * -(-len(self.lines) // KEY_COLUMNS)


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


def chapter_plots(chapter: Chapter, found: Findings) -> list[Plot]:
    """All that is drawn of a paper: what it wants drawn, its figures, and how its methods learnt."""
    paper, curves = chapter.paper, found.curves_of(chapter.paper)
    plots = [front_plot(found.marks(paper))]
    plots += [table_plot(table, found) for table in paper.tables if table.is_curve]
    plots += [figure_plot(_sized(figure, found), curves) for figure in paper.figures]
    plots += learning_plots([curve for curve in curves if curve.seed == 1])
    return [plot for plot in plots if plot is not None]


def learning_plots(curves: Sequence[Curve]) -> list[Plot]:
    """A plot for each measure that runs were validated by."""
    wanted = [measure for measure in LEARNING if any(curve.measure == measure for curve in curves)]
    return [
        _curves_plot(
            f"learning-{_slug(measure)}",
            f"{measure.replace('cider_d', 'CIDEr-D')} on the validation split, seed 1",
            [curve for curve in curves if curve.measure == measure],
        )
        for measure in wanted
    ]


def _sized(figure: Figure, found: Findings) -> Figure:
    """The figure of what was run: a smaller size under its own name."""
    return replace(figure, methods=tuple(map(found.chosen.name, figure.methods)))


def figure_plot(figure: Figure, curves: Iterable[Curve]) -> Plot | None:
    """A figure of a paper; None where nothing of it was run."""
    shown = [curve for curve in curves if curve.method in figure.methods and curve.measure == figure.measure]
    return _curves_plot(_slug(figure.name), f"{figure.name}: {figure.title}", shown) if shown else None


def _slug(name: str) -> str:
    """A name as part of a file's."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _curves_plot(name: str, title: str, curves: Sequence[Curve]) -> Plot:
    points = {
        f"{curve.method}, seed {curve.seed}": [
            (float(step), value) for step, value in zip(curve.steps, curve.values, strict=True)
        ]
        for curve in curves
    }
    methods = list(dict.fromkeys(curve.method for curve in curves))
    return _lines_plot((name, title, "steps"), points, [methods.index(curve.method) for curve in curves])


def table_plot(table: Table, found: Findings) -> Plot | None:
    """The rows of a table as lines over the numbers in its columns' labels; None where none was run."""
    across = [float(re.sub(r"[^\d.]", "", column.label)) for column in table.columns]
    points: dict[str, list[tuple[float, float]]] = {}
    for row in table.rows:
        values = [found.value(row.ours, column.measure) for column in table.columns]
        known = [
            (x, value * column.scale)
            for x, column, value in zip(across, table.columns, values, strict=True)
            if value is not None
        ]
        if known:
            points[row.label] = known
    label = re.sub(r"[\d.]+", "", table.columns[0].label).strip(" =")
    words = _slug(table.name), f"{table.name}: {table.title}", label
    return _lines_plot(words, points, range(len(points))) if points else None


def _lines_plot(
    words: tuple[str, str, str],
    points: Mapping[str, Sequence[tuple[float, float]]],
    groups: Iterable[int],
) -> Plot:
    """Lines by their names, those of one group in one colour; words: name, title and what is across."""
    axes = _Axes.around(
        [x for line in points.values() for x, _ in line], [y for line in points.values() for _, y in line]
    )
    lines = []
    for place, ((name, line), group) in enumerate(zip(points.items(), groups, strict=True)):
        row, column = divmod(place, KEY_COLUMNS)
        key = LEFT + column * (RIGHT - LEFT) / KEY_COLUMNS, ABOVE_KEY + KEY_ROW * row + 6.0
        colour, dash = COLOURS[group % len(COLOURS)], DASHES[group // len(COLOURS) % len(DASHES)]
        lines.append(Series(name, colour, dash, _points(axes, line), key))
    return Plot(*words, *axes.ticks(), lines=tuple(lines))


def _points(axes: _Axes, line: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in (axes.point(*point) for point in line))


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
    title = "CIDEr-D (up) against R@1 by the judge (across); large: no other is better in both"
    return Plot("front", title, "R@1", *axes.ticks(), dots=tuple(dots))
