"""What an encoder is: pixels in, features out, and a name that changes whenever the features would."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float16, Float32
from PIL import Image

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


@runtime_checkable
class Encoder(Protocol):
    """A frozen network that turns pictures into features. Safe to call from several threads at once."""

    @property
    def name(self) -> str:
        """The full name, as a recipe writes it."""
        ...

    @property
    def identity(self) -> str:
        """Name and content hash of weights and preprocessing: the key of the feature cache."""
        ...

    @property
    def class_names(self) -> tuple[str, ...]:
        """What each of Features.classes is called."""
        ...

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Of one picture's part, by its name in PARTS."""
        ...

    @property
    def size(self) -> int:
        """Pixels a side of what it looks at, so that large JPEGs need not be decoded in full."""
        ...

    @property
    def batch_size(self) -> int:
        """How many pictures one call to `encode` handles best."""
        ...

    @property
    def threads(self) -> int:
        """How many calls to `encode` should run at once."""
        ...

    def prepare(self, picture: Image.Image) -> Float32[np.ndarray, "3 h w"]:
        """Resize and normalise one RGB picture."""
        ...

    def encode(self, pixels: Float32[np.ndarray, "b 3 h w"]) -> Features:
        """Features of a batch of prepared pictures."""
        ...
