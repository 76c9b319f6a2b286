"""Recall curves rise to 1, and the picture shows them where they belong."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tellapart.report.recall_curves import (
    BOTTOM,
    LEFT,
    RIGHT,
    SIDE,
    STYLES,
    TOP,
    Curve,
    _dashed,
    _ticks,
    write_curves,
)
from tellapart.retrieval import Found


def found(name: str, ranks: list[int], pool: int, asked: str = "image-to-sentence") -> Found:
    return Found(asked, name, np.array(ranks), pool)


@given(
    st.integers(1, 3000).flatmap(
        lambda pool: st.tuples(st.just(pool), st.lists(st.integers(0, pool - 1), min_size=1))
    )
)
def test_curves_rise_from_the_first_answer_to_all(pool_and_ranks: tuple[int, list[int]]) -> None:
    pool, ranks = pool_and_ranks
    curve = Curve.of(found("plain", ranks, pool))
    assert (curve.at[0], curve.at[-1]) == (1, pool)
    assert all(one < other for one, other in pairwise(curve.at))
    assert all(one <= other for one, other in pairwise(curve.recalls))
    assert curve.recalls[0] == pytest.approx(ranks.count(0) / len(ranks))
    assert curve.recalls[-1] == 1


def is_near(pixel: tuple[int, ...], colour: tuple[int, int, int]) -> bool:
    return math.dist(pixel[:3], colour) < 60


def column(picture: Image.Image, x: float) -> list[tuple[int, ...]]:
    pixels = [picture.getpixel((round(x), y)) for y in range(TOP - 3, TOP + SIDE + 3)]
    return [pixel for pixel in pixels if isinstance(pixel, tuple)]


def test_picture_shows_each_curve_at_its_height(tmp_path: Path) -> None:
    pool = 100
    ranks = [0] * 30 + [9] * 30 + [99] * 40  # R@1 to R@9: 30 %, R@10 to R@99: 60 %
    tables = [found("plain", ranks, pool), found("plain", [5] * 10, 50, "sentence-to-image")]
    write_curves(tmp_path / "curves.png", tables, title="a title")
    with Image.open(tmp_path / "curves.png") as opened:
        picture = opened.convert("RGB")
    assert picture.size == (2 * (LEFT + SIDE + RIGHT), TOP + SIDE + BOTTOM)
    for k, share in ((4, 0.3), (40, 0.6)):
        x = LEFT + SIDE * math.log(k) / math.log(pool)
        heights = [y for y, pixel in enumerate(column(picture, x), TOP - 3) if is_near(pixel, STYLES[0][0])]
        assert np.mean(heights) == pytest.approx(TOP + SIDE * (1 - share), abs=2)


def test_curves_of_one_panel_differ_in_colour(tmp_path: Path) -> None:
    tables = [found(f"way {number}", [0] * number + [40] * (10 - number), 60) for number in range(5)]
    write_curves(tmp_path / "curves.png", tables, title="")
    with Image.open(tmp_path / "curves.png") as opened:
        colours = opened.convert("RGB").getcolors(maxcolors=2**20)
    assert colours is not None
    for colour, _ in STYLES:
        assert (
            sum(count for count, pixel in colours if isinstance(pixel, tuple) and is_near(pixel, colour))
            > 200
        )


def test_a_single_answer_can_be_drawn(tmp_path: Path) -> None:
    write_curves(tmp_path / "curves.png", [found("plain", [0], 1)], title="one picture")
    assert (tmp_path / "curves.png").stat().st_size > 1000


def test_ticks_are_round_and_within() -> None:
    assert _ticks(60) == [1, 2, 5, 10, 20, 50]
    assert _ticks(1) == [1]
    assert _ticks(5000) == [1, 5, 10, 50, 100, 500, 1000, 5000]


@given(st.lists(st.tuples(st.floats(0, 50), st.floats(0, 50)), min_size=2, max_size=6))
def test_dashes_leave_out_what_they_should(points: list[tuple[float, float]]) -> None:
    def length(line: list[tuple[float, float]]) -> float:
        return sum(math.dist(one, other) for one, other in pairwise(line))

    assert list(_dashed(points, ())) == [points]
    pieces = list(_dashed(points, (3, 2)))
    whole = length(points)
    cycles, rest = divmod(whole, 5)
    assert sum(map(length, pieces)) == pytest.approx(3 * cycles + min(rest, 3), abs=1e-6 * (1 + whole))
    assert all(length(piece) <= 3 + 1e-6 for piece in pieces)
