"""Attention as maps over the picture: which of its columns are places of the grid, and where these lie.

All encoders here squeeze the whole picture into the square (or rectangle) of pixels that their network wants,
so that the grid covers the whole picture, row by row, each place an equal share of it. A network's place sees
more than its share; the map says where it stands, not how far it sees.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from tellapart.arrays import Float, Float64

CONCEPTS = "concept words"
SENTINEL = "the sentinel"  # of adaptive attention: what is already written
SIGN = "the sign of the whole picture"  # the class token of a vision transformer
REST = "what is no place in the picture"


@dataclass(frozen=True, slots=True)
class Layout:
    """What the columns of attention stand for.

    Attributes:
        rows: of the grid.
        columns: of the grid.
        first: the first column of attention that is a place of the grid; the others follow.
        others: what stands beside the grid, by name.
    """

    rows: int
    columns: int
    first: int = 0
    others: Mapping[str, range] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Looks:
    """Where the tokens of a caption looked: shares of attention, which over map and others sum to 1."""

    maps: Float64[np.ndarray, "t rows columns"]
    elsewhere: Mapping[str, Float64[np.ndarray, " t"]]

    def over(self, tokens: range) -> tuple[Float64[np.ndarray, "rows columns"], dict[str, float]]:
        """The mean of several tokens: that of a word that has more than one."""
        places = slice(tokens.start, tokens.stop)
        shares = {name: float(share[places].mean()) for name, share in self.elsewhere.items()}
        return self.maps[places].mean(0), shares


def find_layout(
    attended: int, places: int, pixels: tuple[int, int], *, concepts: int = 0, sentinel: bool = False
) -> Layout | None:
    """What the columns of attention stand for; None where the grid is no rectangle of the picture's shape.

    Args:
        attended: columns of attention.
        places: of the grid, which are the first columns; of them the first may be a sign of the whole
            picture, as vision transformers have it.
        pixels: height and width of what the encoder looks at.
        concepts: columns of concept words, which follow the grid.
        sentinel: whether the last column is the sentinel's.
    """
    for first in (0, 1):
        if (shape := _rectangle(places - first, pixels)) is None:
            continue
        kept = {
            SIGN: range(first),
            CONCEPTS: range(places, places + concepts),
            SENTINEL: range(attended - sentinel, attended),
            REST: range(places + concepts, attended - sentinel),
        }
        return Layout(*shape, first, {name: columns for name, columns in kept.items() if len(columns)})
    return None


def _rectangle(places: int, pixels: tuple[int, int]) -> tuple[int, int] | None:
    """Rows and columns of a grid of square cells over that many pixels."""
    height, width = pixels
    rows = round(math.sqrt(max(0, places) * height / width))
    if rows < 1 or places % rows:
        return None
    columns = places // rows
    # Where a side is no multiple of the cell, the network rounds: less than a cell either way.
    return (rows, columns) if abs(columns - rows * width / height) < 1 else None


def read_looks(attention: Float[Tensor, "h t n"], layout: Layout) -> Looks:
    """Where one caption's tokens looked: the mean over the heads of a layer."""
    weights = attention.double().mean(0).cpu().numpy()
    grid = weights[:, layout.first : layout.first + layout.rows * layout.columns]
    return Looks(
        grid.reshape(-1, layout.rows, layout.columns),
        {name: weights[:, columns.start : columns.stop].sum(1) for name, columns in layout.others.items()},
    )
