"""What captions find, against counting by hand: ranks, near-duplicates, neighbours, entropy."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import tellapart.retrievers.rivals
from tellapart.errors import TellapartError
from tellapart.retrievers.entropy import retrieval_entropy
from tellapart.retrievers.rivals import Contest, Standing, first_alike, hold_against

Vectors = NDArray[np.float32]

# Whole numbers, a few of them: products are exact, and many are equal.
numbers = st.integers(-2, 2)


def unit(rows: NDArray[np.float64]) -> Vectors:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def drawn(count: int, seed: int, width: int = 5) -> Vectors:
    return unit(np.random.default_rng(seed).standard_normal((count, width)))


def by_hand(captions: Vectors, pictures: Vectors, own: int, contest: Contest) -> dict[str, float]:
    """One caption, counted picture by picture."""
    (caption,) = captions
    score = [float(np.dot(caption, picture)) for picture in pictures]
    close = [float(np.dot(pictures[own], picture)) for picture in pictures]
    others = [place for place in range(len(pictures)) if place != own]
    twins = [place for place in others if close[place] >= contest.near]
    rivals = [place for place in others if place not in twins]
    best = max(score[place] for place in (own, *twins))

    def nearest(places: list[int]) -> list[int]:
        return sorted(places, key=lambda place: -close[place])[: contest.neighbours]

    return {
        "score": score[own],
        "rank": sum(score[place] >= score[own] for place in others),
        "rank_nearby": sum(score[place] >= score[own] for place in nearest(others)),
        "fair_rank": sum(score[place] >= best for place in rivals),
        "fair_rank_nearby": sum(score[place] >= best for place in nearest(rivals)),
        "rivals": len(rivals),
        "found_score": max((score[place] for place in rivals), default=-np.inf),
    }


@given(st.integers(0, 2**32), st.integers(2, 9), st.integers(1, 4), st.sampled_from([0.2, 0.7, 0.99]))
def test_ranks_are_what_one_counts(seed: int, count: int, neighbours: int, near: float) -> None:
    captions, pictures = drawn(count, seed), drawn(count, seed + 1)
    own = np.random.default_rng(seed).permutation(count)
    contest = Contest(neighbours, near)
    found = hold_against(captions, pictures, own, contest)
    for row in range(count):
        for name, value in by_hand(captions[row : row + 1], pictures, int(own[row]), contest).items():
            assert getattr(found, name)[row] == pytest.approx(value, abs=1e-5), name
        place = found.found[row]
        assert (place == -1) == (found.rivals[row] == 0)
        if place >= 0:
            assert captions[row] @ pictures[place] == pytest.approx(found.found_score[row], abs=1e-5)
            assert pictures[own[row]] @ pictures[place] == pytest.approx(found.likeness[row], abs=1e-5)
    entropy = retrieval_entropy(captions, pictures, temperature=0.07)
    np.testing.assert_allclose(found.entropy, entropy, atol=1e-6)


@pytest.mark.parametrize("cells", [1, 50, 10_000])
def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    captions, pictures, own = drawn(23, 1), drawn(31, 2), np.arange(23)
    whole = hold_against(captions, pictures, own, Contest(3, 0.6))
    groups = first_alike(pictures, 0.6)
    monkeypatch.setattr(tellapart.retrievers.rivals, "CELLS", cells)
    seen: list[tuple[int, int]] = []
    parts = hold_against(
        captions, pictures, own, Contest(3, 0.6), watch=lambda done, total: seen.append((done, total))
    )
    for name in Standing.__dataclass_fields__:
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), atol=1e-6)
    assert seen[-1] == (23, 23)
    assert first_alike(pictures, 0.6).tolist() == groups.tolist()


def test_a_copy_ties_with_its_original_to_the_last_bit() -> None:
    """Whatever a product rounds to: the caption does not find its picture, and in fairness it does."""
    pictures = np.repeat(drawn(40, 5, width=37), 2, axis=0)
    found = hold_against(pictures, pictures, np.arange(80), Contest(1))
    assert found.rank.tolist() == [1] * 80
    assert found.rank_nearby.tolist() == [1] * 80
    assert found.fair_rank.tolist() == [0] * 80
    assert found.rivals.tolist() == [78] * 80
    assert len(found.missed) == 0


def test_where_all_pictures_are_the_same_nothing_is_found() -> None:
    pictures = np.repeat(drawn(1, 0), 6, axis=0)
    found = hold_against(drawn(6, 1), pictures, np.arange(6), Contest())
    assert found.rank.tolist() == [5] * 6
    assert found.rivals.tolist() == [0] * 6
    assert found.found.tolist() == [-1] * 6
    assert len(found.missed) == len(found.mistaken) == 0
    assert first_alike(pictures, 0.99).tolist() == [0] * 6


def test_misses_come_worst_first_and_mistakes_most_alike_first() -> None:
    pictures = unit(np.array([[1, 0, 0], [0.8, 0.6, 0], [0, 0, 1]]))
    captions = unit(np.array([[0.79, 0.61, 0], [1, 0.3, 0], [1, 0, 0.1]]))
    found = hold_against(captions, pictures, np.arange(3), Contest(2))
    assert found.found.tolist() == [1, 0, 0]
    assert found.fair_rank.tolist() == [1, 1, 2]
    assert found.missed[0] == 2
    assert found.mistaken.tolist() == [0, 1, 2]


@given(st.lists(st.tuples(numbers, numbers, st.just(1)), min_size=1, max_size=12))
def test_a_group_is_that_of_the_first_one_alike(rows: list[tuple[int, int, int]]) -> None:
    pictures = unit(np.array(rows, np.float64))
    expected: list[int] = []
    for place, picture in enumerate(pictures):
        alike = [before for before in range(place) if float(picture @ pictures[before]) >= 0.9]
        expected.append(expected[alike[0]] if alike else place)
    assert first_alike(pictures, 0.9).tolist() == expected


def test_memory_does_not_grow_with_the_square_of_the_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tellapart.retrievers.rivals, "CELLS", 1 << 16)
    pictures, own = drawn(3000, 3), np.arange(3000)
    tracemalloc.start()
    hold_against(pictures, pictures, own, Contest())
    first_alike(np.repeat(pictures[:1], 3000, axis=0), 0.99)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12e6  # one such matrix takes 36 MB


def test_what_cannot_be_measured_is_an_error() -> None:
    pictures = drawn(3, 0)
    broken = pictures.copy()
    broken[1, 0] = np.nan
    with pytest.raises(TellapartError, match="caption 1 for picture 0"):
        hold_against(broken, pictures, np.arange(3), Contest())
    with pytest.raises(TellapartError, match="0 neighbours"):
        Contest(0)
    with pytest.raises(TellapartError, match="temperature is 0"):
        Contest(temperature=0.0)
