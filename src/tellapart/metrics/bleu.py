"""BLEU-1 to BLEU-4 as COCO's evaluation has it (Papineni et al. 2002).

Counts are clipped by the greatest count in any reference, the reference length is the closest one (the
shorter of two equally close), and nothing is smoothed but for the tiny numbers that keep divisions defined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tellapart.metrics.material import Material, Metric
from tellapart.metrics.parts import BleuConfig
from tellapart.metrics.score import Floats, Pooled, Score, signed
from tellapart.metrics.sentences import Ints, NGrams, Order, Sentences, count_ngrams, pair_up

ORDERS = 4
_TINY, _SMALL = 1e-15, 1e-9  # COCO's own: they make a perfect BLEU 0.9999999996, and a short one not quite 0


def build_bleu(config: BleuConfig) -> Metric:
    """The measure as it is registered."""
    return bleu


def bleu(material: Material) -> list[Score]:
    """BLEU-1 to BLEU-4 of each image's caption against its references, and of the whole."""
    material.expect_references("BLEU")
    statistics = bleu_statistics(material.caption_words, material.reference_words, material.ngrams)
    each = bleu_values(statistics)
    corpus = bleu_values(statistics.sum(axis=0))
    signature = signed(material.base_signature | {"lengths": "closest", "smoothing": "none"})
    return [
        Score(
            f"BLEU-{order + 1}",
            float(corpus[order]),
            signature,
            each[:, order],
            Pooled(statistics, _value_of(order)),
        )
        for order in range(ORDERS)
    ]


def _value_of(order: int) -> Callable[[Floats], Floats]:
    return lambda sums: np.asarray(bleu_values(sums)[..., order])


def bleu_statistics(
    candidates: Sentences, references: Sentences, counted: Sequence[Order] | None = None
) -> Floats:
    """What BLEU sums up, a row a candidate: matches and n-grams of each order, closest reference length.

    A candidate is held against all references of its group. Their n-grams may have been counted before.
    """
    found = np.zeros((len(candidates), 2 * ORDERS + 1))
    for order, ngrams in enumerate(counted or count_ngrams([candidates, references], orders=ORDERS)):
        ours, theirs = ngrams.corpora
        found[:, order] = _clipped_matches(ours, candidates.groups, theirs, references.groups)
        found[:, ORDERS + order] = np.maximum(0, candidates.lengths - order)
    found[:, -1] = closest_lengths(candidates, references)
    return found


def _clipped_matches(ours: NGrams, our_groups: Ints, theirs: NGrams, their_groups: Ints) -> Floats:
    """For each candidate the sum over its n-grams of min(count, greatest count in a reference)."""
    greatest_of, greatest = _greatest(
        their_groups[theirs.sentence] * theirs.kinds + theirs.gram, theirs.count
    )
    wanted = our_groups[ours.sentence] * ours.kinds + ours.gram
    place = np.searchsorted(greatest_of, wanted)
    inside = place < len(greatest_of)
    inside[inside] = greatest_of[place[inside]] == wanted[inside]
    matches = np.minimum(ours.count[inside], greatest[place[inside]])
    sums = np.bincount(ours.sentence[inside], weights=matches, minlength=len(our_groups))
    return np.asarray(sums, dtype=np.float64)


def _greatest(keys: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """The distinct keys in ascending order, each with its greatest count."""
    if not keys.size:
        return keys, counts
    # Counts are small numbers: with the key in the upper bits, one sort orders both.
    bits = int(counts.max()).bit_length()
    packed = np.sort((keys << bits) | counts)
    last = np.flatnonzero(np.append(packed[1:] >> bits != packed[:-1] >> bits, True))
    return packed[last] >> bits, packed[last] & ((1 << bits) - 1)


def closest_lengths(candidates: Sentences, references: Sentences) -> Floats:
    """The length of the reference that is closest to each candidate's; of two equally close, the shorter."""
    candidate, reference = pair_up(candidates, references)
    lengths = references.lengths[reference]
    longest = int(lengths.max(initial=0)) + 1
    badness = np.abs(lengths - candidates.lengths[candidate]) * longest + lengths
    begin = np.searchsorted(candidate, np.arange(len(candidates)))
    best = np.minimum.reduceat(badness, begin) if badness.size else badness
    return np.asarray(best % longest, dtype=np.float64)


def bleu_values(sums: Floats) -> Floats:
    """BLEU-1 to BLEU-4 from summed statistics: (…, 9) -> (…, 4)."""
    matches, guesses, reference = sums[..., :ORDERS], sums[..., ORDERS:-1], sums[..., -1:]
    precisions = np.cumprod((matches + _TINY) / (guesses + _SMALL), axis=-1)
    means = precisions ** (1 / np.arange(1, ORDERS + 1))
    ratio = (guesses[..., :1] + _TINY) / (reference + _SMALL)
    return np.asarray(means * np.exp(np.minimum(0, 1 - 1 / ratio)))
