"""CIDEr-D against captions that are counted once, for those who score thousands of texts step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from tellapart.metrics.cider import ORDERS, cider_pairs
from tellapart.metrics.frequencies import CorpusFrequencies
from tellapart.metrics.material import owners
from tellapart.metrics.score import Floats
from tellapart.metrics.sentences import Ints, Lexicon, Order, Sentences, count_ngrams, offsets, spread

Words = Sequence[str]


@dataclass(frozen=True)
class KnownFrequencies:
    """In how many documents the n-grams of some captions stand; those of other texts are looked up."""

    name: str
    documents: int
    words: int  # numbers of words are below this
    codes: Sequence[Ints]  # of each order, ascending: the (n-1)-gram's number times `words`, plus the word's
    counts: Sequence[Floats]  # of each order
    corpora: Sequence[Sentences] = ()

    @classmethod
    def count(cls, sentences: Sentences, documents: int) -> KnownFrequencies:
        """Those of the n-grams of these sentences, a document a group."""
        orders = count_ngrams([sentences], orders=ORDERS)
        name = f"captions({documents})"
        counts = CorpusFrequencies(name, documents, sentences).documents_with(orders)
        words = len(orders[0].last)
        return cls(name, documents, words, [order.head * words + order.last for order in orders], counts)

    def documents_with(self, orders: Sequence[Order]) -> list[Floats]:
        """Looked up order by order: an n-gram is known if what it begins with is, and then by its number."""
        found = []
        before = np.zeros(1, dtype=np.int64)  # what a word follows on: nothing, which is known
        for order, codes, counts in zip(orders, self.codes, self.counts, strict=True):
            may_be = (before[order.head] >= 0) & (order.last < self.words)
            wanted = np.where(may_be, before[order.head] * self.words + order.last, -1)
            place = np.minimum(np.searchsorted(codes, wanted), max(0, len(codes) - 1))
            is_known = (codes[place] == wanted) if len(codes) else np.zeros(len(wanted), dtype=bool)
            found.append(np.where(is_known, counts[place] if len(codes) else 0.0, 0.0))
            before = np.where(is_known, place, -1)
        return found


@dataclass(frozen=True)
class CountedCaptions:
    """The captions of several images, ready to be compared with."""

    lexicon: Lexicon
    sentences: Sentences
    first: Ints  # of each image's captions among all, and where the last one's end
    frequencies: KnownFrequencies

    @classmethod
    def count(cls, images: Sequence[Sequence[Words]]) -> CountedCaptions:
        """From the words of the captions of each image, some of which may have none."""
        lexicon = Lexicon()
        sentences = lexicon.whole_tokens(list(chain.from_iterable(images)), owners(images))
        sizes = np.fromiter(map(len, images), np.int64, len(images))
        documents = int(np.count_nonzero(sizes))
        return cls(lexicon, sentences, offsets(sizes), KnownFrequencies.count(sentences, documents))

    @property
    def documents(self) -> int:
        """Images that have captions: with fewer than two, every CIDEr is 0."""
        return self.frequencies.documents

    def read(self, groups: Sequence[Sequence[Words]]) -> Sentences:
        """Other texts, in groups."""
        return self.lexicon.whole_tokens(list(chain.from_iterable(groups)), owners(groups))

    def of(self, groups: Sequence[Sequence[int]]) -> Sentences:
        """The captions of images given by row, all those of a group of images as one group."""
        rows = np.fromiter(chain.from_iterable(groups), np.int64, sum(map(len, groups)))
        image, place = spread(self.first[rows], self.first[rows + 1])
        return replace(self.sentences.take(place), groups=owners(groups)[image])

    def cider_d(self, candidates: Sentences, references: Sentences) -> Floats:
        """CIDEr-D of each candidate, the mean over the references of its group; 0 where there are none."""
        pairs = cider_pairs(candidates, references, self.frequencies)
        sums = np.bincount(pairs.candidate, weights=pairs.clipped, minlength=len(candidates))
        return np.asarray(sums / np.maximum(1, np.bincount(pairs.candidate, minlength=len(candidates))))
