"""What an encoder is: pixels in, features out, and a name that changes whenever the features would."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import numpy as np
from PIL import Image

from tellapart.arrays import Float32
from tellapart.vision.features import Features
from tellapart.vision.nouns import name_in_words
from tellapart.vision.traits import EncoderTraits


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


def traits_of(encoder: Encoder) -> EncoderTraits:
    """What a captioner must know of an encoder at hand."""
    return EncoderTraits(
        name=encoder.name,
        identity=encoder.identity,
        shapes=dict(encoder.shapes),
        nouns=tuple(map(name_in_words, encoder.class_names)),
    )
