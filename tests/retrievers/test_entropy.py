"""Retrieval entropy: against scipy, its bounds and limits, and halves that hang on no order."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy.special import softmax
from scipy.stats import entropy

from tellapart.errors import TellapartError
from tellapart.retrievers import entropy as module
from tellapart.retrievers.entropy import high_half, retrieval_entropy, softmax_entropy

Matrix = NDArray[Any]

temperatures = st.floats(1e-3, 1e3)
cosines = arrays(
    np.float64, st.tuples(st.integers(1, 5), st.integers(1, 9)), elements=st.floats(-1, 1, width=32)
)


def unit(rows: int, width: int, seed: int = 0) -> Matrix:
    values = np.random.default_rng(seed).standard_normal((rows, width))
    return np.asarray(values / np.linalg.norm(values, axis=1, keepdims=True), np.float32)


@given(cosines, temperatures)
def test_it_is_the_entropy_of_scipys_softmax(scores: Matrix, temperature: float) -> None:
    theirs = entropy(softmax(scores / temperature, axis=1), axis=1)
    np.testing.assert_allclose(softmax_entropy(scores, temperature=temperature), theirs, atol=1e-9)


@given(cosines, temperatures, st.integers(1, 12))
def test_only_the_closest_take_part(scores: Matrix, temperature: float, top_n: int) -> None:
    closest = np.sort(scores, axis=1)[:, -top_n:]
    np.testing.assert_allclose(
        softmax_entropy(scores, temperature=temperature, top_n=top_n),
        softmax_entropy(closest, temperature=temperature),
        atol=1e-12,
    )


@given(cosines, st.floats(1e-320, 1e300), st.integers(1, 12))
def test_it_lies_between_nothing_and_the_logarithm_of_the_pool(
    scores: Matrix, temperature: float, top_n: int
) -> None:
    found = softmax_entropy(scores, temperature=temperature, top_n=top_n)
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    assert (found <= math.log(min(top_n, scores.shape[1]))).all()


@given(cosines)
def test_great_temperatures_make_all_pictures_alike_and_tiny_ones_leave_the_closest(scores: Matrix) -> None:
    pool = scores.shape[1]
    np.testing.assert_allclose(softmax_entropy(scores, temperature=1e9), math.log(pool), atol=1e-9)
    closest = (scores == scores.max(axis=1, keepdims=True)).sum(axis=1)
    np.testing.assert_allclose(softmax_entropy(scores, temperature=1e-300), np.log(closest), atol=1e-9)


@given(cosines, temperatures)
def test_one_picture_leaves_nothing_to_choose(scores: Matrix, temperature: float) -> None:
    assert (softmax_entropy(scores, temperature=temperature, top_n=1) == 0).all()


@given(cosines, temperatures, st.data())
def test_the_order_of_the_pool_changes_nothing(
    scores: Matrix, temperature: float, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(scores.shape[1])))
    np.testing.assert_allclose(
        softmax_entropy(scores[:, order], temperature=temperature),
        softmax_entropy(scores, temperature=temperature),
        atol=1e-12,
    )


def test_a_sentence_that_fits_two_pictures_hesitates_between_two() -> None:
    pictures = np.array([[1, 0], [1, 0], [0, 1]], np.float32)
    sentences = np.array([[1, 0], [0, 1], [0.6, 0.8]], np.float32)
    sure = retrieval_entropy(sentences, pictures, temperature=1e-3)
    np.testing.assert_allclose(sure, [math.log(2), 0, 0], atol=1e-12)
    raw = retrieval_entropy(sentences[:1], pictures, temperature=1.0)
    total = 2 * math.e + 1
    assert raw[0] == pytest.approx(math.log(total) - 2 * math.e / total)


def test_equal_sentences_have_equal_entropy_wherever_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = unit(300, 333)
    twice = np.concatenate([sentences, sentences[::-1]])
    monkeypatch.setattr(module, "CELLS", 4096)
    found = retrieval_entropy(twice, unit(97, 333, seed=1), temperature=0.01)
    assert found.tolist() == found[::-1].tolist()


@pytest.mark.parametrize("cells", [1, 50, 10_000])
def test_blocks_change_nothing_and_the_matrix_is_never_whole(
    cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentences, pictures = unit(30, 8), unit(20, 8, seed=1)
    whole = retrieval_entropy(sentences, pictures, temperature=0.1, top_n=5)
    monkeypatch.setattr(module, "CELLS", cells)
    seen: list[tuple[int, int]] = []
    pieces = retrieval_entropy(
        sentences, pictures, temperature=0.1, top_n=5, watch=lambda done, total: seen.append((done, total))
    )
    np.testing.assert_allclose(pieces, whole, atol=1e-5)
    assert seen[-1] == (30, 30)


def test_memory_does_not_grow_with_the_pool_times_the_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CELLS", 1 << 16)
    sentences, pictures = unit(2000, 4), unit(2000, 4, seed=1)
    tracemalloc.start()
    retrieval_entropy(sentences, pictures, temperature=0.1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2000 * 2000  # an eighth of the matrix


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan, math.inf])
def test_temperatures_that_mean_nothing_are_refused(temperature: float) -> None:
    with pytest.raises(TellapartError, match=f"the temperature is {temperature}"):
        retrieval_entropy(unit(2, 3), unit(2, 3), temperature=temperature)


def test_pools_that_mean_nothing_are_refused() -> None:
    with pytest.raises(TellapartError, match="the 0 closest"):
        retrieval_entropy(unit(2, 3), unit(2, 3), temperature=1.0, top_n=0)
    with pytest.raises(TellapartError, match="no picture"):
        retrieval_entropy(unit(2, 3), np.empty((0, 3), np.float32), temperature=1.0)
    broken = unit(4, 3)
    broken[2, 1] = np.nan
    with pytest.raises(TellapartError, match=r"sentence 2 and picture 0 .* is nan"):
        retrieval_entropy(broken, unit(2, 3), temperature=1.0)


values = arrays(np.float64, st.integers(0, 12), elements=st.integers(0, 4).map(float))


@given(values)
def test_halves_are_cut_where_they_come_out_most_equal(given_values: Matrix) -> None:
    high = high_half(given_values)
    if not len(given_values):
        assert not len(high)
        return
    # No value stands on both sides, and none above is less than one below.
    assert high.any()
    assert given_values[high].min() > given_values[~high].max(initial=-1)
    off = abs(2 * int(high.sum()) - len(given_values))
    for cut in np.unique(given_values):
        other = abs(2 * int((given_values >= cut).sum()) - len(given_values))
        assert off <= other


@given(values, st.data())
def test_halves_hang_on_no_order(given_values: Matrix, data: st.DataObject) -> None:
    order = np.array(data.draw(st.permutations(range(len(given_values)))), dtype=np.int64)
    assert high_half(given_values[order]).tolist() == high_half(given_values)[order].tolist()


@pytest.mark.parametrize(
    ("given_values", "high"),
    [
        ([1, 2, 3, 4], [3, 4]),
        ([1, 2, 3], [2, 3]),  # the odd one goes up
        ([1, 1, 1, 2], [2]),  # sizes 1 and 3, rather than 4 and 0
        ([1, 2, 2, 2], [2, 2, 2]),
        ([1, 2, 2, 3], [2, 2, 3]),  # 3 and 1 or 1 and 3: up
        ([5, 5, 5], [5, 5, 5]),
    ],
)
def test_halves_by_hand(given_values: list[float], high: list[float]) -> None:
    found = high_half(np.array(given_values, dtype=np.float64))
    assert [value for value, is_high in zip(given_values, found, strict=True) if is_high] == high
