"""Recall curves as a picture (m-RNN, Figure 6): the share of questions that the first K answers settle."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, pairwise
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from tellapart.metrics.retrieval import recall
from tellapart.retrieval import Found
from tellapart.storage import new_file

SIDE, LEFT, RIGHT, TOP, BOTTOM = 440, 66, 26, 76, 62  # pixels: the square between the axes, and around it
DRAWN = 3  # times as large as it is kept, which smooths the lines
POINTS = 160  # of a curve, evenly on its axis
TEXT, TITLE = 13, 15  # height of letters

Colour = tuple[int, int, int]
Point = tuple[float, float]

INK, GREY, PALE = (34, 34, 34), (110, 110, 110), (226, 226, 226)
# Okabe and Ito's colours, which nearly everybody tells apart; dashes (drawn, left out, …) tell the rest.
STYLES: Sequence[tuple[Colour, tuple[int, ...]]] = (
    ((0, 114, 178), ()),
    ((213, 94, 0), (12, 5)),
    ((0, 158, 115), (3, 4)),
    ((204, 121, 167), (12, 4, 3, 4)),
    ((90, 90, 90), (6, 3)),
)
WORDS = {
    "image-to-sentence": ("A picture looks for its sentences", "sentences"),
    "sentence-to-image": ("A sentence looks for its picture", "pictures"),
}


@dataclass(frozen=True, slots=True)
class Curve:
    """Recall@K at some K, from the first answer to the last."""

    name: str
    at: Sequence[int]
    recalls: Sequence[float]

    @classmethod
    def of(cls, found: Found) -> Curve:
        """The curve of some ranks."""
        at = np.unique(np.geomspace(1, found.pool, POINTS).round().astype(int)).tolist()
        return cls(found.normalisation, at, [recall(found.ranks, k) for k in at])


def write_curves(path: Path, found: Sequence[Found], *, title: str) -> None:
    """Write a PNG with a panel for each direction and in it a curve for each normalisation."""
    directions = list(dict.fromkeys(each.asked for each in found))
    width, height = len(directions) * (LEFT + SIDE + RIGHT), TOP + SIDE + BOTTOM
    canvas = Image.new("RGB", (width * DRAWN, height * DRAWN), "white")
    pen = Pen(ImageDraw.Draw(canvas))
    pen.write((width / 2, 20), title, anchor="mm", size=TITLE)
    for number, direction in enumerate(directions):
        curves = [Curve.of(each) for each in found if each.asked == direction]
        _draw_panel(pen, Axes(number * (LEFT + SIDE + RIGHT) + LEFT, curves[0].at[-1]), direction, curves)
    with new_file(path) as temporary:
        canvas.resize((width, height), Image.Resampling.LANCZOS).save(temporary, "PNG", optimize=True)


@dataclass(frozen=True, slots=True)
class Pen:
    """Draws by the pixels of the picture that is kept."""

    canvas: ImageDraw.ImageDraw

    def line(self, points: Sequence[Point], colour: Colour, *, width: float = 1) -> None:
        """Straight from point to point."""
        scaled = [(x * DRAWN, y * DRAWN) for x, y in points]
        self.canvas.line(scaled, colour, round(width * DRAWN), joint="curve")

    def clear(self, corner: Point, opposite: Point) -> None:
        """Make room for what is to be read."""
        self.canvas.rectangle([value * DRAWN for value in (*corner, *opposite)], "white")

    def write(self, at: Point, text: str, *, anchor: str, colour: Colour = INK, size: int = TEXT) -> None:
        """Text, of which the anchor (as Pillow names them) is at that point."""
        font = ImageFont.load_default(size * DRAWN)
        self.canvas.text((at[0] * DRAWN, at[1] * DRAWN), text, colour, font, anchor)


@dataclass(frozen=True, slots=True)
class Axes:
    """Where K, each decade as wide as the next, and recall stand on the picture."""

    left: float
    last: int  # the largest K

    def point(self, k: float, share: float) -> Point:
        """The place of recall@k."""
        across = math.log(k) / math.log(self.last) if self.last > 1 else 0.0
        return self.left + SIDE * across, TOP + SIDE * (1 - share)


def _draw_panel(pen: Pen, axes: Axes, direction: str, curves: Sequence[Curve]) -> None:
    heading, answers = WORDS[direction]
    middle = axes.left + SIDE / 2
    pen.write((middle, TOP - 22), heading, anchor="mm", size=TITLE)
    _draw_grid(pen, axes)
    _draw_legend(pen, axes, curves)
    pen.write((middle, TOP + SIDE + 42), f"the first K of {axes.last:,} {answers}", anchor="mm")
    for curve, (colour, dashes) in zip(curves, cycle(STYLES), strict=False):
        points = [axes.point(k, share) for k, share in zip(curve.at, curve.recalls, strict=True)]
        for piece in _dashed(points, dashes):
            pen.line(piece, colour, width=2.2)


def _draw_grid(pen: Pen, axes: Axes) -> None:
    for tenth in range(0, 11, 2):
        begin, end = axes.point(1, tenth / 10), (axes.left + SIDE, axes.point(1, tenth / 10)[1])
        pen.line([begin, end], PALE)
        pen.write((begin[0] - 9, begin[1]), f"{tenth * 10} %", anchor="rm", colour=GREY)
    for k in _ticks(axes.last):
        foot, head = axes.point(k, 0), axes.point(k, 1)
        pen.line([foot, head], PALE)
        pen.write((foot[0], foot[1] + 9), f"{k:,}", anchor="mt", colour=GREY)
    corner = axes.point(1, 0)
    pen.line([axes.point(1, 1), corner, (axes.left + SIDE, corner[1])], INK)
    pen.write((axes.left - 9, TOP - 22), "R@K", anchor="rm")


def _draw_legend(pen: Pen, axes: Axes, curves: Sequence[Curve]) -> None:
    """In the lower right corner, where a curve that starts low and ends at 1 leaves room."""
    bottom, left = TOP + SIDE - 18, axes.left + SIDE - 206
    pen.clear((left - 8, bottom - 22 * len(curves) + 8), (axes.left + SIDE - 2, TOP + SIDE - 4))
    for place, (curve, (colour, dashes)) in enumerate(zip(curves, cycle(STYLES), strict=False)):
        height = bottom - 22 * (len(curves) - 1 - place)
        for piece in _dashed([(left, height), (left + 48, height)], dashes):
            pen.line(piece, colour, width=2.2)
        pen.write((left + 58, height), curve.name, anchor="lm")


def _ticks(last: int) -> list[int]:
    """Round numbers up to the last: 1, 2, 5, 10, 20 and so on; on a long axis 1, 5, 10, 50."""
    digits = (1, 2, 5) if last <= 1000 else (1, 5)
    ticks = (digit * 10**power for power in range(len(str(last))) for digit in digits)
    return [tick for tick in ticks if tick <= last]


def _dashed(points: Sequence[Point], dashes: Sequence[int]) -> Iterator[list[Point]]:
    """The line cut into the pieces that are drawn; all of it where there are no dashes."""
    if not dashes:
        yield list(points)
        return
    lengths = cycle(dashes)
    left, drawn, piece = float(next(lengths)), True, [points[0]]
    for (x, y), end in pairwise(points):
        way = math.dist((x, y), end)
        at = 0.0
        while way - at >= left:
            at += left
            corner = (x + (end[0] - x) * at / way, y + (end[1] - y) * at / way)
            if drawn:
                yield [*piece, corner]
            left, drawn, piece = float(next(lengths)), not drawn, [corner]
        left -= way - at
        piece.append(end)
    if drawn:
        yield piece
