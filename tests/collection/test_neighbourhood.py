"""Rivals and doubles, held against looking at every pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tellapart.arrays import Float32
from tellapart.collection.neighbourhood import NOBODY, find_neighbourhoods
from tellapart.searching import NEAR


def directions(angles: list[float]) -> Float32[np.ndarray, "n 2"]:
    """Unit vectors in the plane."""
    return np.array([(np.cos(angle), np.sin(angle)) for angle in angles], np.float32)


def names(count: int) -> list[str]:
    """Fingerprints that all differ."""
    return [str(number) for number in range(count)]


def test_the_nearest_come_first_and_nobody_is_its_own_rival() -> None:
    found = find_neighbourhoods(directions([0.0, 0.3, 1.0, 2.0]), names(4), 2)

    assert found.rivals.tolist() == [[1, 2], [0, 2], [1, 0], [2, 1]]
    assert found.closeness[0] == pytest.approx([np.cos(0.3), np.cos(1.0)], abs=1e-6)
    assert not found.doubles


def test_what_is_nearly_the_same_is_no_rival() -> None:
    found = find_neighbourhoods(directions([0.0, 0.01, 1.0]), names(3), 2)

    assert found.rivals_of(0) == [2]
    assert found.doubles_of(0) == (1,)
    assert found.doubles_of(1) == (0,)
    assert found.rivals_of(2) == [1, 0]


def test_copies_share_their_rivals_and_are_doubles_of_one_another() -> None:
    same, other = "s", "o"
    vectors = directions([0.0, 0.0, 1.0, 0.0])

    found = find_neighbourhoods(vectors, [same, same, other, same], 3)

    assert [found.rivals_of(row) for row in range(4)] == [[2], [2], [0], [2]]
    assert found.doubles_of(1) == (0, 3)
    assert found.doubles_of(2) == ()


@pytest.mark.parametrize("count", [1, 2, 7])
def test_pictures_that_are_all_the_same_have_no_rivals(count: int) -> None:
    found = find_neighbourhoods(directions([0.0] * count), ["x"] * count, 5)

    assert (found.rivals == NOBODY).all()
    assert all(len(found.doubles_of(row)) == count - 1 for row in range(count))


def test_a_rival_is_found_behind_any_number_of_doubles() -> None:
    angles = [0.0001 * number for number in range(60)] + [1.0]

    found = find_neighbourhoods(directions(angles), names(61), 1)

    assert all(found.rivals_of(row) == [60] for row in range(60))
    assert len(found.doubles_of(0)) == 59


@given(st.lists(st.floats(0, 3.1), min_size=2, max_size=20), st.integers(1, 6), st.data())
def test_as_by_looking_at_every_pair(angles: list[float], count: int, data: st.DataObject) -> None:
    digests = data.draw(st.lists(st.sampled_from(names(6)), min_size=len(angles), max_size=len(angles)))
    # Of the same bytes, the same vector.
    vectors = directions([angles[digests.index(digest)] for digest in digests])

    found = find_neighbourhoods(vectors, digests, count)

    firsts = sorted(digests.index(digest) for digest in set(digests))
    cosines = vectors.astype(np.float64) @ vectors.astype(np.float64).T
    for row in range(len(angles)):
        own = digests.index(digests[row])
        rivals = [other for other in firsts if other != own and cosines[own, other] < NEAR - 1e-6]
        sure = [other for other in firsts if other == own or abs(cosines[own, other] - NEAR) > 1e-6]
        if len(sure) == len(firsts):  # rounding decides about none of them
            best = sorted((cosines[own, other] for other in rivals), reverse=True)[:count]
            near = [other for other in firsts if other != own and cosines[own, other] > NEAR]
            doubles = {other for other in range(len(angles)) if digests.index(digests[other]) in (*near, own)}
            assert found.closeness[row, : len(best)] == pytest.approx(best, abs=1e-5)
            assert len(found.rivals_of(row)) == len(best)
            assert set(found.doubles_of(row)) == doubles - {row}
