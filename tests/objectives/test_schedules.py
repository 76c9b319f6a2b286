"""Weights that change from step to step, against points that a person computes by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tellapart.errors import TellapartError
from tellapart.objectives.schedules import Pace, ScheduleConfig, build_weight
from tellapart.recipe import load_recipe

PACE = Pace(steps_per_epoch=10, steps=150)  # 15 epochs: 50 steps up, 100 down
PAPER = ScheduleConfig(kind="progressive", start=0.0, end=1.0, epochs=5.0)


@pytest.mark.parametrize(
    ("step", "weight"),
    [
        (0, 0.0),
        (1, 0.02),
        (25, 0.5),
        (50, 1.0),  # the peak, after 5 epochs
        (100, 0.5 * (1 + math.cos(math.pi / 4))),  # the middle of Eq. 10: 0.8536
        (150, 0.5),  # its end: cos(π/2) is 0
        (500, 0.5),
    ],
)
def test_the_progressive_weight_is_that_of_the_paper(step: int, weight: float) -> None:
    assert build_weight(PAPER, PACE)(step) == pytest.approx(weight, abs=1e-12)


@pytest.mark.parametrize(("step", "weight"), [(50, 1.0), (100, 0.5), (125, 0.14644660940672624), (150, 0.0)])
def test_half_a_cosine_ends_at_nothing(step: int, weight: float) -> None:
    schedule = PAPER.model_copy(update={"half_cosine": True})
    assert build_weight(schedule, PACE)(step) == pytest.approx(weight, abs=1e-12)


@pytest.mark.parametrize(("step", "weight"), [(25, 0.2), (50, 0.4), (100, 0.34142135623730953), (150, 0.2)])
def test_the_end_caps_a_progressive_weight(step: int, weight: float) -> None:
    schedule = PAPER.model_copy(update={"end": 0.4})
    assert build_weight(schedule, PACE)(step) == pytest.approx(weight, abs=1e-12)


def test_one_that_has_no_time_to_come_down_only_rises() -> None:
    weight = build_weight(PAPER, Pace(steps_per_epoch=10, steps=30))
    assert [weight(step) for step in (0, 15, 29)] == pytest.approx([0.0, 0.3, 0.58])


@pytest.mark.parametrize(
    ("kind", "points"),
    [
        ("constant", {0: 0.2, 10: 0.2, 149: 0.2}),
        ("linear", {0: 0.2, 10: 0.4, 20: 0.6, 149: 0.6}),  # 2 epochs, then `end`
        ("cosine", {0: 0.2, 5: 0.2585786437626905, 10: 0.4, 20: 0.6, 149: 0.6}),
    ],
)
def test_the_other_kinds(kind: str, points: dict[int, float]) -> None:
    weight = build_weight(
        ScheduleConfig.model_validate({"kind": kind, "start": 0.2, "end": 0.6, "epochs": 2.0}), PACE
    )
    assert {step: weight(step) for step in points} == pytest.approx(points, abs=1e-12)


def test_without_epochs_it_takes_all_of_training() -> None:
    weight = build_weight(ScheduleConfig(kind="linear", start=1.0, end=0.0), PACE)
    assert [weight(step) for step in (0, 75, 150)] == pytest.approx([1.0, 0.5, 0.0])


def test_a_number_is_a_weight_that_stays() -> None:
    assert {build_weight(0.3, PACE)(step) for step in range(150)} == {0.3}


@given(
    st.sampled_from(["constant", "linear", "cosine", "progressive"]),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0, 20),
    st.booleans(),
    st.integers(0, 300),
)
def test_no_schedule_leaves_the_range_of_its_ends(
    kind: str, start: float, end: float, epochs: float, half: bool, step: int
) -> None:
    values = {"kind": kind, "start": start, "end": end, "epochs": epochs, "half_cosine": half}
    weight = build_weight(ScheduleConfig.model_validate(values), PACE)(step)
    assert min(start, end, end / 2 if not half else 0) - 1e-12 <= weight <= max(start, end) + 1e-12


@pytest.mark.parametrize("bad", [{"start": -0.1}, {"end": math.nan}, {"epochs": -1}, {"kind": "cosin"}])
def test_no_weight_is_negative_or_no_number(bad: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ScheduleConfig.model_validate(bad)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("objective.weight=1.5", "λ should be between 0 and 1, not 1.5"),
        ("objective.weight=-0.1", "λ should be between 0 and 1, not -0.1"),
        ("objective.weight.end=1.01", "λ should be between 0 and 1, not 1.01"),
    ],
)
def test_a_share_outside_0_to_1_is_refused_by_name(change: str, said: str) -> None:
    with pytest.raises(TellapartError) as caught:
        load_recipe("mrnn-shapes", changes=["objective.name=unkt", change])
    assert caught.value.problem.startswith("--set objective.weight")
    assert said in caught.value.problem


def test_a_schedule_of_unkt_is_the_papers_but_for_what_is_set() -> None:
    recipe = load_recipe("mrnn-shapes", changes=["objective.name=unkt", "objective.weight.end=0.4"])
    assert recipe.objective["weight"] == PAPER.model_copy(update={"end": 0.4}).model_dump()
