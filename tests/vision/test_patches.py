"""Raw pixels as features, each at its place; and the laws of the record that every encoder fills."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import Float32
from PIL import Image

from tellapart.vision.encoder import Encoder
from tellapart.vision.features import PARTS, Features, stack
from tellapart.vision.patches import CELL, CELLS, SIDE, Patches, build

RED = np.array([1, -1, -1], np.float16)
BLACK = np.array([-1, -1, -1], np.float16)


def noise(count: int, seed: int = 0) -> Float32[np.ndarray, "b 3 h w"]:
    return np.random.default_rng(seed).uniform(-1, 1, (count, 3, SIDE, SIDE)).astype(np.float32)


def same_bits(one: Features, other: Features) -> bool:
    return all(
        getattr(one, part).shape == getattr(other, part).shape
        and getattr(one, part).tobytes() == getattr(other, part).tobytes()
        for part in PARTS
    )


def test_features_have_the_declared_shapes_in_half_precision() -> None:
    encoder = build()
    assert isinstance(encoder, Encoder)
    features = encoder.encode(noise(3))
    for part in PARTS:
        assert getattr(features, part).shape == (3, *encoder.shapes[part])
        assert getattr(features, part).dtype == np.float16
    assert len(encoder.class_names) == encoder.shapes["classes"][0] == 0


@pytest.mark.parametrize("size", [(CELLS * 10, CELLS * 10), (CELLS * 30, CELLS * 4), (CELLS * 6, CELLS * 24)])
def test_each_cell_shows_its_own_place_of_the_picture(size: tuple[int, int]) -> None:
    encoder = Patches()
    width, height = size[0] // CELLS, size[1] // CELLS
    for place in range(CELLS * CELLS):
        row, column = divmod(place, CELLS)
        picture = Image.new("RGB", size, "black")
        picture.paste("red", (column * width, row * height, (column + 1) * width, (row + 1) * height))
        cells = encoder.encode(encoder.prepare(picture)[None]).grid[0].reshape(CELLS * CELLS, CELL * CELL, 3)
        assert (cells[place] == RED).all()
        assert (np.delete(cells, place, axis=0) == BLACK).all()


def test_pixels_inside_a_cell_keep_their_order_and_value() -> None:
    encoder = Patches()
    pixels = np.random.default_rng(1).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
    grid = encoder.encode(encoder.prepare(Image.fromarray(pixels))[None]).grid[0]
    row, column = 4, 7
    shown = pixels[row * CELL : (row + 1) * CELL, column * CELL : (column + 1) * CELL]
    expected = shown.astype(np.float32) / 127.5 - 1
    np.testing.assert_allclose(
        grid[row * CELLS + column].reshape(CELL, CELL, 3).astype(np.float32), expected, atol=5e-4
    )


def test_the_pooled_feature_holds_every_pixel() -> None:
    features = Patches().encode(noise(2))
    assert np.array_equal(features.pooled, features.grid.reshape(2, -1))
    assert len(np.unique(features.pooled)) > 1000


@pytest.mark.parametrize("size", [(1, 1), (1, 500), (777, 3), (54, 54)])
def test_a_picture_of_any_size_is_a_good_picture(size: tuple[int, int]) -> None:
    pixels = Patches().prepare(Image.new("RGB", size, "white"))
    assert pixels.shape == (3, SIDE, SIDE)
    assert pixels.dtype == np.float32
    assert (pixels == 1).all()


@settings(max_examples=25, deadline=None)
@given(count=st.integers(1, 5), seed=st.integers(0, 2**32 - 1))
def test_rows_of_a_batch_are_the_pictures_alone_and_stack_to_the_batch(count: int, seed: int) -> None:
    encoder = Patches()
    pixels = noise(count, seed)
    whole = encoder.encode(pixels)
    alone = [encoder.encode(pixels[number : number + 1]) for number in range(count)]
    assert all(same_bits(whole.row(number), alone[number]) for number in range(count))
    assert same_bits(stack(alone), whole)


@given(parts=st.sets(st.sampled_from(PARTS)))
def test_only_the_parts_that_are_asked_for_stay(parts: set[str]) -> None:
    random = np.random.default_rng(0)
    whole = Features(
        grid=random.normal(size=(2, 5, 7)).astype(np.float16),
        pooled=random.normal(size=(2, 11)).astype(np.float16),
        classes=random.normal(size=(2, 3)).astype(np.float16),
    )
    kept = whole.only(parts)
    for part in PARTS:
        if part in parts:
            assert np.array_equal(getattr(kept, part), getattr(whole, part))
        else:
            assert getattr(kept, part).size == 0
            assert len(getattr(kept, part)) == 2
