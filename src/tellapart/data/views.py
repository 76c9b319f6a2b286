"""Views of a photograph to train on, the whole, its mirror image and parts: less is learnt by heart."""

from __future__ import annotations

import hashlib

import numpy as np
from PIL import Image

WHOLE = 0
EDITION = b""  # of how views are drawn: whoever changes that gives it another value
LEAST_AREA, STRETCH = (
    0.55,
    0.2,
)  # of a part: its share of the area, and the logarithm of how far it is stretched


def view_of(picture: Image.Image, digest: bytes, number: int) -> Image.Image:
    """The view of that number: 0 is the whole, 1 its mirror image, 2 a part, 3 a mirrored part, and so on.

    Which part depends on the picture's digest and the number alone.
    """
    if number >= 2:
        picture = picture.crop(_part(picture.size, np.random.default_rng([*digest, number])))
    return picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if number % 2 else picture


def draw_view(count: int, *, seed: int, epoch: int, row: int) -> int:
    """Which of so many views of a picture an epoch sees."""
    return int(np.random.default_rng([seed, epoch, row, 2]).integers(count))


def view_digest(digest: bytes, number: int) -> bytes:
    """What a view is known by: the whole picture's own digest, or one made of it and the number."""
    return digest if number == WHOLE else hashlib.sha256(digest + number.to_bytes(4) + EDITION).digest()


def _part(size: tuple[int, int], random: np.random.Generator) -> tuple[int, int, int, int]:
    area, stretch = random.uniform(LEAST_AREA, 1.0), np.exp(random.uniform(-STRETCH, STRETCH))
    (width, height), share = size, np.sqrt(area)
    wide, high = min(width, width * share * stretch), min(height, height * share / stretch)
    left, top = random.uniform(0, width - wide), random.uniform(0, height - high)
    return int(left), int(top), max(int(left) + 1, int(left + wide)), max(int(top) + 1, int(top + high))
