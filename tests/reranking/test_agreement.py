"""Agreement held against counting n-grams by hand."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tellapart.reranking.agreement import LONGEST, SPREAD, agreement

captions = st.lists(st.sampled_from(["a", "red", "dog", "runs"]), max_size=7).map(" ".join)
some = st.lists(captions, min_size=1, max_size=5)


def likeness(one: str, other: str) -> float:
    """Of two captions, written out."""
    left, right = one.split(), other.split()
    total = 0.0
    for size in range(1, LONGEST + 1):
        ours, theirs = (
            Counter(" ".join(words[place : place + size]) for place in range(len(words) - size + 1))
            for words in (left, right)
        )
        norms = [math.sqrt(sum(count**2 for count in counts.values())) for counts in (ours, theirs)]
        if all(norms):
            total += sum(ours[ngram] * theirs[ngram] for ngram in ours) / math.prod(norms)
    return total / LONGEST * math.exp(-((len(left) - len(right)) ** 2) / (2 * SPREAD**2))


@given(some, some)
def test_it_is_the_mean_likeness_to_all_that_was_drawn(candidates: list[str], drawn: list[str]) -> None:
    expected = [math.fsum(likeness(one, other) for other in drawn) / len(drawn) for one in candidates]
    assert agreement(candidates, drawn).tolist() == pytest.approx(expected, abs=1e-12)


@given(some, some)
def test_it_lies_between_0_and_1_and_the_order_of_draws_does_not_matter(
    candidates: list[str], drawn: list[str]
) -> None:
    found = agreement(candidates, drawn)
    assert ((found >= 0) & (found <= 1 + 1e-12)).all()
    assert agreement(candidates, drawn[::-1]).tolist() == pytest.approx(found.tolist(), abs=1e-12)


def test_full_agreement_is_1_and_none_is_0() -> None:
    found = agreement(["a red dog runs fast", "two cats"], ["A red dog runs fast"] * 3)
    assert found.tolist() == pytest.approx([1, 0])


def test_where_nothing_was_drawn_nothing_agrees() -> None:
    assert agreement(["a dog", "a cat"], []).tolist() == [0, 0]
    assert agreement([], ["a dog"]).tolist() == []
