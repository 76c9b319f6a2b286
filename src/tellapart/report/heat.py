"""A picture coloured where a captioner looked: orange there, pale grey elsewhere."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageOps

from tellapart.arrays import Float64

DARKEST, BRIGHTEST = 55, 215  # greys of the picture: neither its night nor its snow hides the colour
ORANGE = (255, 110, 0)
COVER = 0.8  # how much of the grey the colour hides where it is strongest


def colour(picture: Image.Image, shares: Float64[np.ndarray, "rows columns"]) -> Image.Image:
    """Lay a map over the whole picture, each of its cells an equal part of it.

    The cell with the greatest share has most colour, one with none has none; and the whole the less, the
    less attention the picture had: what went elsewhere colours nothing. Attention that is spread evenly over
    the picture colours all of it, and does not look as if it had chosen.
    """
    strength = shares * (min(1.0, shares.sum()) / (shares.max() or 1.0))
    cells = Image.fromarray(strength.astype(np.float32))
    lit = np.asarray(cells.resize(picture.size, Image.Resampling.BICUBIC)).clip(0, 1)
    mask = Image.fromarray(np.rint(lit * (255 * COVER)).astype(np.uint8))
    step = (BRIGHTEST - DARKEST) / 255
    grey = ImageOps.grayscale(picture).point(lambda value: int(DARKEST + step * value)).convert("RGB")
    return Image.composite(Image.new("RGB", picture.size, ORANGE), grey, mask)
