"""SelfCIDEr: diversity of an image's candidates by the spectrum of their CIDEr to one another.

Two kernels are in print, whose values cannot be compared. SelfCIDEr takes plain CIDEr, a cosine, and its
eigenvalues (self-critical); SelfCIDEr-D takes CIDEr-D (DiversityMetrics, Wang and Chan 2019), which is not
symmetric: the similarity of a candidate to a later one stands for both directions, so that the order of the
candidates matters a little, and singular values take the place of eigenvalues.
"""

from __future__ import annotations

import numpy as np

from tellapart.metrics.cider import ORDERS, SIGMA
from tellapart.metrics.frequencies import CorpusFrequencies, DocumentFrequencies, find_frequencies
from tellapart.metrics.material import Material, Watch
from tellapart.metrics.overlap import (
    Candidates,
    Shared,
    image_blocks,
    inner_products,
    of_images,
    shared_ngrams,
)
from tellapart.metrics.score import Floats, Score, mean_score
from tellapart.metrics.sentences import Ints, Sentences, spread
from tellapart.metrics.spectrum import eigenvalues, spectral_diversity, square_roots


def self_cider(candidates: Candidates, rarities: list[Floats], signature: str, watch: Watch) -> list[Score]:
    """SelfCIDEr and SelfCIDEr-D; `rarities` are the inverse document frequencies of the n-grams."""
    plain, clipped = np.zeros(len(candidates)), np.zeros(len(candidates))
    for images in image_blocks(len(candidates), candidates.width):
        watch("SelfCIDEr", images.start, len(candidates))
        kernel, kernel_d = cider_kernels(candidates, rarities, images)
        plain[images] = spectral_diversity(square_roots(eigenvalues(kernel)))
        # The singular values of a symmetric matrix are its eigenvalues without their signs.
        clipped[images] = spectral_diversity(square_roots(np.abs(eigenvalues(kernel_d))))
    watch("SelfCIDEr", len(candidates), len(candidates))
    notes = _weightless(candidates, rarities)
    return [
        mean_score("SelfCIDEr", plain, f"{signature}|kernel:CIDEr|spectrum:eigenvalues", notes=notes),
        mean_score(
            "SelfCIDEr-D",
            clipped,
            f"{signature}|kernel:CIDEr-D|sigma:{SIGMA:g}|spectrum:singular-values",
            notes=notes,
        ),
    ]


def _weightless(candidates: Candidates, rarities: list[Floats]) -> tuple[str, ...]:
    """What to say of images whose candidates hold nothing that CIDEr weighs."""
    heavy = np.zeros(len(candidates), dtype=bool)
    for grams, rarity in zip(candidates.orders, rarities, strict=True):
        heavy[grams.sentence[rarity[grams.gram] > 0] // candidates.width] = True
    count = int(np.count_nonzero(~heavy))
    if not count:
        return ()
    why = "is empty or stands in every document that frequencies were counted in"
    return (f"SelfCIDEr counts as 0 for {count} of {len(heavy)} images: all that their candidates say {why}",)


def choose_frequencies(material: Material, source: str) -> tuple[DocumentFrequencies, list[Sentences]]:
    """Document frequencies, and the corpora to count n-grams in: the candidates first."""
    words = material.candidate_words
    if source == "candidates":
        images = len(material)
        return CorpusFrequencies(f"candidates({images})", images, words, are_references=True), [words]
    if source == "references":
        material.expect_references("SelfCIDEr with document frequencies of the references")
        return find_frequencies(material, source), [words, material.reference_words]
    frequencies = find_frequencies(material, source)
    return frequencies, [words, *frequencies.corpora]


def cider_kernels(candidates: Candidates, rarities: list[Floats], images: slice) -> tuple[Floats, Floats]:
    """CIDEr and CIDEr-D of the candidates of some images to one another, without the factor 10.

    Each is (images, width, width); of CIDEr-D the row is the candidate and the column the reference above
    the diagonal, and what is below mirrors it.
    """
    lengths = candidates.lengths[images]
    plain = np.zeros((*lengths.shape, candidates.width))
    clipped = np.zeros_like(plain)
    for grams, rarity in zip(candidates.orders, rarities, strict=True):
        some = of_images(grams, candidates.width, images)
        squares = np.bincount(
            some.sentence, weights=(some.count * rarity[some.gram]) ** 2, minlength=lengths.size
        ).reshape(lengths.shape)
        shared = shared_ngrams(some, candidates.width)
        weight = shared.count * rarity[shared.gram]
        products = inner_products(shared, weight, images=len(lengths), width=candidates.width)
        every = np.arange(candidates.width)
        products[:, every, every] = squares
        norms = np.sqrt(squares)
        norms[norms == 0] = 1.0
        below = norms[:, :, None] * norms[:, None, :]
        plain += products / below
        clipped += (products - _excess(shared, rarity, products.shape)) / below
    # COCO's programs count bigrams for the length: one less for all texts but empty ones, whose row is 0.
    difference = lengths[:, :, None] - lengths[:, None, :]
    clipped *= np.exp(-(difference**2) / (2 * SIGMA**2))
    return plain / ORDERS, _mirrored(clipped) / ORDERS


def _excess(shared: Shared, rarity: Floats, shape: tuple[int, ...]) -> Floats:
    """By how much clipping lowers the product of a text with each later one of its image."""
    # Rows are sorted by count within a run: whatever a text holds more often than others comes after them.
    often = np.flatnonzero(shared.count > shared.count[shared.begin])
    pair, other = spread(shared.begin[often], often)
    one = often[pair]
    later = shared.text[one] < shared.text[other]
    one, other = one[later], other[later]
    surplus = (shared.count[one] - shared.count[other]) * shared.count[other]
    cell = _cells(shared, one, other, shape)
    lowered = surplus * rarity[shared.gram[one]] ** 2
    size = int(np.prod(shape))
    return np.asarray(np.bincount(cell, weights=lowered, minlength=size), dtype=np.float64).reshape(shape)


def _cells(shared: Shared, one: Ints, other: Ints, shape: tuple[int, ...]) -> Ints:
    return (shared.image[one] * shape[1] + shared.text[one]) * shape[2] + shared.text[other]


def _mirrored(kernel: Floats) -> Floats:
    upper = np.triu(kernel)
    return upper + np.triu(upper, 1).transpose(0, 2, 1)
