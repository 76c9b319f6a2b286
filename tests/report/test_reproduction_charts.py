"""Plots of a reproduction: everything inside the drawing, and the best ones marked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tellapart.report.reproduction_charts import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    figure_plot,
    front_plot,
    learning_plots,
)
from tellapart.reproduction.findings import Curve, Mark, front
from tellapart.reproduction.plan import Figure

PLACES = st.dictionaries(
    st.text("abc", min_size=1, max_size=3),
    st.tuples(st.floats(0, 1), st.floats(0, 2)),
    min_size=1,
    max_size=8,
)


@given(PLACES)
def test_nobody_is_better_in_both_than_the_front(places: dict[str, tuple[float, float]]) -> None:
    best = front(places)
    assert best
    for name in places.keys() - best:
        x, y = places[name]
        assert any(places[other][0] >= x and places[other][1] >= y for other in best)
    for name in best:
        x, y = places[name]
        assert not any(a > x and b > y for a, b in places.values())


@given(PLACES)
def test_every_mark_is_inside(places: dict[str, tuple[float, float]]) -> None:
    best = front(places)
    plot = front_plot([Mark(name, *place, is_best=name in best) for name, place in places.items()])
    assert plot is not None
    assert {dot.name for dot in plot.dots} == places.keys()
    assert all(LEFT <= dot.x <= RIGHT and TOP <= dot.y <= BOTTOM for dot in plot.dots)
    assert any(dot.label and dot.is_best for dot in plot.dots)


def test_a_plot_for_each_measure() -> None:
    curves = [
        Curve("a", 1, "perplexity", (1, 2), (3.0, 2.0)),
        Curve("a", 2, "perplexity", (1, 2), (3.5, 2.5)),
        Curve("b", 1, "perplexity", (1, 2), (1.0, 1.0)),
        Curve("b", 1, "cider_d", (1, 2), (0.1, 0.2)),
    ]
    surprise, cider = learning_plots(curves)
    assert [line.name for line in surprise.lines] == ["a, seed 1", "a, seed 2", "b, seed 1"]
    colours = [line.colour for line in surprise.lines]
    assert colours[0] == colours[1] != colours[2]
    assert len(cider.lines) == 1


def test_a_figure_shows_its_methods_alone() -> None:
    figure = Figure("Figure 3", "length", "words", ("a", "b"))
    curves = [Curve(name, 1, "words", (1, 2), (9.0, 12.0)) for name in "abc"]
    plot = figure_plot(figure, [*curves, Curve("a", 1, "recall", (1, 2), (0.1, 0.2))])
    assert plot is not None
    assert [line.name for line in plot.lines] == ["a, seed 1", "b, seed 1"]
    assert figure_plot(figure, curves[2:]) is None


def test_every_line_of_many_is_told_apart_and_named_below() -> None:
    curves = [Curve(f"m{number}", 1, "recall", (1, 2), (0.0, number / 9)) for number in range(20)]
    (plot,) = learning_plots(curves)
    assert len({(line.colour, line.dash) for line in plot.lines}) == 20
    assert len({line.key for line in plot.lines}) == 20
    assert all(LEFT <= x <= RIGHT and BOTTOM < y < plot.height for x, y in (line.key for line in plot.lines))


def test_nothing_run_gives_no_plot() -> None:
    assert front_plot([]) is None
    assert learning_plots([]) == []
