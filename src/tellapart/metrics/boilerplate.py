"""What many captions of a set have in common: openers, fragments, and whole captions.

An opener is how a caption begins, its first two to four words. A fragment is three to ten words in a row,
anywhere. Both count once a caption. Where at least half of the captions that have one go on to something
longer that many have, only the longer one is named: "a close up of", and not "close up of" as well.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tellapart.metrics.sentences import Lexicon, Order, count_ngrams

OPENERS = range(2, 5)  # words of an opener
FRAGMENTS = range(3, 11)  # words of a fragment
SHARE = 0.02  # of the captions, from which on something is repeated in many
FEWEST = 3  # captions, however few there are
EXPLAINED = 0.5  # share of a phrase's captions from which on a longer one stands for it

Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words in a row, and in how many captions they stand."""

    text: str
    captions: int
    share: float  # of all captions

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {"text": self.text, "captions": self.captions, "share": round(self.share, 6)}


def openers(captions: Sequence[Sequence[str]], *, share: float = SHARE) -> list[Phrase]:
    """How many captions begin, the most frequent first. A caption that is no longer than that has none."""
    counts = Counter(tuple(words[:length]) for words in captions for length in OPENERS if len(words) > length)
    return _phrases(counts, len(captions), share, parts=_beginnings)


def fragments(captions: Sequence[Sequence[str]], *, share: float = SHARE) -> list[Phrase]:
    """What many captions say somewhere, the most frequent first."""
    lexicon = Lexicon()
    sentences = lexicon.whole_tokens(captions, np.arange(len(captions)))
    orders = count_ngrams([sentences], orders=max(FRAGMENTS))
    spelt = list(lexicon.index)
    counts: Counter[Words] = Counter()
    for length in FRAGMENTS:
        having = np.bincount(orders[length - 1].corpora[0].gram)  # an n-gram stands there once a caption
        for gram in np.flatnonzero(having >= _least(len(captions), share)).tolist():
            counts[_spelling(orders[:length], gram, spelt)] = int(having[gram])
    return _phrases(counts, len(captions), share, parts=_parts)


def _least(captions: int, share: float) -> int:
    return max(FEWEST, math.ceil(share * captions))


def _spelling(orders: Sequence[Order], gram: int, words: Sequence[str]) -> Words:
    spelt = []
    for order in reversed(orders):
        spelt.append(words[int(order.last[gram])])
        gram = int(order.head[gram])
    return tuple(reversed(spelt))


def _beginnings(words: Words) -> Iterator[Words]:
    for length in range(min(OPENERS), len(words)):
        yield words[:length]


def _parts(words: Words) -> Iterator[Words]:
    for length in range(min(FRAGMENTS), len(words)):
        for place in range(len(words) - length + 1):
            yield words[place : place + length]


def _phrases(
    counts: Mapping[Words, int], captions: int, share: float, *, parts: Callable[[Words], Iterator[Words]]
) -> list[Phrase]:
    """Those in many captions, without those that are mostly part of a longer one."""
    frequent = {words: count for words, count in counts.items() if count >= _least(captions, share)}
    in_longer: dict[Words, int] = {}
    for words, count in frequent.items():
        for part in parts(words):
            in_longer[part] = max(count, in_longer.get(part, 0))
    kept = [
        (words, count) for words, count in frequent.items() if in_longer.get(words, 0) < EXPLAINED * count
    ]
    kept.sort(key=lambda each: (-each[1], each[0]))
    return [Phrase(" ".join(words), count, count / captions) for words, count in kept]


def same_captions(captions: Sequence[Sequence[str]]) -> list[list[int]]:
    """Rows of captions that say the same, in groups of two or more, the largest first; none of empty ones."""
    rows: dict[Words, list[int]] = {}
    for row, words in enumerate(captions):
        if words:
            rows.setdefault(tuple(words), []).append(row)
    return sorted((group for group in rows.values() if len(group) > 1), key=lambda group: -len(group))
