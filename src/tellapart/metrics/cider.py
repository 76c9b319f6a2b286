"""CIDEr-D and CIDEr (Vedantam et al. 2015): cosine of tf-idf vectors of n-grams, orders 1 to 4, times 10.

What other programs print as "CIDEr" is CIDEr-D: counts clipped by the reference's and a Gaussian penalty on
unlike lengths. Plain CIDEr has neither. Both depend on the document frequencies, whose source is part of the
signature: with frequencies from the references of one image alone, every word is in every document, and
CIDEr is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tellapart.metrics.frequencies import DocumentFrequencies, find_frequencies
from tellapart.metrics.material import Material, Metric
from tellapart.metrics.parts import CiderConfig
from tellapart.metrics.score import Floats, Score, mean_score, signed
from tellapart.metrics.sentences import (
    Ints,
    NGrams,
    Order,
    Sentences,
    count_ngrams,
    pair_up,
    shared_rows,
)

ORDERS = 4
SIGMA = 6.0


def build_cider(config: CiderConfig) -> Metric:
    """The measure as it is registered."""
    return lambda material: cider(material, config)


def cider(material: Material, config: CiderConfig) -> list[Score]:
    """CIDEr-D and CIDEr of each image's caption, and their means."""
    material.expect_references("CIDEr")
    frequencies = find_frequencies(material, config.df)
    counted = None if frequencies.corpora else material.ngrams
    pairs = cider_pairs(material.caption_words, material.reference_words, frequencies, counted)
    signature = signed(material.base_signature | {"df": frequencies.name, "orders": f"1-{ORDERS}"})
    notes = _why_zero(frequencies)
    return [
        mean_score("CIDEr-D", pairs.means(pairs.clipped), f"{signature}|sigma:{SIGMA:g}", notes=notes),
        mean_score("CIDEr", pairs.means(pairs.plain), signature, notes=notes),
    ]


def _why_zero(frequencies: DocumentFrequencies) -> tuple[str, ...]:
    if frequencies.documents != 1:
        return ()
    why = "its document frequencies come from one image alone, whose words stand in every document there is"
    return (f"CIDEr is 0 because {why}: take them from more (--df train, --df coco-val or --df FILE)",)


@dataclass(frozen=True, slots=True)
class CiderPairs:
    """Similarity of every candidate to every reference of its group, times 10."""

    candidate: Ints  # ascending
    reference: Ints
    clipped: Floats  # CIDEr-D
    plain: Floats  # CIDEr
    candidates: int

    def means(self, values: Floats) -> Floats:
        """The mean over the references of each candidate."""
        sums = np.bincount(self.candidate, weights=values, minlength=self.candidates)
        return np.asarray(sums / np.bincount(self.candidate, minlength=self.candidates))


def cider_pairs(
    candidates: Sentences,
    references: Sentences,
    frequencies: DocumentFrequencies,
    counted: Sequence[Order] | None = None,
) -> CiderPairs:
    """CIDEr-D and CIDEr of every pair, before anything is averaged.

    Their n-grams may have been counted before, together with the corpora of the frequencies.
    """
    orders = counted or count_ngrams([candidates, references, *frequencies.corpora], orders=ORDERS)
    candidate, reference = pair_up(candidates, references)
    first_pair = np.searchsorted(candidate, np.arange(len(candidates)))
    first_reference = np.searchsorted(references.groups, candidates.groups)
    clipped, plain = np.zeros(len(candidate)), np.zeros(len(candidate))
    for order, documents in zip(orders, frequencies.documents_with(orders), strict=True):
        ours, theirs = order.corpora[:2]
        rarity = np.log(frequencies.documents) - np.log(np.maximum(1.0, documents))
        one, other = shared_rows(ours, candidates.groups, theirs, references.groups)
        our_weight = ours.count[one] * rarity[ours.gram[one]]
        their_weight = theirs.count[other] * rarity[theirs.gram[other]]
        sentence = ours.sentence[one]
        pair = first_pair[sentence] + theirs.sentence[other] - first_reference[sentence]
        norms = _norms(ours, rarity, len(candidates))[candidate]
        norms *= _norms(theirs, rarity, len(references))[reference]
        norms[norms == 0] = 1.0
        clipped += _sums(pair, np.minimum(our_weight, their_weight) * their_weight, norms)
        plain += _sums(pair, our_weight * their_weight, norms)
    # COCO's programs take the number of bigrams for the length: texts of one word and of none count alike.
    difference = _bigrams(candidates)[candidate] - _bigrams(references)[reference]
    clipped *= np.exp(-(difference**2) / (2 * SIGMA**2))
    scale = 10.0 / ORDERS
    return CiderPairs(candidate, reference, clipped * scale, plain * scale, len(candidates))


def _norms(grams: NGrams, rarity: Floats, sentences: int) -> Floats:
    squares = (grams.count * rarity[grams.gram]) ** 2
    return np.sqrt(np.bincount(grams.sentence, weights=squares, minlength=sentences))


def _sums(pair: Ints, products: Floats, norms: Floats) -> Floats:
    return np.asarray(np.bincount(pair, weights=products, minlength=len(norms)) / norms)


def _bigrams(sentences: Sentences) -> Ints:
    return np.maximum(0, sentences.lengths - 1)
