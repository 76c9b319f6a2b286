"""What an encoder sees in pictures, in arrays."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tellapart.arrays import Float16

PARTS = ("grid", "pooled", "classes")


def in_order(parts: Collection[str]) -> list[str]:
    """Names of parts in the one order in which they are stored and passed on."""
    return [part for part in PARTS if part in parts]


@dataclass(frozen=True, slots=True)
class Features:
    """What an encoder sees in a batch of pictures.

    Always half precision: features are rounded once, where they are made, so that a caption never depends
    on whether they came from the cache or fresh from the encoder.
    """

    grid: Float16[np.ndarray, "b n d"]  # one vector a place in the picture, row by row
    pooled: Float16[np.ndarray, "b p"]  # one vector for the whole picture
    classes: Float16[np.ndarray, "b c"]  # probability of each named class; c = 0 where the encoder names none

    def row(self, number: int) -> Features:
        """One picture's features, as a batch of one."""
        rows = slice(number, number + 1)
        return Features(self.grid[rows], self.pooled[rows], self.classes[rows])

    def only(self, parts: Collection[str]) -> Features:
        """These parts; the others emptied, so that nobody carries what nobody asked for."""
        return Features(*(kept if part in parts else kept[:, :0] for part, kept in self._parts()))

    def _parts(self) -> Iterator[tuple[str, Float16[np.ndarray, "b ..."]]]:
        return zip(PARTS, (self.grid, self.pooled, self.classes), strict=True)


def stack(features: Sequence[Features]) -> Features:
    """Several batches as one."""
    return Features(*(np.concatenate([getattr(some, part) for some in features]) for part in PARTS))
