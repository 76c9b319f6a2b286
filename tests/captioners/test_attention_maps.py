"""Columns of attention become places in the picture, and what is no place is named."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tellapart.captioners.attention_maps import (
    CONCEPTS,
    REST,
    SENTINEL,
    SIGN,
    Layout,
    find_layout,
    read_looks,
)
from tellapart.testing import prepare
from tellapart.types import Prediction
from tellapart.vision.patches import CELLS, Patches

SQUARE = (260, 260)


@given(st.integers(1, 20), st.integers(1, 20), st.integers(8, 32), st.data())
def test_a_grid_of_square_cells_is_found_whatever_its_shape(
    rows: int, columns: int, cell: int, data: st.DataObject
) -> None:
    # A network rounds up: the last cell may be cut. One line of cells may not be, or its shape says nothing.
    cut = st.integers(0, cell // 4) if min(rows, columns) > 3 else st.just(0)
    pixels = rows * cell - data.draw(cut), columns * cell - data.draw(cut)
    layout = find_layout(rows * columns, rows * columns, pixels)
    assert layout is not None
    assert layout.rows * layout.columns == rows * columns
    if pixels == (rows * cell, columns * cell):
        assert (layout.rows, layout.columns, layout.first) == (rows, columns, 0)
        assert not layout.others


@pytest.mark.parametrize(("places", "side"), [(49, 7), (64, 8), (81, 9)])
def test_the_grids_of_the_encoders_that_ship(places: int, side: int) -> None:
    assert find_layout(places, places, SQUARE) == Layout(side, side)


@pytest.mark.parametrize(("places", "side"), [(197, 14), (577, 24), (5, 2)])
def test_a_sign_of_the_whole_picture_stands_before_the_grid(places: int, side: int) -> None:
    assert find_layout(places, places, (384, 384)) == Layout(side, side, 1, {SIGN: range(1)})


@pytest.mark.parametrize("places", [0, 3, 32, 75])
def test_what_is_no_grid_is_not_drawn(places: int) -> None:
    assert find_layout(places, places, SQUARE) is None


def test_what_stands_beside_the_grid_is_named() -> None:
    assert find_layout(92, 81, SQUARE, concepts=10, sentinel=True) == Layout(
        9, 9, 0, {CONCEPTS: range(81, 91), SENTINEL: range(91, 92)}
    )
    assert find_layout(85, 81, SQUARE) == Layout(9, 9, 0, {REST: range(81, 85)})


@given(st.integers(0, 8), st.integers(0, 8))
def test_the_place_that_sees_a_spot_is_where_the_spot_is(row: int, column: int) -> None:
    picture = Image.new("RGB", (180, 90))
    picture.paste("white", (column * 20 + 4, row * 10 + 2, column * 20 + 16, row * 10 + 8))
    encoder = Patches()
    grid = encoder.encode(encoder.prepare(picture)[None]).grid[0].astype(np.float64)
    attention = torch.from_numpy(grid.mean(1) + 1)[None, None]
    looks = read_looks(attention / attention.sum(), Layout(CELLS, CELLS))
    assert np.unravel_index(looks.maps[0].argmax(), (CELLS, CELLS)) == (row, column)


@pytest.mark.parametrize("settings", [{}, {"concepts": 3}])
@pytest.mark.parametrize("name", ["adaptive", "topdown", "transformer", "meshed"])
def test_shares_of_every_captioner_with_attention_sum_to_one(name: str, settings: dict[str, int]) -> None:
    subject = prepare(name, settings=settings)
    captioner = subject.captioner
    tokens = torch.tensor([[captioner.text.encode("a dog runs")[:-1]]] * len(subject.vision))
    with torch.no_grad():
        prediction: Prediction = captioner.predict(subject.vision, tokens)
    attention = prediction.attention[-1][1, 0]
    concepts, sentinel = settings.get("concepts", 0), name == "adaptive"
    layout = find_layout(attention.shape[-1], 9, (54, 54), concepts=concepts, sentinel=sentinel)
    assert layout is not None
    assert (layout.rows, layout.columns) == (3, 3)
    assert set(layout.others) == {*[CONCEPTS] * (concepts > 0), *[SENTINEL] * sentinel}
    looks = read_looks(attention, layout)
    total = looks.maps.sum((1, 2)) + sum(looks.elsewhere.values())
    np.testing.assert_allclose(total, 1, atol=1e-9)
    mean = attention.mean(0)
    np.testing.assert_allclose(looks.maps.reshape(-1, 9), mean[:, :9], atol=1e-12)
    if sentinel:
        np.testing.assert_allclose(looks.elsewhere[SENTINEL], mean[:, -1], atol=1e-12)
    if concepts:
        np.testing.assert_allclose(looks.elsewhere[CONCEPTS], mean[:, 9:12].sum(1), atol=1e-12)


def test_several_tokens_of_a_word_are_averaged() -> None:
    attention = torch.tensor([[[0.5, 0.1, 0.1, 0.1, 0.2], [0.1, 0.1, 0.1, 0.3, 0.4], [0, 0, 1, 0, 0]]])
    looks = read_looks(attention, Layout(2, 2, 1, {SIGN: range(1)}))
    shares, elsewhere = looks.over(range(2))
    np.testing.assert_allclose(shares, [[0.1, 0.1], [0.2, 0.3]], atol=1e-7)
    assert elsewhere == pytest.approx({SIGN: 0.3})
    shares, elsewhere = looks.over(range(2, 3))
    np.testing.assert_allclose(shares, [[0, 1], [0, 0]], atol=1e-7)
    assert elsewhere == {SIGN: 0}
