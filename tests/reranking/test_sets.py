"""Sets of captions against all sets there are, where greedy choice is exact, and against its own rule."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tellapart.errors import TellapartError
from tellapart.reranking.sets import choose_set

Scores = NDArray[np.float64]

eighths = st.integers(-8, 8).map(lambda number: number / 8)


@st.composite
def candidates(draw: st.DrawFn) -> tuple[Scores, Scores]:
    """Quality, and a symmetric similarity."""
    count = draw(st.integers(1, 6))
    half = np.array([[draw(eighths) for _ in range(count)] for _ in range(count)])
    return np.array([draw(eighths) for _ in range(count)]), (half + half.T) / 2


trade_offs = st.sampled_from([0.0, 0.25, 0.5, 1.0])


@given(candidates(), trade_offs)
def test_one_alone_is_the_best(given_: tuple[Scores, Scores], trade_off: float) -> None:
    quality, similarity = given_
    (only,) = choose_set(quality, similarity, 1, trade_off=trade_off)
    assert only == quality.argmax()


@given(candidates(), st.integers(1, 7))
def test_for_quality_alone_no_set_is_better(given_: tuple[Scores, Scores], count: int) -> None:
    quality, similarity = given_
    chosen = choose_set(quality, similarity, count, trade_off=0.0)
    size = min(count, len(quality))
    best = max(sum(quality[list(some)]) for some in combinations(range(len(quality)), size))
    assert quality[chosen].sum() == best
    assert (np.diff(quality[chosen]) <= 0).all()


@given(candidates(), st.integers(1, 7), trade_offs)
def test_each_is_the_best_addition_to_those_before(
    given_: tuple[Scores, Scores], count: int, trade_off: float
) -> None:
    quality, similarity = given_
    chosen = choose_set(quality, similarity, count, trade_off=trade_off).tolist()
    assert len(set(chosen)) == len(chosen) == min(count, len(quality))
    for place in range(1, len(chosen)):
        before = chosen[:place]
        left = [each for each in range(len(quality)) if each not in before]
        gains = {
            each: (1 - trade_off) * quality[each] - trade_off * max(similarity[each, one] for one in before)
            for each in left
        }
        assert chosen[place] == max(left, key=lambda each: (gains[each], -each))


@given(candidates(), st.integers(1, 6), trade_offs)
def test_a_larger_set_begins_with_the_smaller(
    given_: tuple[Scores, Scores], count: int, trade_off: float
) -> None:
    smaller = choose_set(*given_, count, trade_off=trade_off).tolist()
    assert choose_set(*given_, count + 1, trade_off=trade_off).tolist()[: len(smaller)] == smaller


def test_a_copy_is_left_out_as_long_as_there_is_something_else() -> None:
    quality = np.array([1.0, 0.99, 0.5, 0.4])
    similarity = np.array([[1, 1, 0.1, 0.3], [1, 1, 0.1, 0.3], [0.1, 0.1, 1, 0.2], [0.3, 0.3, 0.2, 1]])
    assert choose_set(quality, similarity, 4, trade_off=0.5).tolist() == [0, 2, 3, 1]
    assert choose_set(quality, similarity, 4, trade_off=0.0).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("quality", "similarity", "count", "trade_off", "problem"),
    [
        (np.zeros(3), np.zeros((3, 2)), 1, 0.5, "shape"),
        (np.array([0.0, np.nan]), np.zeros((2, 2)), 1, 0.5, "finite"),
        (np.zeros(2), np.full((2, 2), -np.inf), 1, 0.5, "finite"),
        (np.zeros(2), np.zeros((2, 2)), 0, 0.5, "0 captions"),
        (np.zeros(2), np.zeros((2, 2)), 1, 1.5, "1.5"),
        (np.zeros(2), np.zeros((2, 2)), 1, np.nan, "nan"),
    ],
)
def test_what_no_set_is_chosen_from(
    quality: Scores, similarity: Scores, count: int, trade_off: float, problem: str
) -> None:
    with pytest.raises(TellapartError, match=problem):
        choose_set(quality, similarity, count, trade_off=trade_off)


def test_of_nothing_nothing_is_chosen() -> None:
    assert choose_set(np.zeros(0), np.zeros((0, 0)), 3, trade_off=0.5).tolist() == []
