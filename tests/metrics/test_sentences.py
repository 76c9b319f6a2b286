"""Whole-corpus arrays: counting n-grams by sorting gives what counting one by one would."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tellapart.metrics.sentences import (
    Lexicon,
    Sentences,
    count_ngrams,
    pair_up,
    runs,
    sort_with_places,
    spread,
)

corpora = st.lists(
    st.lists(st.lists(st.sampled_from("abcd"), max_size=6), max_size=5), min_size=1, max_size=3
)


def numbered(lexicon: Lexicon, texts: list[list[str]]) -> Sentences:
    return lexicon.words(lexicon.whole_tokens(texts, np.arange(len(texts))))


@given(corpora)
def test_ngrams_are_those_of_a_plain_count(drawn: list[list[list[str]]]) -> None:
    lexicon = Lexicon()
    orders = count_ngrams([numbered(lexicon, texts) for texts in drawn], orders=4)
    words = list(lexicon.index)
    spelt: list[tuple[str, ...]] = [()]
    for size, order in enumerate(orders, 1):
        spelt = [
            (*spelt[head], words[last]) if last < len(words) else ()
            for head, last in zip(order.head.tolist(), order.last.tolist(), strict=True)
        ]
        for texts, found in zip(drawn, order.corpora, strict=True):
            expected = {
                (row, gram): count
                for row, text in enumerate(texts)
                for gram, count in Counter(
                    tuple(text[i : i + size]) for i in range(len(text) - size + 1)
                ).items()
            }
            rows = zip(found.sentence.tolist(), found.gram.tolist(), found.count.tolist(), strict=True)
            assert {(row, spelt[gram]): count for row, gram, count in rows} == expected


@given(st.lists(st.integers(0, 2**61)))
def test_sorting_keeps_places(values: list[int]) -> None:
    array = np.array(values, dtype=np.int64)
    ordered, places = sort_with_places(array)
    assert ordered.tolist() == sorted(values)
    assert places.tolist() == sorted(range(len(values)), key=values.__getitem__)


@given(st.lists(st.integers(0, 5)))
def test_runs_are_distinct_values_with_their_counts(values: list[int]) -> None:
    distinct, counts = runs(np.sort(np.array(values, dtype=np.int64)))
    assert dict(zip(distinct.tolist(), counts.tolist(), strict=True)) == dict(Counter(values))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4))))
def test_ranges_are_spread_out(ranges: list[tuple[int, int]]) -> None:
    begin = np.array([low for low, _ in ranges], dtype=np.int64)
    size = np.array([length for _, length in ranges], dtype=np.int64)
    owner, place = spread(begin, begin + size)
    expected = [(row, low + i) for row, (low, length) in enumerate(ranges) for i in range(length)]
    assert list(zip(owner.tolist(), place.tolist(), strict=True)) == expected


def test_candidates_meet_all_references_of_their_group() -> None:
    empty = np.zeros(0, dtype=np.int64)
    candidates = Sentences(empty, np.zeros(4, np.int64), np.array([0, 0, 2]))
    references = Sentences(empty, np.zeros(5, np.int64), np.array([0, 1, 2, 2]))
    one, other = pair_up(candidates, references)
    assert list(zip(one.tolist(), other.tolist(), strict=True)) == [(0, 0), (1, 0), (2, 2), (2, 3)]


def test_tokens_with_a_blank_are_several_words() -> None:
    lexicon = Lexicon()
    whole = lexicon.whole_tokens([["a", "22\u00a03/4", "cup"], []], np.arange(2))
    words = lexicon.words(whole)
    assert whole.lengths.tolist() == [3, 0]
    assert words.lengths.tolist() == [4, 0]
    assert [list(lexicon.index)[number] for number in words.words] == ["a", "22", "3/4", "cup"]


def test_sentences_can_be_taken_and_filled() -> None:
    lexicon = Lexicon()
    sentences = numbered(lexicon, [["a", "b"], [], ["c"], []])
    taken = sentences.take(np.array([0, 2, 3]))
    assert taken.words.tolist() == [0, 1, 2]
    assert taken.lengths.tolist() == [2, 1, 0]
    filled = sentences.filled(9)
    assert filled.lengths.tolist() == [2, 1, 1, 1]
    assert filled.words.tolist() == [0, 1, 9, 2, 9]
