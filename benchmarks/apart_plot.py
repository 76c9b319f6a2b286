"""CIDEr-D against R@1 as a picture: each family of ways is a line through its settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from PIL import Image, ImageDraw

from tellapart.report.recall_curves import DRAWN, GREY, INK, PALE, STYLES, Pen, Point
from tellapart.storage import new_file

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 620, 440, 70, 250, 54, 60


@dataclass(frozen=True, slots=True)
class Mark:
    """What one way came to."""

    family: str
    setting: str
    recall: float
    accuracy: float


@dataclass(frozen=True, slots=True)
class Axes:
    """Where recall (across) and CIDEr-D (up) stand on the picture."""

    recalls: tuple[float, float]
    accuracies: tuple[float, float]

    def point(self, recall: float, accuracy: float) -> Point:
        """The place of a mark."""
        (low, high), (bottom, top) = self.recalls, self.accuracies
        across, up = (recall - low) / (high - low), (accuracy - bottom) / (top - bottom)
        return LEFT + WIDTH * across, TOP + HEIGHT * (1 - up)


def draw(path: Path, marks: Sequence[Mark], *, title: str, people: float) -> None:
    """Write a PNG."""
    size = (LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM)
    canvas = Image.new("RGB", (size[0] * DRAWN, size[1] * DRAWN), "white")
    pen = Pen(ImageDraw.Draw(canvas))
    recalls, accuracies = [mark.recall for mark in marks] + [people], [mark.accuracy for mark in marks]
    axes = Axes((min(recalls) - 0.02, max(recalls) + 0.02), (min(accuracies) - 0.02, max(accuracies) + 0.02))
    pen.write((LEFT + WIDTH / 2, 20), title, anchor="mm", size=15)
    _grid(pen, axes)
    foot, head = axes.point(people, axes.accuracies[0]), axes.point(people, axes.accuracies[1])
    pen.line([foot, head], GREY)
    pen.write((head[0] + 4, head[1] + 8), "people", anchor="lm", colour=GREY)
    families = list(dict.fromkeys(mark.family for mark in marks))
    for place, (family, (colour, _)) in enumerate(zip(families, cycle(STYLES), strict=False)):
        some = [mark for mark in marks if mark.family == family]
        points = [axes.point(mark.recall, mark.accuracy) for mark in some]
        if len(points) > 1:
            pen.line(points, colour, width=1.6)
        for mark, (x, y) in zip(some, points, strict=True):
            _sign(pen, (x, y), place, colour)
            pen.write((x + 6, y - 8), mark.setting, anchor="lm", colour=GREY, size=10)
        height = TOP + 14 + 22 * place
        _sign(pen, (LEFT + WIDTH + 24, height), place, colour)
        pen.write((LEFT + WIDTH + 36, height), family, anchor="lm")
    with new_file(path) as temporary:
        canvas.resize(size, Image.Resampling.LANCZOS).save(temporary, "PNG", optimize=True)


def _sign(pen: Pen, at: Point, place: int, colour: tuple[int, int, int]) -> None:
    """A cross, upright or slanting, or both: families share colours."""
    x, y = at
    strokes = [((-4, 0), (4, 0)), ((0, -4), (0, 4)), ((-3, -3), (3, 3)), ((-3, 3), (3, -3))]
    for (left, upper), (right, lower) in (strokes[:2], strokes[2:], strokes)[place // len(STYLES) % 3]:
        pen.line([(x + left, y + upper), (x + right, y + lower)], colour, width=2)


def _grid(pen: Pen, axes: Axes) -> None:
    for percent in range(round(axes.recalls[0] * 100), round(axes.recalls[1] * 100) + 1):
        if percent % 5 == 0 and axes.recalls[0] <= percent / 100 <= axes.recalls[1]:
            foot, head = (axes.point(percent / 100, end) for end in axes.accuracies)
            pen.line([foot, head], PALE)
            pen.write((foot[0], foot[1] + 9), f"{percent} %", anchor="mt", colour=GREY)
    for percent in range(round(axes.accuracies[0] * 100), round(axes.accuracies[1] * 100) + 1):
        if percent % 5 == 0 and axes.accuracies[0] <= percent / 100 <= axes.accuracies[1]:
            begin, end = (axes.point(side, percent / 100) for side in axes.recalls)
            pen.line([begin, end], PALE)
            pen.write((begin[0] - 9, begin[1]), f".{percent:02d}", anchor="rm", colour=GREY)
    corner = axes.point(axes.recalls[0], axes.accuracies[0])
    pen.line([(corner[0], TOP), corner, (LEFT + WIDTH, corner[1])], INK)
    pen.write((LEFT + WIDTH / 2, TOP + HEIGHT + 42), "R@1 by the judge", anchor="mm")
    pen.write((LEFT - 9, TOP - 16), "CIDEr-D", anchor="rm")
