"""The mean of the best similarities: by hand, its laws, and choices that do not hang on order or rounding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from tellapart.errors import TellapartError
from tellapart.reranking import consensus as module
from tellapart.reranking.consensus import (
    Similarity,
    best_first,
    consensus_scores,
    mean_of_best,
    mutual_consensus,
)
from tellapart.reranking.pieces import Piece

Matrix = NDArray[Any]

shapes = st.tuples(st.integers(1, 5), st.integers(1, 7))
matrices = arrays(np.float64, shapes, elements=st.floats(0, 10))


def looked_up(tables: Sequence[Matrix]) -> Similarity:
    """Similarities that are known beforehand, a table an image."""

    def similarity(pieces: Sequence[Piece]) -> Iterator[Matrix]:
        for piece in pieces:
            yield tables[piece.image][piece.begin : piece.end]

    return similarity


def scores_of(tables: Sequence[Matrix], best: int) -> list[Matrix]:
    hypotheses, captions = zip(*(table.shape for table in tables), strict=True)
    return consensus_scores(list(hypotheses), list(captions), looked_up(tables), best=best)


def test_by_hand() -> None:
    table = np.array([[1.0, 0.0, 0.5, 0.0], [0.4, 0.4, 0.4, 0.4]])
    assert mean_of_best(table, 1).tolist() == [1.0, 0.4]
    assert mean_of_best(table, 2).tolist() == [0.75, 0.4]
    assert mean_of_best(table, 4) == pytest.approx([0.375, 0.4])
    assert best_first(mean_of_best(table, 2)) == [0, 1]
    assert best_first(mean_of_best(table, 4)) == [1, 0]


@given(matrices, st.integers(1, 9))
def test_it_is_the_mean_of_the_greatest(table: Matrix, best: int) -> None:
    expected = [np.mean(sorted(row, reverse=True)[:best]) for row in table.tolist()]
    assert mean_of_best(table, best) == pytest.approx(expected)


@given(matrices)
def test_more_than_there_are_is_all(table: Matrix) -> None:
    every = mean_of_best(table, table.shape[1])
    assert mean_of_best(table, 10 * table.shape[1]).tolist() == every.tolist()
    assert every == pytest.approx(table.mean(axis=1))


@given(matrices, st.integers(1, 9), st.data())
def test_the_order_of_captions_changes_nothing(table: Matrix, best: int, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(table.shape[1])))
    assert mean_of_best(table[:, order], best).tolist() == mean_of_best(table, best).tolist()


@given(matrices, st.integers(1, 9), st.data())
def test_the_order_of_hypotheses_changes_nothing_but_ties(
    table: Matrix, best: int, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(table))))
    before, after = mean_of_best(table, best), mean_of_best(table[order], best)
    assert after.tolist() == before[order].tolist()
    assert after[best_first(after)[0]] == pytest.approx(before[best_first(before)[0]])


@given(matrices, st.integers(1, 9))
def test_a_hypothesis_that_is_most_like_every_caption_wins(table: Matrix, best: int) -> None:
    table = np.concatenate([table, table.max(axis=0, keepdims=True) + 1])
    assert best_first(mean_of_best(table, best))[0] == len(table) - 1


@given(st.lists(matrices, min_size=1, max_size=4), st.integers(1, 9), st.integers(1, 20))
def test_pieces_change_nothing(tables: list[Matrix], best: int, pairs: int) -> None:
    whole = [mean_of_best(table, best) for table in tables]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PAIRS", pairs)
        found = scores_of(tables, best)
    assert [one.tolist() for one in found] == [one.tolist() for one in whole]


def test_the_first_of_two_that_are_as_good_is_chosen() -> None:
    assert best_first(np.array([0.5, 0.7, 0.7, 0.1])) == [1, 2, 0, 3]
    assert best_first(np.zeros(3)) == [0, 1, 2]


def test_rounding_does_not_choose() -> None:
    third = 0.1 + 0.2
    assert third > 0.3
    assert best_first(np.array([0.3, third])) == [0, 1]
    assert best_first(np.array([0.3, third]) * 1e-20) == [0, 1]
    assert best_first(np.array([0.3, 0.3 + 1e-9])) == [1, 0]


def test_what_has_no_value_comes_last() -> None:
    assert best_first(np.array([np.nan, 0.2, 0.5])) == [2, 1, 0]
    assert best_first(np.array([np.nan, np.nan])) == [0, 1]


def test_no_caption_agrees_with_nothing() -> None:
    assert scores_of([np.zeros((2, 0))], 3)[0].tolist() == [0.0, 0.0]
    assert consensus_scores([0], [4], looked_up([np.zeros((0, 4))]), best=3)[0].tolist() == []


def test_none_of_the_best_is_refused() -> None:
    with pytest.raises(TellapartError, match="0 most similar"):
        mean_of_best(np.ones((1, 1)), 0)


def test_captions_among_themselves_by_hand() -> None:
    table = np.array([[9.0, 0.2, 0.4], [0.2, 9.0, 0.8], [0.4, 0.8, 9.0]])
    (found,) = mutual_consensus([3], looked_up([table]), best=2)
    assert found == pytest.approx([0.3, 0.5, 0.6])
    (found,) = mutual_consensus([3], looked_up([table]), best=1)
    assert found == pytest.approx([0.4, 0.8, 0.8])


@given(st.integers(1, 7), st.integers(1, 9), st.integers(1, 20), st.data())
def test_a_caption_does_not_count_for_itself(count: int, best: int, pairs: int, data: st.DataObject) -> None:
    table = data.draw(arrays(np.float64, (count, count), elements=st.floats(0, 10)))
    expected = [
        np.mean(sorted([*row[:place], *row[place + 1 :]], reverse=True)[:best]) if count > 1 else 0.0
        for place, row in enumerate(table.tolist())
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PAIRS", pairs)
        (found,) = mutual_consensus([count], looked_up([table]), best=best)
    assert found == pytest.approx(expected)
