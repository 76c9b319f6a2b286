"""Scenes are distinct, look-alikes differ in one respect, and a seed decides everything."""

from __future__ import annotations

from dataclasses import astuple
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tellapart.data.shapes.scenes import (
    ATTRIBUTES,
    DISTINCT_SCENES,
    LARGEST_GROUP,
    Scene,
    Thing,
    draw_groups,
    draw_scenes,
    look_alikes,
)
from tellapart.errors import TellapartError

# Drawn beforehand: run-time type checks use `random`, which hypothesis forbids while it makes examples.
SCENES = st.sampled_from(draw_scenes(3000, seed=0))
RED_STAR = Thing("star", "red", "small", "top")


def attributes_that_differ(one: Scene, other: Scene) -> int:
    """How many attributes of the only thing that differs do so; 0 unless exactly one thing does."""
    gone, new = set(one.things) - set(other.things), set(other.things) - set(one.things)
    if len(one.things) != len(other.things) or len(gone) != 1 or len(new) != 1:
        return 0
    return sum(before != after for before, after in zip(astuple(gone.pop()), astuple(new.pop()), strict=True))


def test_ten_thousand_scenes_are_distinct_and_of_every_kind() -> None:
    scenes = draw_scenes(10_000, seed=5)
    assert len(set(scenes)) == len(scenes) == 10_000
    assert {len(scene.things) for scene in scenes} == {1, 2, 3}
    for attribute, words in ATTRIBUTES.items():
        assert {getattr(thing, attribute) for scene in scenes for thing in scene.things} == set(words)


def test_scenes_of_one_thing_do_not_run_out_towards_the_end() -> None:
    scenes = draw_scenes(20_000, seed=5)
    first, second = (
        sum(len(scene.things) == 1 for scene in half) for half in (scenes[:10_000], scenes[10_000:])
    )
    assert abs(first - second) < 0.2 * (first + second)


def test_the_number_of_distinct_scenes_is_that_of_all_combinations() -> None:
    kinds = 8 * 8 * 2
    assert 9 * kinds + 36 * kinds**2 + 84 * kinds**3 == DISTINCT_SCENES


def test_the_seed_decides_what_is_drawn() -> None:
    assert draw_scenes(50, seed=1) == draw_scenes(50, seed=1)
    assert draw_scenes(50, seed=1) != draw_scenes(50, seed=2)
    scene = Scene((RED_STAR,))
    assert look_alikes(scene, 8, seed=1) == look_alikes(scene, 8, seed=1)
    assert look_alikes(scene, 8, seed=1) != look_alikes(scene, 8, seed=2)


@given(SCENES, st.integers(0, 20), st.integers())
def test_look_alikes_differ_in_exactly_one_attribute_of_one_thing(
    scene: Scene, count: int, seed: int
) -> None:
    found = look_alikes(scene, count, seed=seed)
    assert len(set(found)) == len(found) == count
    assert all(attributes_that_differ(scene, other) == 1 for other in found)


def test_every_look_alike_can_be_had_and_no_more() -> None:
    scene = Scene((RED_STAR,))
    every = look_alikes(scene, 7 + 7 + 1 + 8, seed=0)
    assert len(set(every)) == 23
    with pytest.raises(TellapartError, match="23"):
        look_alikes(scene, 24, seed=0)


@pytest.mark.parametrize("size", [1, 2, 5, LARGEST_GROUP])
def test_groups_are_look_alikes_of_their_first_and_share_no_scene(size: int) -> None:
    groups = draw_groups(60, size, seed=3)
    scenes = [scene for group in groups for scene in group]
    assert [len(group) for group in groups] == [size] * 60
    assert len(set(scenes)) == len(scenes)
    for first, *others in groups:
        assert all(attributes_that_differ(first, other) == 1 for other in others)
        assert all(one != other for one, other in combinations(others, 2))


@pytest.mark.parametrize(("groups", "size"), [(1, 0), (1, LARGEST_GROUP + 1), (DISTINCT_SCENES, 1)])
def test_more_than_there_is_is_refused(groups: int, size: int) -> None:
    with pytest.raises(TellapartError):
        draw_groups(groups, size, seed=0)


@given(
    st.permutations(
        [RED_STAR, Thing("moon", "pink", "large", "left"), Thing("cross", "blue", "large", "right")]
    )
)
def test_the_order_in_which_things_are_named_does_not_matter(things: list[Thing]) -> None:
    scene = Scene(tuple(things))
    assert [thing.place for thing in scene.things] == ["top", "left", "right"]
    assert hash(scene) == hash(Scene(tuple(reversed(things))))


def test_places_are_in_reading_order() -> None:
    cells = [
        (thing.row, thing.column) for thing in (Thing("star", "red", "small", p) for p in ATTRIBUTES["place"])
    ]
    assert cells == [(row, column) for row in range(3) for column in range(3)]
    assert all(one < other for one, other in pairwise(cells))


def test_a_wrong_word_is_named_with_the_nearest_right_one() -> None:
    with pytest.raises(TellapartError, match="no colour is called 'gren'") as caught:
        Thing("star", "gren", "small", "top")
    assert "'green'" in caught.value.hint


@pytest.mark.parametrize(
    "things",
    [
        (),
        (RED_STAR, Thing("moon", "pink", "large", "top")),
        tuple(Thing("star", "red", "small", place) for place in ("top", "left", "right", "bottom")),
    ],
)
def test_impossible_scenes_are_refused(things: tuple[Thing, ...]) -> None:
    with pytest.raises(TellapartError):
        Scene(things)
