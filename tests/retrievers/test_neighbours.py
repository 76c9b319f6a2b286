"""The nearest pictures: against their definition and other programs; ties, blocks, order; what is refused."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

from tellapart.errors import TellapartError
from tellapart.retrievers import neighbours
from tellapart.retrievers.neighbours import (
    Distance,
    Neighbours,
    directions,
    draw_contrastive,
    nearest,
    nearest_others,
    one_in_hundred,
)
from tellapart.vision.cache import FeatureCache
from tellapart.vision.efficientnet import build_lite2
from tellapart.vision.looking import Seen, look

Matrix = NDArray[Any]

DISTANCES: list[Distance] = ["cosine", "euclidean"]

# Whole numbers: ties are many, and sums of products exact.
points = arrays(np.float32, st.tuples(st.integers(2, 9), st.just(3)), elements=st.integers(-3, 3).map(float))


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_they_are_those_that_scipy_finds(distance: Distance, kind: Any) -> None:
    features = np.random.default_rng(1).standard_normal((120, 16)).astype(kind)
    apart = cdist(features.astype(np.float64), features.astype(np.float64), distance)
    np.fill_diagonal(apart, np.inf)
    order = np.argsort(apart, axis=1)[:, :7]
    found = nearest_others(features, 7, distance=distance)
    assert found.rows.tolist() == order.tolist()
    expected = np.take_along_axis(apart, order, axis=1)
    np.testing.assert_allclose(
        found.closeness, 1 - expected if distance == "cosine" else -expected, atol=2e-6
    )


def test_a_tree_finds_the_same_among_pictures_of_another_set() -> None:
    generator = np.random.default_rng(2)
    queries, pool = generator.standard_normal((20, 5)), generator.standard_normal((200, 5))
    found = nearest(queries, pool, 60, distance="euclidean")
    apart, rows = KDTree(pool).query(queries, k=60)
    assert found.rows.tolist() == rows.tolist()
    np.testing.assert_allclose(found.closeness, -apart, rtol=1e-6)


@pytest.mark.parametrize("distance", DISTANCES)
def test_great_and_tiny_numbers_do_not_leave_their_range(distance: Distance) -> None:
    features = np.random.default_rng(3).standard_normal((30, 6)).astype(np.float32)
    plain = nearest_others(features, 4, distance=distance)
    for scale in (1e-30, 1e30):
        scaled = nearest_others(
            (features.astype(np.float64) * scale).astype(np.float32), 4, distance=distance
        )
        assert scaled.rows.tolist() == plain.rows.tolist()


@given(points, st.integers(1, 12))
def test_the_nearest_come_first_and_of_two_as_near_the_earlier(features: Matrix, count: int) -> None:
    found = nearest_others(features, count, distance="euclidean")
    for row, rows in enumerate(found.rows.tolist()):
        apart = ((features - features[row]) ** 2).sum(axis=1)  # exact, of whole numbers
        others = [other for other in range(len(features)) if other != row]
        assert rows == sorted(others, key=lambda other: (apart[other], other))[:count]


@given(points, st.integers(1, 12))
def test_no_other_picture_has_a_greater_cosine(features: Matrix, count: int) -> None:
    found = nearest_others(features, count)
    assert found.rows.shape == (len(features), min(count, len(features) - 1))
    cosines = directions(features.astype(np.float64)) @ directions(features.astype(np.float64)).T
    for row, rows in enumerate(found.rows.tolist()):
        assert row not in rows
        assert len(set(rows)) == len(rows)
        best = np.sort(np.delete(cosines[row], row))[::-1][: len(rows)]
        np.testing.assert_allclose(cosines[row, rows], best, atol=1e-6)
        np.testing.assert_allclose(found.closeness[row], best, atol=1e-6)


@given(points, st.data(), st.sampled_from(DISTANCES))
def test_other_numbers_for_the_pictures_are_other_numbers_for_their_neighbours(
    features: Matrix, data: st.DataObject, distance: Distance
) -> None:
    order = np.array(data.draw(st.permutations(range(len(features)))))
    before = nearest_others(features, 3, distance=distance)
    after = nearest_others(features[order], 3, distance=distance)
    # Ties may fall out otherwise, for they go by order; how near the neighbours are may not change at all.
    assert after.closeness.tolist() == before.closeness[order].tolist()


@given(points, st.integers(1, 40), st.sampled_from(DISTANCES))
def test_blocks_change_nothing(features: Matrix, cells: int, distance: Distance) -> None:
    whole = nearest_others(features, 4, distance=distance)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbours, "CELLS", cells)
        pieces = nearest_others(features, 4, distance=distance)
    assert pieces.rows.tolist() == whole.rows.tolist()
    assert pieces.closeness.tolist() == whole.closeness.tolist()


@given(points)
def test_nearness_is_mutual(features: Matrix) -> None:
    found = nearest_others(features, len(features))
    near = {
        (row, other): closeness
        for row in range(len(features))
        for other, closeness in zip(found.rows[row].tolist(), found.closeness[row].tolist(), strict=True)
    }
    assert all(near[other, row] == closeness for (row, other), closeness in near.items())


@pytest.mark.parametrize("distance", DISTANCES)
def test_a_picture_that_is_there_twice_is_as_near_to_all_others_as_its_twin(distance: Distance) -> None:
    # Where a matrix product rounds by the place of a column, equal columns come out unlike.
    features = np.random.default_rng(4).standard_normal((301, 333)).astype(np.float32)
    twice = np.concatenate([features, features[::-1]])
    found = nearest(features, twice, 20, own=np.arange(301), distance=distance)
    assert found.rows[:, 0].tolist() == [601 - row for row in range(301)]
    assert (found.closeness[:, 1:-1:2] == found.closeness[:, 2::2]).all()
    assert (found.rows[:, 1:-1:2] < found.rows[:, 2::2]).all()


@pytest.mark.parametrize("distance", DISTANCES)
def test_the_rounding_of_a_matrix_product_decides_nothing(distance: Distance) -> None:
    # Pictures so much alike that single precision cannot tell which are nearest.
    generator = np.random.default_rng(8)
    features = generator.standard_normal(333) + 1e-5 * generator.standard_normal((200, 333))
    features = directions(features.astype(np.float32))
    exact = features.astype(np.float64)
    for row, rows in enumerate(nearest_others(features, 5, distance=distance).rows.tolist()):
        if distance == "cosine":
            closeness = (directions(features).astype(np.float64) * directions(features)[row]).sum(axis=1)
        else:
            closeness = -((exact - exact[row]) ** 2).sum(axis=1)
        closeness[row] = -np.inf
        assert rows == np.argsort(-closeness, kind="stable")[:5].tolist()


def test_the_matrix_of_pictures_by_pictures_is_never_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "CELLS", 1 << 17)
    features = np.random.default_rng(5).standard_normal((3000, 8)).astype(np.float32)
    tracemalloc.start()
    nearest_others(features, one_in_hundred(len(features)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3000 * 3000  # a quarter of the matrix


def test_of_features_of_length_1_the_dot_product_is_the_cosine_and_copies_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(neighbours, "CELLS", 1 << 14)
    features = directions(np.random.default_rng(7).standard_normal((2000, 512)).astype(np.float32))
    expected = nearest_others(features, 3)
    tracemalloc.start()
    found = nearest_others(features, 3, distance="dot")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.rows.tolist() == expected.rows.tolist()
    np.testing.assert_allclose(found.closeness, expected.closeness, atol=1e-6)
    assert peak < features.nbytes / 2


def test_one_in_hundred_and_at_least_one() -> None:
    assert [one_in_hundred(pictures) for pictures in (2, 99, 199, 200, 113_287)] == [1, 1, 1, 2, 1132]


def test_contrastive_pictures_are_drawn_afresh_and_evenly() -> None:
    rows = np.arange(12, dtype=np.int32).reshape(3, 4)
    chosen = Neighbours(rows, np.zeros((3, 4), np.float32))
    generator = np.random.default_rng(6)
    drawn = np.stack([draw_contrastive(chosen, generator) for _ in range(4000)])
    for picture in range(3):
        values, times = np.unique(drawn[:, picture], return_counts=True)
        assert values.tolist() == rows[picture].tolist()
        assert (abs(times - 1000) < 150).all()  # five standard deviations
    again = np.random.default_rng(6)
    assert [draw_contrastive(chosen, again).tolist() for _ in range(3)] == drawn[:3].tolist()


def test_zeros_are_at_a_right_angle_to_everything() -> None:
    found = nearest_others(np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.1]]), 2)
    assert found.closeness[0].tolist() == [0.0, 0.0]
    assert found.rows[0].tolist() == [1, 2]
    assert found.rows[1].tolist() == [0, 2]


def test_progress_is_told_up_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "CELLS", 10)
    seen: list[tuple[int, int]] = []
    nearest_others(np.eye(5), 1, watch=lambda done, total: seen.append((done, total)))
    assert seen == [(2, 5), (4, 5), (5, 5)]


def test_what_has_no_neighbours_is_refused() -> None:
    with pytest.raises(TellapartError, match="two pictures or more, and there are 1"):
        nearest_others(np.ones((1, 3)), 1)
    with pytest.raises(TellapartError, match="0 neighbours"):
        nearest_others(np.ones((3, 3)), 0)
    with pytest.raises(TellapartError, match="no picture to be near to"):
        nearest(np.ones((3, 3)), np.empty((0, 3)), 1)
    with pytest.raises(TellapartError, match=r"\(3,\) and of \(4,\)"):
        nearest(np.ones((3, 3)), np.ones((3, 4)), 1)
    for bad in (np.nan, np.inf):
        for distance in DISTANCES:
            with pytest.raises(TellapartError, match="picture 1 "):
                nearest_others(np.array([[1.0], [bad], [1.0]]), 1, distance=distance)


def test_photographs_of_one_scene_are_neighbours(real_data: Path, own_cache: Path) -> None:
    # Each pair was taken at one place within seconds; the others show something else.
    names = ["241346352_c5a0ea43c6", "1000268201_693b08cb0e", "3612485097_b706d950ed"]
    names += ["1001773457_577c3a7d70", "3612485611_12dd7742f7", "241346923_18bd84bea4"]
    paths = [real_data / "flickr8k" / "images" / f"{name}.jpg" for name in names]
    encoder = build_lite2()
    seen = list(look(paths, encoder, parts=["pooled"], cache=FeatureCache(own_cache, encoder)))
    features = np.concatenate([picture.features.pooled for picture in seen if isinstance(picture, Seen)])
    for distance in DISTANCES:
        found = nearest_others(features, one_in_hundred(len(features)), distance=distance).rows[:, 0]
        assert (found[0], found[5], found[2], found[4]) == (5, 0, 4, 2)
