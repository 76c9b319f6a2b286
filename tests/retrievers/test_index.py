"""Both indexes give the same answer, whatever the blocks, the ties and the rounding."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import faiss
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import Float32

from tellapart.errors import TellapartError
from tellapart.retrievers import index
from tellapart.retrievers.index import Nearest, Pool, nearest, nearest_by_blocks, nearest_by_faiss, pool_of


def unit(rows: np.ndarray) -> Float32[np.ndarray, "n d"]:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def drawn(count: int, width: int, seed: int) -> Float32[np.ndarray, "n d"]:
    return unit(np.random.default_rng(seed).standard_normal((count, width)))


def crowded(count: int, width: int, seed: int, spread: float) -> Float32[np.ndarray, "n d"]:
    """Vectors that differ by no more than rounding may hide, some of them not at all."""
    chance = np.random.default_rng(seed)
    middle = chance.standard_normal((1, width))
    rows = middle + spread * chance.standard_normal((count, width))
    return unit(rows[chance.integers(0, count, count)])


def by_sorting(queries: np.ndarray, pool: Pool, k: int) -> Nearest:
    """Every score by itself, all sorted: slow, and plainly right."""
    places, scores = [], []
    for query in queries:
        all_scores = np.array([np.vecdot(pool.vectors[row], query) for row in pool.rows], np.float32)
        best = sorted(range(len(pool)), key=lambda place: (-all_scores[place], place))[:k]
        places.append(best)
        scores.append(all_scores[best])
    count = min(k, len(pool))
    shape = (len(queries), count)
    return Nearest(np.array(places, np.int64).reshape(shape), np.array(scores, np.float32).reshape(shape))


def assert_same(found: Nearest, expected: Nearest) -> None:
    np.testing.assert_array_equal(found.places, expected.places)
    np.testing.assert_array_equal(found.scores, expected.scores)


@settings(max_examples=60)
@given(
    st.integers(1, 60),
    st.integers(1, 40),
    st.integers(0, 5),
    st.integers(1, 70),
    st.integers(1, 64),
    st.sampled_from([1.0, 1e-3, 1e-7, 0.0]),
)
def test_all_ways_give_the_same_to_the_last_bit(
    count: int, width: int, asked: int, k: int, block: int, spread: float
) -> None:
    vectors = crowded(count, width, seed=count * 100 + width, spread=spread)
    queries = crowded(asked + 1, width, seed=width, spread=0.5)[:asked]
    rows = np.random.default_rng(k).integers(0, count, count)
    for pool in (pool_of(vectors), Pool(vectors, rows)):
        expected = by_sorting(queries, pool, k)
        assert_same(nearest_by_blocks(queries, pool, k, block=block), expected)
        assert_same(nearest_by_faiss(queries, pool, k), expected)


@pytest.mark.parametrize("spread", [1.0, 1e-6, 0.0])
def test_a_larger_pool_of_look_alikes(spread: float) -> None:
    vectors, queries = crowded(3000, 256, seed=1, spread=spread), drawn(7, 256, seed=2)
    pool = pool_of(vectors)
    expected = by_sorting(queries, pool, 25)
    for block in (1, 100, 2999, 16_384):
        assert_same(nearest_by_blocks(queries, pool, 25, block=block), expected)
    assert_same(nearest_by_faiss(queries, pool, 25), expected)


def test_faiss_itself_agrees() -> None:
    vectors, queries = drawn(5000, 64, seed=3), drawn(40, 64, seed=4)
    theirs = faiss.IndexFlatIP(64)
    theirs.add(vectors)
    scores, places = theirs.search(queries, 10)
    ours = nearest(queries, pool_of(vectors), 10)
    np.testing.assert_array_equal(ours.places, places)
    np.testing.assert_allclose(ours.scores, scores, atol=1e-6)


def test_many_queries_are_taken_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, queries = drawn(300, 16, seed=5), drawn(50, 16, seed=6)
    whole = nearest_by_blocks(queries, pool_of(vectors), 4)
    monkeypatch.setattr(index, "_AT_ONCE", 700)
    assert_same(nearest_by_blocks(queries, pool_of(vectors), 4), whole)


def test_ties_go_to_the_first_in_the_pool() -> None:
    vectors = unit(np.array([[0, 1], [1, 0], [1, 0], [0, 1], [1, 0]]))
    for kind in ("exact", "faiss"):
        found = nearest(unit(np.array([[1, 0]])), pool_of(vectors), 4, kind=kind)
        assert found.places.tolist() == [[1, 2, 4, 0]]
        assert found.scores.tolist() == [[1, 1, 1, 0]]
        shared = nearest(unit(np.array([[1, 0]])), Pool(vectors, np.array([3, 4, 0, 4])), 3, kind=kind)
        assert shared.places.tolist() == [[1, 3, 0]]


def test_more_than_there_are_gives_all() -> None:
    vectors = drawn(5, 8, seed=7)
    for kind in ("auto", "exact", "faiss"):
        found = nearest(drawn(2, 8, seed=8), pool_of(vectors), 99, kind=kind)
        assert found.places.shape == found.scores.shape == (2, 5)
        assert sorted(found.places[0].tolist()) == list(range(5))
        nothing = nearest(drawn(2, 8, seed=8), pool_of(vectors[:0]), 3, kind=kind)
        assert nothing.places.shape == nothing.scores.shape == (2, 0)


def test_rows_that_lie_together_are_not_copied() -> None:
    pool = Pool(drawn(10, 4, seed=9), np.array([0, 1, 2, 7, 8, 9, 3]))
    assert np.shares_memory(pool.block(3, 6), pool.vectors)
    np.testing.assert_array_equal(pool.block(3, 6), pool.vectors[7:10])
    np.testing.assert_array_equal(pool.block(1, 7), pool.vectors[[1, 2, 7, 8, 9, 3]])


def test_vectors_may_be_mapped_from_a_file_that_cannot_be_written() -> None:
    vectors = drawn(40, 8, seed=10)
    vectors.flags.writeable = False
    queries = drawn(3, 8, seed=11)
    assert_same(nearest_by_faiss(queries, pool_of(vectors), 5), by_sorting(queries, pool_of(vectors), 5))


def test_auto_takes_faiss_only_beyond_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, query = pool_of(drawn(20, 4, seed=12)), drawn(1, 4, seed=13)
    used = []

    def noticed(*given: Any) -> Nearest:
        used.append("faiss")
        return nearest_by_faiss(*given)

    monkeypatch.setattr(index, "nearest_by_faiss", noticed)
    for beyond, kind in ((20, "auto"), (19, "auto"), (5, "exact")):
        monkeypatch.setattr(index, "FAISS_BEYOND", beyond)
        nearest(query, pool, 1, kind=kind)
    assert used == ["faiss"]
    monkeypatch.setitem(sys.modules, "faiss", None)
    monkeypatch.setattr(index, "find_spec", lambda name: None)
    nearest(query, pool, 1)
    assert used == ["faiss"]


def test_what_cannot_be_is_said() -> None:
    pool, query = pool_of(drawn(2, 4, seed=14)), drawn(1, 4, seed=15)
    for k in (0, -3):
        with pytest.raises(TellapartError, match=f"the {k} nearest"):
            nearest(query, pool, k)
    with pytest.raises(TellapartError, match="no index is called 'annoy'"):
        nearest(query, pool, 1, kind="annoy")


def test_without_faiss_the_hint_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(TellapartError, match="the index 'faiss' needs faiss") as caught:
        nearest(drawn(1, 4, seed=16), pool_of(drawn(2, 4, seed=17)), 1, kind="faiss")
    assert caught.value.hint == "pip install 'tellapart[faiss]'"


BOTH = """
import numpy as np
{first}
{second}
vectors = np.random.default_rng(0).standard_normal((4000, 64)).astype(np.float32)
for _ in range(3):
    faiss.knn(vectors[:64], vectors, 5, metric=faiss.METRIC_INNER_PRODUCT)
    (torch.from_numpy(vectors) @ torch.from_numpy(vectors[:500]).T).sum()
print("both")
"""


@pytest.mark.parametrize("order", [("torch", "faiss"), ("faiss", "torch")])
def test_faiss_and_torch_live_in_one_process(order: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)  # two libraries with a pool of threads each
    first, second = (f"import {name}" for name in order)
    code = BOTH.format(first=first, second=second)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "both\n"), done.stderr
