"""Laws of verdicts: what holds, what does not, and what nobody can say."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tellapart.metrics.score import Pooled, Score, Scores, mean_score
from tellapart.reproduction.measuring import Figures
from tellapart.reproduction.plan import Claim, Direction, Method, Part, Plan, Way
from tellapart.reproduction.verdicts import Judged, Seeds, difference_of_counts, mean_over_seeds, verdict
from tellapart.reproduction.verdicts import judge as judge_by_plan

ANSWERS = st.lists(st.one_of(st.booleans(), st.none()), max_size=5)
VALUES = st.lists(st.floats(-5, 5), min_size=8, max_size=8)


def figures(values: list[float], words: list[str] | None = None) -> Figures:
    ids = tuple(f"i{number}" for number in range(len(values)))
    parts = {"M": mean_score("M", values, "s")}
    tokens = tuple(tuple(text.split()) for text in words or [])
    if words:
        vocabulary = {word for text in tokens for word in text}
        parts["Vocabulary"] = Score("Vocabulary", float(len(vocabulary)), "s")
        parts["Distinct"] = Score("Distinct", len(set(tokens)) / len(tokens), "s")
    return Figures(Scores(ids, parts, {}), tokens)


def judge(some: Claim, cells: Mapping[str, Seeds], plan: Plan | None = None) -> Judged:
    return judge_by_plan(some, cells, plan or Plan({}, {}))


def claim(direction: Direction, *, measure: str = "M", margin: float = 0.05) -> Claim:
    return Claim("c", "w", "p", (Part(measure, "a/x", direction, "b/x", margin=margin),))


@given(ANSWERS)
def test_a_verdict_is_said_of_all_parts_alone(parts: list[bool | None]) -> None:
    said = verdict(parts)
    assert (said == "not run") == (not parts or None in parts)
    assert (said == "holds") == (bool(parts) and all(part is True for part in parts))
    assert (said == "does not") == (bool(parts) and all(part is False for part in parts))


@settings(max_examples=25)  # each draws pictures some thousand times
@given(VALUES, VALUES)
def test_not_both_above_and_below(one: list[float], other: list[float]) -> None:
    cells = {"a/x": {1: figures(one)}, "b/x": {1: figures(other)}}
    above, below = (judge(claim(direction), cells) for direction in ("above", "below"))
    assert not (above.verdict == below.verdict == "holds")
    (part,) = above.parts
    assert part.low is not None
    assert part.high is not None
    assert part.low <= part.high
    assert (above.verdict == "holds") == (part.low > 0)
    turned = judge(claim("below"), {"a/x": cells["b/x"], "b/x": cells["a/x"]})
    assert turned.verdict == above.verdict


@settings(max_examples=25)  # each draws pictures some thousand times
@given(VALUES)
def test_what_is_equal_is_alike_and_neither_above_nor_below(values: list[float]) -> None:
    moved = [value + 10 for value in values]
    cells = {"a/x": {1: figures(moved)}, "b/x": {1: figures(moved)}}
    assert judge(claim("alike"), cells).verdict == "holds"
    assert judge(claim("above"), cells).verdict == "does not"
    assert judge(claim("below"), cells).verdict == "does not"


@pytest.mark.parametrize(("fall", "said"), [(0.0, "does not"), (0.5, "holds"), (3.0, "does not")])
def test_slightly_below_is_below_and_not_far(fall: float, said: str) -> None:
    base = [9.0, 10.0, 11.0, 10.0]
    cells = {"a/x": {1: figures([value - fall for value in base])}, "b/x": {1: figures(base)}}
    judged = judge(claim("slightly below", margin=0.1), cells)
    assert judged.verdict == said
    assert judged.parts[0].is_opposed == (fall == 3.0)  # equal is neither shown nor opposed


@pytest.mark.parametrize(("second", "said"), [(0.2, "holds"), (1.0, "does not"), (3.0, "does not")])
def test_gains_are_compared(second: float, said: str) -> None:
    start = [1.0, 2.0, 3.0, 4.0]
    runs = [figures([value + gain for value in start]) for gain in (0.0, 1.0, 1.0 + second)]
    cells: dict[str, Seeds] = {f"r{number}/x": {1: run} for number, run in enumerate(runs)}
    some = Claim("c", "w", "p", (Part("M", "r2/x", "below", "r1/x", after="r0/x"),))
    judged = judge(some, cells)
    assert judged.verdict == said
    assert judged.parts[0].value == pytest.approx(second - 1)
    assert judge(some, {"r1/x": cells["r1/x"], "r2/x": cells["r2/x"]}).verdict == "not run"


def test_a_missing_row_or_measure_is_not_run() -> None:
    one = {1: figures([1.0, 2.0])}
    assert judge(claim("above"), {"a/x": one}).verdict == "not run"
    assert judge(claim("above", measure="N"), {"a/x": one, "b/x": one}).verdict == "not run"
    # Seeds that only one of the two has cannot be held against one another.
    assert judge(claim("above"), {"a/x": one, "b/x": {2: figures([0.0, 0.0])}}).verdict == "not run"


def test_a_measure_of_the_whole_alone_gives_no_verdict() -> None:
    ids, whole = ("i0",), {"M": Score("M", 1.0, "s")}
    some = {1: Figures(Scores(ids, whole, {}), ())}
    (part,) = judge(claim("above"), {"a/x": some, "b/x": some}).parts
    assert part.value == 0
    assert part.low is None
    assert part.holds is None


@given(VALUES, VALUES)
def test_seeds_are_averaged_picture_by_picture(one: list[float], other: list[float]) -> None:
    mean = mean_over_seeds([figures(one), figures(other)], "M")["M"]
    assert mean.each is not None
    assert mean.each == pytest.approx((np.array(one) + np.array(other)) / 2)
    assert mean.corpus == pytest.approx(mean.each.mean())


def test_seeds_in_another_order_are_put_in_order() -> None:
    first = figures([1.0, 2.0, 3.0])
    turned = Figures(Scores(("i2", "i1", "i0"), {"M": mean_score("M", [3.0, 2.0, 1.0], "s")}, {}), ())
    mean = mean_over_seeds([first, turned], "M")["M"]
    assert mean.each is not None
    assert mean.each.tolist() == [1.0, 2.0, 3.0]


def test_formulas_on_sums_are_averaged_as_values() -> None:
    def root(sums: np.ndarray) -> np.ndarray:
        return np.asarray(np.sqrt(sums[..., 0]))

    def pooled(values: list[float]) -> Figures:
        statistics = np.array(values)[:, None]
        score = Score("P", float(np.sqrt(statistics.sum())), "s", pooled=Pooled(statistics, root))
        return Figures(Scores(("i0", "i1"), {"P": score}, {}), ())

    mean = mean_over_seeds([pooled([4.0, 5.0]), pooled([8.0, 8.0])], "P")["P"]
    assert mean.pooled is not None
    assert mean.corpus == pytest.approx((3 + 4) / 2)
    assert mean.pooled.formula(mean.pooled.statistics.sum(axis=0)) == pytest.approx(mean.corpus)
    cells = {"a/x": {1: pooled([40.0, 50.0])}, "b/x": {1: pooled([4.0, 5.0])}}
    assert judge(claim("above", measure="P"), cells).verdict == "holds"


def test_counts_are_compared_on_halves() -> None:
    rich = figures([0.0] * 8, [f"w{number} v{number}" for number in range(8)])
    poor = figures([0.0] * 8, ["a b"] * 8)
    of_four_pictures = difference_of_counts([rich], [poor], "Vocabulary", halves=50)
    assert set(of_four_pictures) == {8 - 2}
    assert set(difference_of_counts([rich], [poor], "Distinct", halves=50)) == {1 - 1 / 4}
    cells = {"a/x": {1: rich}, "b/x": {1: poor}}
    assert judge(claim("above", measure="Vocabulary"), cells).verdict == "holds"
    assert (
        judge(claim("above", measure="Vocabulary"), {"a/x": {1: poor}, "b/x": {1: poor}}).verdict
        == "does not"
    )


@given(st.lists(st.text("ab ", min_size=1), min_size=4, max_size=6))
def test_a_set_against_itself_differs_by_nothing(words: list[str]) -> None:
    some = figures([0.0] * len(words), [f"x {text}" for text in words])
    for name in ("Vocabulary", "Distinct"):
        assert difference_of_counts([some], [some], name, halves=10) == (0, 0, 0)


@settings(max_examples=25)  # each draws pictures some thousand times
@given(VALUES, VALUES)
def test_the_opposite_is_said_only_where_it_is_shown(one: list[float], other: list[float]) -> None:
    cells = {"a/x": {1: figures(one)}, "b/x": {1: figures(other)}}
    above, below = judge(claim("above"), cells), judge(claim("below"), cells)
    assert (above.said == "does not: the opposite is so") == (below.verdict == "holds")
    if above.verdict == below.verdict == "does not":
        assert above.said == below.said == "does not: not shown, nor is the opposite"


def test_of_several_parts_it_is_said_how_many_are_opposed() -> None:
    low, high = {1: figures([1.0] * 8)}, {1: figures([2.0] * 8)}
    cells = {"a/x": high, "b/x": low, "c/x": high}
    parts = (Part("M", "a/x", "above", "b/x"), Part("M", "b/x", "above", "a/x"))
    assert (
        judge(Claim("c", "w", "p", parts), cells).said == "holds in part: the opposite is so of 1 of 2 parts"
    )
    parts = (Part("M", "a/x", "above", "c/x"), Part("M", "b/x", "above", "a/x"))
    assert judge(Claim("c", "w", "p", parts), cells).said == "does not: the opposite is so of 1 of 2 parts"


def test_of_a_claim_that_was_not_run_whole_nothing_is_said() -> None:
    cells = {"a/x": {1: figures([1.0] * 8)}, "b/x": {1: figures([2.0] * 8)}}
    parts = (Part("M", "a/x", "above", "b/x"), Part("M", "c/x", "above", "a/x"))
    assert judge(Claim("c", "w", "p", parts), cells).said == "not run"


def test_a_measure_of_the_first_seed_alone_is_not_missing_in_others() -> None:
    way = Way("x", "beam")
    plan = Plan({name: Method(name, "", seeds=3) for name in "ab"}, {"a": (way,), "b": (way,)})

    def fluent(value: float) -> Figures:
        score = mean_score("Perplexity", [value] * 8, "s")
        return Figures(Scores(tuple(f"i{number}" for number in range(8)), {"Perplexity": score}, {}), ())

    cells = {"a/x": {1: fluent(9.0), 2: figures([0.0] * 8)}, "b/x": {1: fluent(5.0), 2: figures([0.0] * 8)}}
    judged = judge(claim("above", measure="Perplexity"), cells, plan)
    assert (judged.said, judged.parts[0].planned) == ("holds", 1)


def test_not_above_allows_less_and_a_little_more() -> None:
    base = {1: figures([10.0] * 8)}
    for value, holds in ((2.0, True), (10.4, True), (10.6, False)):
        (part,) = judge(claim("not above"), {"a/x": {1: figures([value] * 8)}, "b/x": base}).parts
        assert part.holds is holds
        assert part.is_opposed is not holds


def test_a_verdict_with_seeds_missing_stands_so_far() -> None:
    way = Way("x", "beam")
    methods = {name: Method(name, "", seeds=3) for name in "ab"}
    plan = Plan(methods, {"a": (way,), "b": (way,)})
    low, high = figures([1.0] * 8), figures([2.0] * 8)
    cells: dict[str, Seeds] = {"a/x": {1: high, 2: high}, "b/x": {1: low, 2: low, 3: low}}
    judged = judge(claim("above"), cells, plan)
    assert (judged.parts[0].seeds, judged.parts[0].planned) == (2, 3)
    assert judged.said == "holds (so far: seeds are missing)"
    cells["a/x"] = {1: high, 2: high, 3: high}
    assert judge(claim("above"), cells, plan).said == "holds"


def test_every_seed_is_held_against_the_same_people() -> None:
    way = Way("x", "beam")
    plan = Plan(
        {"a": Method("a", "", seeds=2), "b": Method("b", "", kind="people")}, {"a": (way,), "b": (way,)}
    )
    cells: dict[str, Seeds] = {
        "a/x": {1: figures([2.0] * 8), 2: figures([4.0] * 8)},
        "b/x": {1: figures([1.0] * 8)},
    }
    (part,) = judge(claim("above"), cells, plan).parts
    assert (part.seeds, part.planned, part.value) == (2, 2, 2.0)
