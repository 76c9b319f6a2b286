"""Scenes as pictures.

Each thing is painted wholly inside its own ninth of the picture, so that things never hide one another and
two scenes look the same only if each ninth does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache

from PIL import Image, ImageDraw

from tellapart.data.shapes.scenes import Scene
from tellapart.errors import TellapartError

Point = tuple[float, float]

SMALLEST_SIDE = 32
BACKGROUND = (255, 255, 255)
PAINTS: Mapping[str, tuple[int, int, int]] = {
    "red": (220, 30, 35),
    "orange": (250, 140, 20),
    "yellow": (250, 220, 40),
    "green": (40, 160, 60),
    "blue": (35, 85, 215),
    "purple": (125, 50, 165),
    "pink": (250, 145, 190),
    "black": (20, 20, 20),
}
# Half the width of a thing, as a part of its ninth of the picture.
RADII: Mapping[str, float] = {"small": 0.22, "large": 0.45}
_FINENESS = 8  # outlines are drawn that much larger and shrunk, which smooths their edges


def draw(scene: Scene, *, side: int = 128) -> Image.Image:
    """The picture of a scene: a white square with each thing in the middle of its ninth."""
    if side < SMALLEST_SIDE:
        raise TellapartError(
            f"a picture of {side} pixels a side is too small to tell shapes apart",
            hint=f"draw it with {SMALLEST_SIDE} pixels a side or more",
        )
    picture = Image.new("RGB", (side, side), BACKGROUND)
    for thing in scene.things:
        corner = (side * thing.column // 3, side * thing.row // 3)
        picture.paste(PAINTS[thing.colour], corner, _stencil(thing.shape, thing.size, side // 3))
    return picture


@lru_cache(maxsize=256)
def _stencil(shape: str, size: str, side: int) -> Image.Image:
    """How much of each pixel the thing covers, 0 to 255."""
    fine = side * _FINENESS
    radius = fine * RADII[size]
    stencil = Image.new("L", (fine, fine), 0)
    corners = [(fine / 2 + radius * x, fine / 2 + radius * y) for x, y in OUTLINES[shape]]
    ImageDraw.Draw(stencil).polygon(corners, fill=255)
    return stencil.reduce(_FINENESS)


def _arc(centre: Point, radius: float, start: float, stop: float) -> Iterator[Point]:
    """Points of an arc between two angles in degrees, 0 pointing right and 90 down."""
    for step in range(49):
        angle = math.radians(start + (stop - start) * step / 48)
        yield centre[0] + radius * math.cos(angle), centre[1] + radius * math.sin(angle)


def _star() -> Iterator[Point]:
    for spike in range(10):
        angle = math.radians(36 * spike - 90)
        reach = 0.42 if spike % 2 else 1.0
        yield reach * math.cos(angle), reach * math.sin(angle)


def _heart() -> Iterator[Point]:
    for step in range(64):
        angle = math.tau * step / 64
        height = (
            13 * math.cos(angle) - 5 * math.cos(2 * angle) - 2 * math.cos(3 * angle) - math.cos(4 * angle)
        )
        yield math.sin(angle) ** 3, -(height + 2.5) / 16


def _moon() -> Iterator[Point]:
    """A crescent open to the right: most of the outer circle, and back along a circle that bites into it."""
    yield from _arc((0.15, 0.0), 1.0, 60.0, 300.0)
    yield from _arc((0.65, 0.0), 0.866, 270.0, 90.0)


# Corners of each shape, x to the right and y down, within a square from -1 to 1.
OUTLINES: Mapping[str, tuple[Point, ...]] = {
    "circle": tuple(_arc((0.0, 0.0), 1.0, 0.0, 360.0)),
    "square": ((-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)),
    "triangle": ((0.0, -0.9), (1.0, 0.8), (-1.0, 0.8)),
    "star": tuple(_star()),
    "cross": (
        *((-0.32, -0.95), (0.32, -0.95), (0.32, -0.32), (0.95, -0.32)),
        *((0.95, 0.32), (0.32, 0.32), (0.32, 0.95), (-0.32, 0.95)),
        *((-0.32, 0.32), (-0.95, 0.32), (-0.95, -0.32), (-0.32, -0.32)),
    ),
    "heart": tuple(_heart()),
    "diamond": ((0.0, -1.0), (0.7, 0.0), (0.0, 1.0), (-0.7, 0.0)),
    "moon": tuple(_moon()),
}
