"""Diversity of an image's candidates by latent semantic analysis (Wang and Chan 2019).

The spectrum is the singular values of the table of word counts, without weights and without a root.
"""

from __future__ import annotations

import numpy as np

from tellapart.metrics.material import Watch
from tellapart.metrics.overlap import Candidates, image_blocks, inner_products, of_images, shared_ngrams
from tellapart.metrics.score import Floats, Score, mean_score
from tellapart.metrics.spectrum import eigenvalues, spectral_diversity, square_roots


def lsa(candidates: Candidates, signature: str, watch: Watch) -> Score:
    """LSA diversity. An empty text counts as one empty word, as in the authors' program."""
    each = np.zeros(len(candidates))
    for images in image_blocks(len(candidates), candidates.width):
        watch("LSA", images.start, len(candidates))
        # The singular values of a table are the roots of the eigenvalues of its product with itself.
        each[images] = spectral_diversity(square_roots(eigenvalues(_products(candidates, images))))
    watch("LSA", len(candidates), len(candidates))
    return mean_score("LSA", each, f"{signature}|spectrum:singular-values")


def _products(candidates: Candidates, images: slice) -> Floats:
    lengths = candidates.lengths[images]
    words = of_images(candidates.orders[0], candidates.width, images)
    shared = shared_ngrams(words, candidates.width)
    weight = shared.count.astype(np.float64)
    products = inner_products(shared, weight, images=len(lengths), width=candidates.width)
    every = np.arange(candidates.width)
    squares = np.bincount(words.sentence, weights=words.count.astype(np.float64) ** 2, minlength=lengths.size)
    products[:, every, every] = squares.reshape(lengths.shape)
    is_empty = lengths == 0
    products += is_empty[:, :, None] & is_empty[:, None, :]
    return products
