"""CLIPScore and RefCLIPScore (Hessel et al. 2021) as formulas on unit vectors, whatever model they come from.

Section 3: CLIP-S(c, v) = w · max(cos(c, v), 0) with w = 2.5, and RefCLIP-S(c, R, v) is the harmonic mean of
CLIP-S(c, v) and max(max over r in R of cos(c, r), 0). In the authors' program, as here, the weight is on the
first of the two only. Where either is 0, so is the harmonic mean; their program leaves 0/0 undefined.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tellapart.metrics.score import Floats
from tellapart.metrics.sentences import Ints

WEIGHT = 2.5


def unit_rows(vectors: NDArray[np.floating]) -> Floats:
    """Rows scaled to length 1, in double precision; a row of zeros stays, and is like nothing."""
    wide = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    return np.asarray(np.divide(wide, lengths, out=np.zeros_like(wide), where=lengths > 0))


def clip_scores(captions: Floats, pictures: Floats) -> Floats:
    """CLIPScore of each caption and its picture: unit rows (n, d), (n, d) -> (n,)."""
    return np.asarray(WEIGHT * np.maximum(np.einsum("nd,nd->n", captions, pictures), 0.0))


def reference_similarities(captions: Floats, references: Floats, owners: Ints) -> Floats:
    """The cosine of each caption and the most similar of its references, or 0 where that is negative.

    Args:
        captions: unit rows (n, d).
        references: unit rows (m, d).
        owners: the number of the caption that each reference belongs to (m,).
    """
    nearest = np.zeros(len(captions))
    np.maximum.at(nearest, owners, np.einsum("md,md->m", captions[owners], references))
    return nearest


def reference_clip_scores(scores: Floats, similarities: Floats) -> Floats:
    """RefCLIPScore from the CLIPScore of each caption and its similarity to its references."""
    both = (scores > 0) & (similarities > 0)
    sums = np.where(both, scores + similarities, 1.0)
    return np.where(both, 2.0 * scores * similarities / sums, 0.0)
