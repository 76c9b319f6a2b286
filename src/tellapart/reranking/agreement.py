"""How far a caption agrees with others that were drawn of the same picture by chance.

What a captioner says of a picture differs from one draw to the next; of several candidates, the one that is
most like all of them is the one from which least is expected to be wrong (minimum Bayes risk: Kumar and Byrne
2004). Two captions are as like as CIDEr-D has it (Vedantam et al. 2015, Eq. 4, with clipping left out), but
every n-gram counts the same: how rare it is cannot be told from one picture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from tellapart.arrays import Float64

LONGEST = 4  # words of an n-gram
SPREAD = 6.0  # σ of the Gaussian by which captions of other lengths count less


def agreement(candidates: Sequence[str], drawn: Sequence[str]) -> Float64[np.ndarray, " c"]:
    """The mean likeness of each candidate to the captions that were drawn, from 0 to 1; 0 if none was."""
    if not drawn:
        return np.zeros(len(candidates))
    words, others = ([caption.lower().split() for caption in some] for some in (candidates, drawn))
    lengths, of_others = (np.array([len(each) for each in some], np.float64) for some in (words, others))
    likeness = sum(_cosines(words, others, size) for size in range(1, LONGEST + 1)) / LONGEST
    likeness *= np.exp(-((lengths[:, None] - of_others) ** 2) / (2 * SPREAD**2))
    return np.asarray(likeness.mean(axis=1))


def _cosines(
    texts: Sequence[Sequence[str]], others: Sequence[Sequence[str]], size: int
) -> Float64[np.ndarray, "t o"]:
    """Of the counts of n-grams of one size; a text that has none of that size is like no other."""
    places: dict[tuple[str, ...], int] = {}
    counted = [_ngrams(text, size) for text in (*texts, *others)]
    for ngrams in counted:
        for ngram in ngrams:
            places.setdefault(ngram, len(places))
    counts = np.zeros((len(counted), len(places)))
    for row, ngrams in enumerate(counted):
        counts[row, [places[ngram] for ngram in ngrams]] = list(ngrams.values())
    norms = np.sqrt((counts**2).sum(axis=1, keepdims=True))
    counts /= np.where(norms > 0, norms, 1.0)
    return np.asarray(counts[: len(texts)] @ counts[len(texts) :].T)


def _ngrams(words: Sequence[str], size: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[place : place + size]) for place in range(len(words) - size + 1))
