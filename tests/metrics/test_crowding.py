"""Crowding against its definition, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist

from tellapart.errors import TellapartError
from tellapart.metrics.crowding import crowding, most_and_least, neighbours


@pytest.mark.parametrize("pictures", [2, 30, 199, 200])
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_crowding_is_the_mean_cosine_to_the_nearest_hundredth(pictures: int, kind: Any) -> None:
    features = np.random.default_rng(pictures).standard_normal((pictures, 7)).astype(kind)
    cosines = 1 - cdist(features.astype(np.float64), features.astype(np.float64), "cosine")
    nearest = max(1, pictures // 100)
    expected = [np.sort(np.delete(row, own))[-nearest:].mean() for own, row in enumerate(cosines)]
    assert neighbours(pictures) == nearest
    tolerance = 1e-12 if kind is np.float64 else 1e-5
    np.testing.assert_allclose(crowding(features, rows=64), expected, atol=tolerance, rtol=0)


vectors = arrays(np.float64, (9, 3), elements=st.integers(-5, 5).map(float))


@given(vectors, st.integers(1, 10), st.sampled_from([1.0, 1e-200, 1e200]))
def test_neither_length_nor_blocks_matter(features: Any, rows: int, scale: float) -> None:
    lengths = np.arange(1, 10)[:, None] * scale
    np.testing.assert_allclose(crowding(features * lengths, rows=rows), crowding(features), atol=1e-12)


@given(vectors, st.permutations(range(9)))
def test_the_order_of_pictures_does_not_matter(features: Any, order: list[int]) -> None:
    np.testing.assert_allclose(crowding(features[order]), crowding(features)[order], atol=1e-12)


def test_two_of_a_kind_are_as_crowded_as_can_be_and_nothing_is_near_zero() -> None:
    features = np.array([[3.0, 4.0], [0.0, 0.0], [6.0, 8.0]])
    np.testing.assert_allclose(crowding(features), [1, 0, 1])


def test_groups_are_a_fifth_each_and_at_least_one() -> None:
    for pictures, size in ((2, 1), (4, 1), (9, 1), (10, 2), (99, 19)):
        values = np.random.default_rng(pictures).random(pictures)
        most, least = most_and_least(values)
        assert most.sum() == least.sum() == size
        assert values[most].min() == np.sort(values)[-size]
        assert values[least].max() == np.sort(values)[size - 1]
        assert not (most & least).any()
    most, least = most_and_least(np.tile([0.0, 1.0, 0.5], 10))  # all that are as crowded belong together
    assert np.flatnonzero(most).tolist() == list(range(1, 30, 3))
    assert np.flatnonzero(least).tolist() == list(range(0, 30, 3))


def test_progress_is_told_up_to_the_end() -> None:
    seen: list[tuple[int, int]] = []
    crowding(np.eye(5), rows=2, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(2, 5), (4, 5), (5, 5)]


@pytest.mark.parametrize(
    ("features", "said"),
    [
        (np.ones((1, 3)), "two pictures or more"),
        (np.ones(3), r"shape \(3,\)"),
        (np.ones((3, 3), dtype=np.int64), "int64"),
        (np.array([[1.0], [np.nan], [np.inf]]), "picture 1 "),
    ],
)
def test_features_that_tell_nothing_are_refused(features: Any, said: str) -> None:
    with pytest.raises(TellapartError, match=said):
        crowding(features)
