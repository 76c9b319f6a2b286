"""Cost against the number of pictures, as a picture: a panel for seconds and one for memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageDraw

from tellapart.report.recall_curves import DRAWN, GREY, INK, PALE, STYLES, TITLE, Pen, Point
from tellapart.storage import new_file

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 380, 300, 70, 40, 56, 62
TICKS = 4


@dataclass(frozen=True, slots=True)
class Panel:
    """One cost of each number of pictures; `straight` is what it would be if each picture cost the same."""

    title: str
    sizes: Sequence[int]
    costs: Sequence[float]
    straight: Sequence[float] = ()

    @property
    def most(self) -> float:
        """Where the axis at the left ends."""
        return 1.1 * max(*self.costs, *self.straight)


def draw(path: Path, panels: Sequence[Panel]) -> None:
    """Write a PNG with the panels side by side."""
    size = (len(panels) * (LEFT + WIDTH + RIGHT), TOP + HEIGHT + BOTTOM)
    canvas = Image.new("RGB", (size[0] * DRAWN, size[1] * DRAWN), "white")
    pen = Pen(ImageDraw.Draw(canvas))
    for number, panel in enumerate(panels):
        _draw_panel(pen, panel, number * (LEFT + WIDTH + RIGHT) + LEFT)
    with new_file(path) as temporary:
        canvas.resize(size, Image.Resampling.LANCZOS).save(temporary, "PNG", optimize=True)


def _draw_panel(pen: Pen, panel: Panel, left: float) -> None:
    def point(pictures: float, cost: float) -> Point:
        return left + WIDTH * pictures / panel.sizes[-1], TOP + HEIGHT * (1 - cost / panel.most)

    pen.write((left + WIDTH / 2, TOP - 28), panel.title, anchor="mm", size=TITLE)
    for number in range(TICKS + 1):
        cost, pictures = panel.most * number / TICKS, panel.sizes[-1] * number / TICKS
        pen.line([point(0, cost), point(panel.sizes[-1], cost)], PALE)
        pen.write((left - 9, point(0, cost)[1]), f"{cost:,.0f}", anchor="rm", colour=GREY)
        pen.write((point(pictures, 0)[0], TOP + HEIGHT + 9), f"{pictures:,.0f}", anchor="mt", colour=GREY)
    pen.line([(left, TOP), point(0, 0), point(panel.sizes[-1], 0)], INK)
    pen.write((left + WIDTH / 2, TOP + HEIGHT + 42), "pictures", anchor="mm")
    for costs, (colour, _), width in ((panel.straight, STYLES[4], 1.0), (panel.costs, STYLES[0], 2.2)):
        points = [point(size, cost) for size, cost in zip(panel.sizes, costs, strict=False)]
        if points:
            pen.line(points, colour, width=width)
    for size, cost in zip(panel.sizes, panel.costs, strict=True):
        x, y = point(size, cost)
        pen.line([(x - 4, y), (x + 4, y)], STYLES[0][0], width=3)
        pen.line([(x, y - 4), (x, y + 4)], STYLES[0][0], width=3)
