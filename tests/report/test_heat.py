"""A map colours the part of the picture that it lies over."""

from __future__ import annotations

import numpy as np
import pytest
from jaxtyping import Float64
from PIL import Image

from tellapart.report.heat import BRIGHTEST, COVER, DARKEST, colour

SIZES = ((90, 90), (300, 120), (70, 280))
FULL = 255 * COVER


def heat(size: tuple[int, int], shares: Float64[np.ndarray, "rows columns"]) -> Float64[np.ndarray, "h w"]:
    """How far from grey each pixel is."""
    pixels = np.asarray(colour(Image.new("RGB", size, "white"), shares), np.float64)
    return np.asarray(pixels[:, :, 0] - pixels[:, :, 2])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("row", "column"), [(0, 0), (0, 8), (8, 0), (8, 8), (2, 6)])
def test_a_cell_colours_its_own_place(row: int, column: int, size: tuple[int, int]) -> None:
    shares = np.zeros((9, 9))
    shares[row, column] = 1
    found = heat(size, shares)
    width, height = size
    inside = (row + 0.5) * height / 9, (column + 0.5) * width / 9
    assert found[int(inside[0]), int(inside[1])] > 0.9 * FULL
    rows, columns = np.nonzero(found > FULL / 2)
    assert abs(rows.mean() + 0.5 - inside[0]) < height / 18
    assert abs(columns.mean() + 0.5 - inside[1]) < width / 18
    away = np.abs(np.arange(height) + 0.5 - inside[0]) > 3 * height / 9
    assert (found[away] == 0).all()


def test_what_went_elsewhere_colours_nothing() -> None:
    levels = [heat((90, 90), np.full((3, 3), share / 9)) for share in (0, 0.5, 1)]
    assert all(level.min() == level.max() for level in levels)
    none, half, whole = (float(level[0, 0]) for level in levels)
    assert none == 0
    assert half == pytest.approx(whole / 2, rel=0.03)
    assert whole == pytest.approx(FULL, abs=1)


def test_a_grid_need_not_be_square() -> None:
    shares = np.zeros((2, 6))
    shares[1, 5] = 1
    found = heat((120, 40), shares)
    assert found[30, 110] > 0.9 * FULL
    assert found[10, 10] == 0


def test_where_nobody_looked_the_picture_is_grey_and_can_be_made_out() -> None:
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 60, 3), np.uint8))
    grey = np.asarray(colour(picture, np.zeros((3, 3))))
    assert (grey == grey[:, :, :1]).all()
    assert DARKEST <= grey.min() < grey.max() <= BRIGHTEST
    luminance = np.asarray(picture.convert("L"))
    assert np.corrcoef(luminance.ravel(), grey[:, :, 0].ravel())[0, 1] > 0.999
