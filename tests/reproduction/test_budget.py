"""Less time: fewer seeds, then epochs, then methods; nothing smaller under a larger one's name."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tellapart.errors import TellapartError
from tellapart.reproduction.budget import fit, read_minutes
from tellapart.reproduction.library import ALL, PAPERS, find_papers
from tellapart.reproduction.plan import join
from tellapart.reproduction.ways import WAYS

PLAN = join(find_papers(ALL), WAYS)


@settings(max_examples=30)
@given(st.floats(10, 2000))
def test_what_is_chosen_fits_and_stands_on_what_it_needs(minutes: float) -> None:
    chosen = fit(PLAN, minutes)
    assert chosen.plan.minutes <= minutes
    for method in chosen.plan.methods.values():
        assert set(method.others) <= chosen.plan.methods.keys()
        assert method.share == (chosen.share if method.kind == "train" else 1)
        assert (method.share < 1) == ("~" in method.name)
    assert set(chosen.plan.ways) <= set(chosen.plan.methods)


def test_seeds_go_first_then_epochs_then_methods() -> None:
    whole = fit(PLAN, PLAN.minutes)
    assert whole.plan == PLAN
    assert whole.given_up == ()
    fewer = fit(PLAN, PLAN.minutes - 1)
    assert {job.seed for job in fewer.plan.jobs} == {1, 2}
    assert fewer.share == 1
    shorter = fit(PLAN, PLAN.with_seeds(1).minutes - 1)
    assert shorter.share == 0.5
    assert {job.seed for job in shorter.plan.jobs} == {1}
    assert len(shorter.plan.methods) == len(PLAN.methods)
    assert "mrnn" not in shorter.plan.methods
    least = fit(PLAN, 60)
    assert "ranks" not in {way.name for ways in least.plan.ways.values() for way in ways}
    assert len(least.plan.methods) < len(PLAN.methods)
    assert least.plan.methods["mrnn~0.25"].priority == 0  # bases go last
    assert any("not run" in line for line in least.given_up)
    assert least.name("mrnn") == "mrnn~0.25"
    assert least.name("adaptive+gan") == "adaptive+gan"  # not run, and so not found


def test_a_quick_ground_fits_more() -> None:
    plan = join([PAPERS["mrnn"]], WAYS)
    assert fit(plan, 30, left=lambda some: 0.03 * some.minutes).plan == plan


def test_nothing_fits_into_a_second() -> None:
    with pytest.raises(TellapartError, match="nothing of the plan fits"):
        fit(PLAN, 1 / 60)


@pytest.mark.parametrize(
    ("text", "minutes"), [("30m", 30), ("2h", 120), ("1h30m", 90), ("90s", 1.5), ("0.5h", 30)]
)
def test_times_as_people_write_them(text: str, minutes: float) -> None:
    assert read_minutes(text) == minutes


@pytest.mark.parametrize("text", ["", "soon", "30", "-5m", "0m", "3m soon", "1h 30m"])
def test_no_time(text: str) -> None:
    with pytest.raises(TellapartError, match="is no time"):
        read_minutes(text)
