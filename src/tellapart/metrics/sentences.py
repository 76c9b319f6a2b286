"""A whole corpus as a few arrays of integers: what makes n-gram measures fast without compiled code.

A dict a caption, as other programs have it, costs a hash and an object for every n-gram of every sentence.
Here every word is a number, every n-gram of an order another, and counting is sorting.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Sentences:
    """Sentences as numbers of words, one after the other; each belongs to a group (its image)."""

    words: Ints
    starts: Ints  # (n + 1): sentence i is words[starts[i]:starts[i + 1]]
    groups: Ints  # (n), ascending

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def lengths(self) -> Ints:
        """Words of each sentence."""
        return np.diff(self.starts)

    def take(self, rows: Ints) -> Sentences:
        """Some of the sentences, in ascending order of rows."""
        lengths = self.lengths[rows]
        starts = offsets(lengths)
        shift = np.repeat(self.starts[rows] - starts[:-1], lengths)
        return Sentences(self.words[np.arange(starts[-1]) + shift], starts, self.groups[rows])

    def filled(self, word: int) -> Sentences:
        """The same with one given word in each sentence that has none."""
        empty = np.flatnonzero(self.lengths == 0)
        if not empty.size:
            return self
        words = np.insert(self.words, self.starts[empty], word)
        return Sentences(words, offsets(np.maximum(self.lengths, 1)), self.groups)


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Numbers of words, given out as they come."""

    index: dict[str, int] = field(default_factory=dict)

    def number(self, word: str) -> int:
        """The number of a word, new or not."""
        return self.index.setdefault(word, len(self.index))

    def whole_tokens(self, tokens: Sequence[Sequence[str]], groups: Ints) -> Sentences:
        """Tokenized texts as they are, every token a number."""
        self._learn(chain.from_iterable(tokens))
        numbers = np.fromiter(
            map(self.index.__getitem__, chain.from_iterable(tokens)),
            dtype=np.int64,
            count=sum(map(len, tokens)),
        )
        return Sentences(numbers, offsets(np.fromiter(map(len, tokens), np.int64, len(tokens))), groups)

    def _learn(self, words: Iterable[str]) -> None:
        for word in dict.fromkeys(words):
            self.number(word)

    def words(self, sentences: Sentences) -> Sentences:
        """The same with tokens that hold a blank ("22 3/4") broken up: they count as several words."""
        split = {number: word.split() for word, number in self.index.items() if not _is_one_word(word)}
        places = np.flatnonzero(np.isin(sentences.words, list(split))) if split else np.zeros(0, np.int64)
        if not places.size:
            return sentences
        pieces = [[self.number(piece) for piece in split[int(number)]] for number in sentences.words[places]]
        sizes = np.ones_like(sentences.words)
        sizes[places] = [len(numbers) for numbers in pieces]
        first = offsets(sizes)
        words = np.repeat(sentences.words, sizes)
        for place, numbers in zip(first[places].tolist(), pieces, strict=True):
            words[place : place + len(numbers)] = numbers
        return Sentences(words, first[sentences.starts], sentences.groups)


@dataclass(frozen=True, slots=True)
class NGrams:
    """How often each n-gram of one order stands in each sentence; sorted by sentence, then by n-gram."""

    sentence: Ints
    gram: Ints
    count: Ints
    kinds: int  # numbers of n-grams are below this


@dataclass(frozen=True, slots=True)
class Order:
    """The n-grams of one order in several corpora, numbered alike; and how each is spelt.

    An n-gram is the (n-1)-gram `head` followed by the word `last`; of words alone, `head` is 0.
    """

    corpora: list[NGrams]
    head: Ints  # (kinds)
    last: Ints  # (kinds)


def _is_one_word(token: str) -> bool:
    return token.isalnum() or token.split() == [token]


def count_ngrams(corpora: Sequence[Sentences], *, orders: int) -> list[Order]:
    """N-grams of orders 1 to `orders`."""
    words = np.concatenate([corpus.words for corpus in corpora])
    lengths = np.concatenate([corpus.lengths for corpus in corpora])
    left = _words_left(lengths)  # how many words follow, the word itself counted
    sentence = np.repeat(np.arange(len(lengths)), lengths)
    bounds = offsets(np.array([len(corpus) for corpus in corpora], dtype=np.int64))
    vocabulary = int(words.max()) + 1 if words.size else 1
    place = np.arange(len(words))
    gram, codes = words, np.arange(vocabulary)
    found = [Order(_per_corpus(sentence, gram, len(codes), bounds), np.zeros_like(codes), codes)]
    for order in range(2, orders + 1):
        keep = left[place] >= order
        place = place[keep]
        gram, codes = _renumber(gram[keep] * vocabulary + words[place + order - 1])
        corpora_grams = _per_corpus(sentence[place], gram, len(codes), bounds)
        found.append(Order(corpora_grams, codes // vocabulary, codes % vocabulary))
    return found


def _words_left(lengths: Ints) -> Ints:
    ends = np.repeat(np.cumsum(lengths), lengths)
    return ends - np.arange(len(ends))


def _renumber(codes: Ints) -> tuple[Ints, Ints]:
    """The same codes counted from 0 without gaps, in their order; and the distinct codes."""
    ordered, place = sort_with_places(codes)
    is_new = np.append(True, ordered[1:] != ordered[:-1])[: codes.size]
    numbers = np.empty_like(codes)
    numbers[place] = np.cumsum(is_new) - 1
    return numbers, ordered[is_new]


def sort_with_places(values: Ints) -> tuple[Ints, Ints]:
    """Whole numbers in ascending order, and the place where each stood; equal ones stay in their order."""
    place_bits = int(values.size).bit_length()
    if int(values.max(initial=0)).bit_length() + place_bits > 62:
        order = np.argsort(values, kind="stable")
        return values[order], order
    # Sorting plain integers is several times faster than sorting places by them: both go into one number.
    packed = np.sort((values << place_bits) | np.arange(values.size))
    return packed >> place_bits, packed & ((1 << place_bits) - 1)


def _per_corpus(sentence: Ints, gram: Ints, kinds: int, bounds: Ints) -> list[NGrams]:
    kinds = max(kinds, 1)
    key, count = runs(np.sort(sentence * kinds + gram))
    cuts = np.searchsorted(key, bounds * kinds)
    return [
        NGrams(key[low:high] // kinds - bounds[corpus], key[low:high] % kinds, count[low:high], kinds)
        for corpus, (low, high) in enumerate(pairwise(cuts.tolist()))
    ]


def runs(ordered: Ints) -> tuple[Ints, Ints]:
    """The distinct values of a sorted array, and how often each stands there."""
    if not ordered.size:
        return ordered, ordered
    begin = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    return ordered[begin], np.diff(np.append(begin, ordered.size))


def offsets(lengths: Ints) -> Ints:
    """Where each of some runs of these lengths begins, and where the last one ends."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)])


def spread(begin: Ints, end: Ints) -> tuple[Ints, Ints]:
    """All places begin[i] <= place < end[i] of several ranges: the number of the range, and the place."""
    sizes = end - begin
    owner = np.repeat(np.arange(len(sizes)), sizes)
    first = offsets(sizes)[:-1]
    return owner, np.arange(len(owner)) - first[owner] + begin[owner]


def pair_up(candidates: Sentences, references: Sentences) -> tuple[Ints, Ints]:
    """Every candidate with every reference of its group: numbers of candidates (ascending) and references."""
    begin = np.searchsorted(references.groups, candidates.groups, side="left")
    end = np.searchsorted(references.groups, candidates.groups, side="right")
    return spread(begin, end)


def shared_rows(ours: NGrams, our_groups: Ints, theirs: NGrams, their_groups: Ints) -> tuple[Ints, Ints]:
    """Rows of n-grams that a candidate and a reference of its group have in common."""
    key = their_groups[theirs.sentence] * theirs.kinds + theirs.gram
    ordered, order = sort_with_places(key)
    wanted = our_groups[ours.sentence] * ours.kinds + ours.gram
    begin = np.searchsorted(ordered, wanted)
    one, place = spread(begin, np.searchsorted(ordered, wanted, side="right"))
    return one, order[place]
