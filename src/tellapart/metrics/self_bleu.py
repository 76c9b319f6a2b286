"""mBLEU: BLEU of each candidate against the other candidates of its image; the lower, the more diverse.

Two definitions are in print, and the second gives about half the BLEU-4 of the first on the same captions:
the corpus BLEU of the i-th candidates of all images, averaged over i (Shetty et al. 2017, self-critical), and
the BLEU of every single candidate, averaged over candidates and images (DiversityMetrics).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tellapart.metrics.bleu import ORDERS, bleu_values
from tellapart.metrics.material import Watch
from tellapart.metrics.overlap import Candidates, image_blocks, of_images, shared_ngrams
from tellapart.metrics.score import Floats, Pooled, Score, mean_score
from tellapart.metrics.sentences import Ints, NGrams


def self_bleu(candidates: Candidates, signature: str, watch: Watch) -> list[Score]:
    """mBLEU-1 to mBLEU-4 in both definitions."""
    statistics = self_bleu_statistics(candidates, watch)
    each = bleu_values(statistics).mean(axis=1)
    corpus = bleu_values(statistics.sum(axis=0)).mean(axis=0)
    summands = statistics.reshape(len(candidates), -1)
    signature = f"{signature}|lengths:closest|smoothing:none"
    pooled = [
        Score(
            f"mBLEU-{order + 1}",
            float(corpus[order]),
            f"{signature}|level:corpus",
            each[:, order],
            Pooled(summands, _value_of(order, candidates.width)),
        )
        for order in range(ORDERS)
    ]
    single = [
        mean_score(f"mBLEU-{order + 1}-image", each[:, order], f"{signature}|level:image")
        for order in range(ORDERS)
    ]
    return [*pooled, *single]


def _value_of(order: int, width: int) -> Callable[[Floats], Floats]:
    def formula(sums: Floats) -> Floats:
        by_candidate = sums.reshape(*sums.shape[:-1], width, -1)
        return np.asarray(bleu_values(by_candidate)[..., order].mean(axis=-1))

    return formula


def self_bleu_statistics(candidates: Candidates, watch: Watch) -> Floats:
    """What BLEU sums up, of each candidate against the others: (images, width, 9)."""
    width, lengths = candidates.width, candidates.lengths
    found = np.zeros((*lengths.shape, 2 * ORDERS + 1))
    for images in image_blocks(len(candidates), width):
        watch("mBLEU", images.start, len(candidates))
        for order, grams in enumerate(candidates.orders):
            found[images, :, order] = _matches(of_images(grams, width, images), lengths[images].shape)
    found[..., ORDERS:-1] = np.maximum(0, lengths[..., None] - np.arange(ORDERS))
    found[..., -1] = closest_other_lengths(lengths)
    watch("mBLEU", len(candidates), len(candidates))
    return found


def _matches(grams: NGrams, shape: tuple[int, ...]) -> Floats:
    """N-grams of each candidate that count as matches: clipped by the greatest count in any other."""
    shared = shared_ngrams(grams, shape[1])
    # A text is clipped by another that holds the n-gram as often or more, hence not at all; only of the one
    # that holds it most, the last of its run, no more count than the one before it has.
    counted = shared.count.copy()
    last = np.unique(shared.end) - 1
    counted[last] = shared.count[last - 1]
    text = shared.image * shape[1] + shared.text
    sums = np.bincount(text, weights=counted, minlength=shape[0] * shape[1])
    return np.asarray(sums, dtype=np.float64).reshape(shape)


def closest_other_lengths(lengths: Ints) -> Ints:
    """For each of a row's lengths the closest of the others; of two equally close, the shorter."""
    order = np.argsort(lengths, axis=1)
    ordered = np.take_along_axis(lengths, order, axis=1)
    # The closest other is a neighbour in the order of lengths.
    far = np.iinfo(np.int64).max // 4
    shorter = np.pad(ordered[:, :-1], ((0, 0), (1, 0)), constant_values=-far)
    longer = np.pad(ordered[:, 1:], ((0, 0), (0, 1)), constant_values=far)
    closest = np.empty_like(lengths)
    nearest = np.where(ordered - shorter <= longer - ordered, shorter, longer)
    np.put_along_axis(closest, order, nearest, axis=1)
    return closest
