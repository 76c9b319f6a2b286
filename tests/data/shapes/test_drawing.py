"""Pictures show their scenes, and different scenes never look the same."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tellapart.data.shapes.drawing import BACKGROUND, OUTLINES, PAINTS, SMALLEST_SIDE, draw
from tellapart.data.shapes.scenes import ATTRIBUTES, COLOURS, PLACES, SHAPES, SIZES, Scene, Thing, draw_groups
from tellapart.errors import TellapartError


def pixels(*things: Thing, side: int = 128) -> np.ndarray:
    return np.asarray(draw(Scene(things), side=side))


def painted(picture: np.ndarray) -> np.ndarray:
    covered: np.ndarray = (picture != BACKGROUND).any(axis=-1)
    return covered


def test_every_word_has_its_paint_and_outline() -> None:
    assert set(PAINTS) == set(COLOURS)
    assert set(OUTLINES) == set(SHAPES)
    assert all(-1 <= part <= 1 for outline in OUTLINES.values() for point in outline for part in point)


@pytest.mark.parametrize("side", [SMALLEST_SIDE, 128, 200])
def test_all_things_look_different_in_each_place(side: int) -> None:
    """With the next test this proves it of all scenes: each is made of nine independent parts."""
    for place in PLACES:
        kinds = product(SHAPES, COLOURS, SIZES)
        pictures = {pixels(Thing(*kind, place), side=side).tobytes() for kind in kinds}
        assert len(pictures) == len(SHAPES) * len(COLOURS) * len(SIZES)


@pytest.mark.parametrize("side", [SMALLEST_SIDE, 100, 128])
def test_a_thing_stays_in_its_own_ninth(side: int) -> None:
    bounds = [side * index // 3 for index in range(4)]
    for shape, place in product(SHAPES, PLACES):
        thing = Thing(shape, "black", "large", place)
        covered = painted(pixels(thing, side=side))
        inside = np.zeros_like(covered)
        rows = slice(bounds[thing.row], bounds[thing.row + 1])
        inside[rows, bounds[thing.column] : bounds[thing.column + 1]] = True
        assert covered.any()
        assert not covered[~inside].any()


def test_scenes_and_their_look_alikes_give_distinct_pixels() -> None:
    scenes = [scene for group in draw_groups(80, 6, seed=11) for scene in group]
    assert len({draw(scene).tobytes() for scene in scenes}) == len(scenes) == 480


@pytest.mark.parametrize("shape", SHAPES)
def test_size_and_colour_are_what_they_say(shape: str) -> None:
    small, large = (pixels(Thing(shape, "blue", size, "centre")) for size in ("small", "large"))
    assert painted(large).sum() > 3 * painted(small).sum()
    for picture in (small, large):
        # Edges are blends; the paint itself must be by far the most frequent colour that is not white.
        colours, counts = np.unique(picture[painted(picture)], axis=0, return_counts=True)
        assert tuple(colours[counts.argmax()]) == PAINTS["blue"]
        assert counts.max() > 0.4 * counts.sum()


def test_the_picture_is_plain_and_repeatable() -> None:
    scene = Scene(tuple(Thing("heart", "pink", "large", place) for place in ("top", "centre", "bottom left")))
    picture = draw(scene, side=96)
    assert (picture.mode, picture.size) == ("RGB", (96, 96))
    assert picture.getpixel((95, 95)) == BACKGROUND
    assert draw(scene, side=96).tobytes() == picture.tobytes()


def test_drawing_a_scene_is_drawing_its_things() -> None:
    things = [Thing("star", "red", "small", "top"), Thing("moon", "black", "large", "top right")]
    together = pixels(*things)
    alone = np.minimum(*(pixels(thing) for thing in things))
    assert np.array_equal(together, alone)


def test_pictures_too_small_to_see_are_refused() -> None:
    with pytest.raises(TellapartError, match="too small"):
        draw(Scene((Thing(*(words[0] for words in ATTRIBUTES.values())),)), side=SMALLEST_SIDE - 1)
