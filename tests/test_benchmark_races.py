"""The arithmetic of a race and the table that holds it."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import pytest
from benchmarks.race import COLUMNS, NotRun, Race, Told, figure, spread, table
from hypothesis import given
from hypothesis import strategies as st

costs = st.floats(1e-6, 1e6)
rounds = st.lists(st.tuples(costs, costs), min_size=1, max_size=9)
cells = st.text("a |\\\n\t–.", max_size=12)

PARSER = Race("parsing", [0.5, 1.0, 0.8], "s", against="theirs", theirs=[5.0, 8.0, 6.4], aim=10)


def race(pairs: list[tuple[float, float]], told: Told = Told.FAST) -> Race:
    ours, theirs = zip(*pairs, strict=True)
    return Race("what", ours, "s", against="them", theirs=theirs, told=told)


@given(rounds)
def test_twice_as_fast_is_half_as_long(pairs: list[tuple[float, float]]) -> None:
    fast, long = race(pairs).ratios, race(pairs, Told.LONG).ratios
    assert [a * b for a, b in zip(fast, long, strict=True)] == pytest.approx([1] * len(pairs))


@given(rounds, st.sampled_from(Told), st.integers(-9, 9))
def test_who_slows_all_alike_changes_no_ratio(
    pairs: list[tuple[float, float]], told: Told, power: int
) -> None:
    slowed = [(ours * 2.0**power, theirs * 2.0**power) for ours, theirs in pairs]
    assert race(slowed, told).ratios == race(pairs, told).ratios


@given(rounds, st.sampled_from(Told))
def test_an_aim_is_met_at_the_median_itself_and_missed_beyond(
    pairs: list[tuple[float, float]], told: Told
) -> None:
    held = race(pairs, told)
    middle = median(held.ratios)
    better = 1.001 if told is Told.FAST else 1 / 1.001
    assert replace(held, aim=middle).met
    assert replace(held, aim=middle / better).met
    assert not replace(held, aim=middle * better).met


@given(rounds)
def test_a_ceiling_is_of_ours_alone_and_counts_beside_the_aim(pairs: list[tuple[float, float]]) -> None:
    held = race(pairs)
    middle = median(held.ours)
    assert replace(held, ceiling=middle * 1.001).met
    assert not replace(held, ceiling=middle).met
    assert not replace(held, ceiling=middle, aim=median(held.ratios)).met


@given(st.floats(1e-9, 1e9))
def test_a_figure_says_what_was_measured(value: float) -> None:
    assert float(figure(value).replace(",", "")) == pytest.approx(value, rel=5.1e-3)


@given(st.lists(costs, min_size=2, max_size=9))
def test_a_spread_holds_the_median_and_the_extremes(values: list[float]) -> None:
    assert spread(values) == f"{figure(median(values))} ({figure(min(values))}–{figure(max(values))})"


@given(st.lists(st.tuples(cells, cells), max_size=5))
def test_every_row_has_every_column(texts: list[tuple[str, str]]) -> None:
    races = [replace(PARSER, what=what, against=f"x{against}") for what, against in texts]
    lines = table([*races, *(NotRun(what, why) for what, why in texts)]).split("\n")
    assert len(lines) == 2 + 2 * len(texts)
    assert {line.count("|") for line in lines} == {len(COLUMNS) + 1}


def test_figures_have_three_digits() -> None:
    assert list(map(figure, (0, 0.00491, 0.5, 1, 11.3, 99.96, 158.4, 1317.2))) == [
        *("0", "0.00491", "0.500", "1.00", "11.3", "100.0", "158", "1,317")
    ]


def test_a_race_reads_as_a_line_and_as_a_row() -> None:
    assert str(PARSER) == (
        "parsing: theirs 6.40 s, ours 0.800 s; 8.00 (8.00–10.0) times as fast; at least 10: missed"
    )
    assert table(
        [replace(PARSER, aim=None, ceiling=1, note="only in the line"), NotRun("baking", "no oven")]
    ) == (
        "| what | ours | theirs | ratio | aim |\n"
        "| --- | --: | --- | --- | --- |\n"
        "| parsing | 0.800 s | 6.40 s, theirs | 8.00 (8.00–10.0) times as fast | below 1 s: met |\n"
        "| baking |  |  | not run: no oven |  |"
    )


def test_who_runs_alone_has_no_ratio() -> None:
    alone = Race("memory", [408.0], "MiB", ceiling=1500, note="flat")
    assert alone.ratios == []
    assert str(alone) == "memory: ours 408 MiB; below 1,500 MiB: met; flat"


def test_ratios_are_of_the_same_round() -> None:
    with pytest.raises(AssertionError, match="same round"):
        Race("what", [1.0, 2.0], "s", against="them", theirs=[1.0])
