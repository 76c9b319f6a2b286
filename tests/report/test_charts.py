"""Plots say what was counted, and no shape leaves the drawing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tellapart.report.charts import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    Chart,
    amount,
    length_chart,
    recall_chart,
    spread_chart,
)


def inside(chart: Chart) -> None:
    for bar in chart.bars:
        assert LEFT - 1e-6 <= bar.x <= bar.x + bar.width <= RIGHT + 1e-6
        assert bar.width > 0
        assert bar.y >= TOP - 1e-6
        assert bar.y + bar.height == pytest.approx(BOTTOM)
    for line in filter(None, (chart.curve, chart.chance)):
        for point in line.split():
            x, y = map(float, point.split(","))
            assert LEFT <= x <= RIGHT
            assert TOP <= y <= BOTTOM
    assert all(LEFT <= tick.at <= RIGHT for tick in chart.ticks)
    assert all(TOP <= tick.at <= BOTTOM for tick in chart.heights)


def counted(chart: Chart) -> int:
    return sum(int(bar.label.rpartition(": ")[2].split()[0].replace(",", "")) for bar in chart.bars)


@given(st.integers(2, 60_000), st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_all_captions_stand_in_the_plots(pool: int, values: list[float]) -> None:
    shares = np.array(values)
    ranks = np.minimum((shares * pool).astype(np.int64), pool - 1)
    curve = recall_chart(ranks, pool)
    inside(curve)
    heights = [float(point.split(",")[1]) for point in curve.curve.split()]
    assert heights == sorted(heights, reverse=True)
    assert heights[0] == pytest.approx(BOTTOM - (BOTTOM - TOP) * float((ranks == 0).mean()), abs=0.06)
    assert heights[-1] == TOP
    spread = spread_chart(pool**shares, pool)
    inside(spread)
    assert counted(spread) == len(values)


@given(st.lists(st.integers(1, 400), min_size=1, max_size=50))
def test_every_length_stands_in_a_bar(lengths: list[int]) -> None:
    chart = length_chart(np.array(lengths))
    inside(chart)
    assert counted(chart) == len(lengths)
    assert len(chart.bars) <= 30
    assert 1 <= len(chart.ticks) <= 8


def test_words_say_what_is_drawn() -> None:
    assert length_chart(np.array([3, 3, 5])).says == "from 3 to 5 words, 3.7 on average"
    assert [bar.label for bar in length_chart(np.array([3, 3, 5])).bars] == [
        "3 words: 2 captions",
        "4 words: 0 captions",
        "5 words: 1 caption",
    ]
    assert recall_chart(np.array([0, 0, 0, 7]), 10).says == (
        "75% of the captions put their picture first; half or more do"
    )
    assert recall_chart(np.array([0, 4, 6, 7]), 10).says == (
        "25% of the captions put their picture first; half have it among the first 5"
    )
    assert [tick.text for tick in recall_chart(np.array([0]), 5000).ticks] == ["1", "10", "100", "1,000"]
    assert (amount(1.26), amount(12345.6)) == ("1.3", "12,346")
