"""An encoder without weights: the pixels themselves, cut into a grid.

Enough for drawn scenes of a few colours and shapes, and a thousand times cheaper than a network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from PIL import Image

from tellapart.arrays import Float32
from tellapart.vision.encoder import Encoder
from tellapart.vision.features import Features

CELLS = 9  # a side of the grid, as in the default encoder
CELL = 6  # pixels a side of a cell
SIDE = CELLS * CELL


@dataclass(frozen=True, slots=True)
class Patches:
    """Each cell's pixels as its feature; the whole picture's as the pooled one."""

    name: str = "patches"
    identity: str = f"patches-{CELLS}x{CELL}"
    class_names: tuple[str, ...] = ()
    shapes: Mapping[str, tuple[int, ...]] = field(
        default_factory=lambda: {
            "grid": (CELLS * CELLS, CELL * CELL * 3),
            "pooled": (SIDE * SIDE * 3,),
            "classes": (0,),
        }
    )
    size: int = SIDE
    batch_size: int = 1
    threads: int = 1

    def prepare(self, picture: Image.Image) -> Float32[np.ndarray, "3 h w"]:
        """Shrink to the grid's pixels, each channel between -1 and 1."""
        small = np.asarray(picture.resize((SIDE, SIDE), Image.Resampling.BOX), dtype=np.float32)
        return np.ascontiguousarray(small.transpose(2, 0, 1) / 127.5 - 1)

    def encode(self, pixels: Float32[np.ndarray, "b 3 h w"]) -> Features:
        """Cut into cells."""
        batch = len(pixels)
        cells = pixels.reshape(batch, 3, CELLS, CELL, CELLS, CELL).transpose(0, 2, 4, 3, 5, 1)
        half = cells.astype(np.float16)
        return Features(
            grid=half.reshape(batch, *self.shapes["grid"]),
            pooled=half.reshape(batch, *self.shapes["pooled"]),
            classes=np.empty((batch, 0), np.float16),
        )


def build() -> Encoder:
    """The one there is."""
    return Patches()
