"""How alike two single captions are, for every text and every caption of its group.

Values stand pair after pair: text after text, each with all captions of its group in their order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tellapart.errors import TellapartError
from tellapart.metrics.bleu import ORDERS, bleu_values
from tellapart.metrics.cider import cider_pairs
from tellapart.metrics.counted_captions import CountedCaptions, KnownFrequencies
from tellapart.metrics.frequencies import CorpusFrequencies, DocumentFrequencies, find_frequencies
from tellapart.metrics.material import Material
from tellapart.metrics.score import Floats
from tellapart.metrics.sentences import Ints, Sentences, count_ngrams, pair_up, shared_rows

Pairwise = Callable[[Sentences, Sentences], Floats]


def bleu_of_pairs(texts: Sentences, captions: Sentences) -> Floats:
    """BLEU-4 of each text against each single caption; as everywhere in COCO's BLEU, nothing is smoothed."""
    overlap = _overlap(texts, captions)
    sums = [overlap.matches, overlap.text_ngrams, overlap.caption_lengths[:, None]]
    return np.asarray(bleu_values(np.concatenate(sums, axis=1))[:, -1])


def mean_f1_of_pairs(texts: Sentences, captions: Sentences) -> Floats:
    """What m-RNN's authors' code calls BLEU: the mean over orders 1 to 4 of the F1 of clipped n-grams.

    No brevity penalty and no geometric mean; 0 where text or caption has fewer than 4 words.
    """
    overlap = _overlap(texts, captions)
    # F1 of matches/ours and matches/theirs is 2 · matches / (ours + theirs).
    both = overlap.text_ngrams + overlap.caption_ngrams
    f1 = 2 * overlap.matches / np.maximum(1, both)
    is_long = np.minimum(overlap.text_ngrams[:, -1], overlap.caption_ngrams[:, -1]) > 0
    return np.asarray(f1.mean(axis=1) * is_long)


def cider_of_pairs(frequencies: DocumentFrequencies) -> Pairwise:
    """CIDEr-D of each text against each single caption, which other programs call CIDEr."""

    def similarity(texts: Sentences, captions: Sentences) -> Floats:
        return cider_pairs(texts, captions, frequencies).clipped

    return similarity


def frequencies_for(captions: CountedCaptions, source: str) -> DocumentFrequencies:
    """Document frequencies of the captions themselves ("train"), of COCO val, or from a file."""
    if source == "train":
        return captions.frequencies
    if source == "references":
        raise TellapartError(
            "consensus has no references to count document frequencies in",
            hint="write train, coco-val, or the path of a caption file",
        )
    material = Material((), ())
    vars(material).update(lexicon=captions.lexicon)  # so that numbers of words mean the same
    found = find_frequencies(material, source)
    if isinstance(found, CorpusFrequencies):
        return KnownFrequencies.count(found.sentences, found.documents)  # counted once for all
    return found


@dataclass(frozen=True, slots=True)
class _Overlap:
    """What each text and each caption of its group have in common, a row a pair and a column an order."""

    matches: Floats  # n-grams of both, as often as the one that holds them less often
    text_ngrams: Ints
    caption_ngrams: Ints
    caption_lengths: Ints


def _overlap(texts: Sentences, captions: Sentences) -> _Overlap:
    text, caption = pair_up(texts, captions)
    first_pair = np.searchsorted(text, np.arange(len(texts)))
    first_caption = np.searchsorted(captions.groups, texts.groups)
    matches = np.zeros((len(text), ORDERS))
    for order, ngrams in enumerate(count_ngrams([texts, captions], orders=ORDERS)):
        ours, theirs = ngrams.corpora
        one, other = shared_rows(ours, texts.groups, theirs, captions.groups)
        sentence = ours.sentence[one]
        pair = first_pair[sentence] + theirs.sentence[other] - first_caption[sentence]
        both = np.minimum(ours.count[one], theirs.count[other])
        matches[:, order] = np.bincount(pair, weights=both, minlength=len(text))
    return _Overlap(matches, _ngrams(texts)[text], _ngrams(captions)[caption], captions.lengths[caption])


def _ngrams(sentences: Sentences) -> Ints:
    """How many n-grams of each order each sentence has: (sentences, orders)."""
    return np.asarray(np.maximum(0, sentences.lengths[:, None] - np.arange(ORDERS)))
