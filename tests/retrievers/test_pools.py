"""Hard pools, sets of distractors, and pictures that nobody could tell apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from tellapart.errors import TellapartError
from tellapart.retrievers.distinct import distinct_rows, dot_products
from tellapart.retrievers.neighbours import directions
from tellapart.retrievers.pools import distractor_sets, hard_pool, indistinguishable, similar_pictures

Matrix = NDArray[Any]


def at(*degrees: float) -> Matrix:
    """Features that point this way."""
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def test_groups_are_taken_the_closest_first() -> None:
    # Three groups: within 2, within 6 and within 20 degrees; two pictures far from all.
    features = at(0, 90, 180, 270, 1, 93, 189, 2.1, 96.1, 200, 315)
    assert hard_pool(features, 3, group=3).tolist() == [4, 0, 7]
    assert hard_pool(features, 6, group=3).tolist() == [4, 0, 7, 5, 1, 8]
    assert hard_pool(features, 8, group=3).tolist() == [4, 0, 7, 5, 1, 8, 6, 2]
    assert hard_pool(features, 10, group=3).tolist() == [4, 0, 7, 5, 1, 8, 6, 2, 9, 3]


def test_a_picture_taken_is_no_neighbour_any_more() -> None:
    # 30 is nearest to 20, which goes with 19; 100 and 112 are farther apart than 20 and 30.
    assert hard_pool(at(20, 30, 100, 112, 19), 4, group=2).tolist() == [0, 4, 2, 3]


small = arrays(np.float32, st.tuples(st.integers(2, 12), st.just(3)), elements=st.integers(-3, 3).map(float))


@given(small, st.integers(1, 14), st.integers(2, 4))
def test_the_pool_has_its_size_and_is_grown_by_the_rule(features: Matrix, size: int, group: int) -> None:
    found = hard_pool(features, size, group=group).tolist()
    assert len(found) == len(set(found)) == min(size, len(features))
    if size >= len(features):
        return
    # The rule, said plainly: each time the most crowded of those left, with its nearest.
    points = directions(features.astype(np.float64))
    cosines = np.round(points @ points.T, 6)
    left, expected = set(range(len(features))), list[int]()
    while len(expected) < size:
        groups = [_group(cosines, row, left - {row}, group) for row in sorted(left)]
        chosen = max(groups, key=lambda each: each[0])[1]
        expected += chosen
        left -= set(chosen)
    agreed = np.mean([mine == theirs for mine, theirs in zip(found, expected, strict=False)])
    # Rounding may decide otherwise between pictures that are equally crowded; then compare how crowded.
    assert agreed == 1 or _tightness(cosines, found, group) == pytest.approx(
        _tightness(cosines, expected[:size], group), abs=1e-3
    )


@pytest.mark.parametrize("noise", [0, 1e-3])
def test_more_copies_than_neighbours_are_known_of(noise: float) -> None:
    chance = np.random.default_rng(0)
    features = chance.normal(size=(300, 16))
    features[::2] = features[0] + noise * chance.normal(size=(150, 16))
    chosen = hard_pool(features, 150)
    assert set(chosen.tolist()) == set(range(0, 300, 2))


def _group(cosines: Matrix, row: int, others: set[int], group: int) -> tuple[float, list[int]]:
    nearest = sorted(others, key=lambda each: (-cosines[row, each], each))[: group - 1]
    missing = group - 1 - len(nearest)
    return round((cosines[row, nearest].sum() - missing) / (group - 1), 5), [row, *nearest]


def _tightness(cosines: Matrix, chosen: list[int], group: int) -> float:
    """Mean cosine of the first of each whole group with its members."""
    firsts = range(0, len(chosen) - group + 1, group)
    return float(
        np.mean([cosines[chosen[first], chosen[first + 1 : first + group]].mean() for first in firsts] or [0])
    )


def test_pools_that_mean_nothing_are_refused() -> None:
    with pytest.raises(TellapartError, match="hard pool of 0"):
        hard_pool(at(0, 1, 2), 0)
    with pytest.raises(TellapartError, match="groups of 1"):
        hard_pool(at(0, 1, 2), 2, group=1)
    broken = at(0, 1, 2)
    broken[1, 0] = np.nan
    with pytest.raises(TellapartError, match="picture 1 "):
        hard_pool(broken, 2)


def test_sets_hold_the_nearest_of_the_whole_pool() -> None:
    features = at(0, 90, 10, 80, 1)  # the last two have no captions
    assert distractor_sets(features, 3, 2).tolist() == [[4, 2], [3, 2], [4, 0]]
    assert distractor_sets(features, 3, 9).shape == (3, 4)  # all others, where there are no more


def test_distractors_join_if_they_are_near_any_picture() -> None:
    assert similar_pictures(at(0, 90), at(45, 2, 180, 91, 3), 1).tolist() == [1, 3]
    assert similar_pictures(at(0, 90), at(45, 2, 180, 91, 3), 2).tolist() == [0, 1, 3, 4]


def test_what_nobody_could_tell_apart() -> None:
    features = np.concatenate([at(0, 5, 40, 9), np.zeros((2, 2), np.float32)])
    digests = [b"a", b"b", b"c", b"d", b"e", b"c"]
    found = indistinguishable(features, digests, 5, cosine=float(np.cos(np.radians(6))))
    # Not a chain: 0 is like 5 and 5 is like 9 degrees, but 0 is not like 9.
    assert [rows.tolist() for rows in found] == [[0, 1], [0, 1, 3], [2, 5], [1, 3], [4]]
    alone = indistinguishable(features, digests, 5, cosine=2.0)
    assert [rows.tolist() for rows in alone] == [[0], [1], [2, 5], [3], [4]]


@given(small)
def test_distinct_rows_stand_for_all(rows: Matrix) -> None:
    first, place = distinct_rows(rows)
    assert (rows[first][place] == rows).all()
    assert len(np.unique(rows, axis=0)) == len(first)
    signed = np.where(rows == 0, -0.0, rows).astype(np.float32)
    assert len(distinct_rows(np.concatenate([rows, signed]))[0]) == len(first)


def test_products_of_equal_rows_are_equal() -> None:
    rows = np.random.default_rng(7).standard_normal((301, 333)).astype(np.float32)
    products = dot_products(np.concatenate([rows, rows]), np.concatenate([rows, rows[::-1]]))
    assert (products[:301] == products[301:]).all()
    assert (products[:, :301] == products[:, :300:-1]).all()
    np.testing.assert_allclose(products[:301, :301], rows @ rows.T, rtol=1e-4, atol=1e-4)
