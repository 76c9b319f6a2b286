"""`tellapart reproduce`: plans printed, and what cannot be said in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Outcome

Tellapart = Callable[..., "Outcome"]


@pytest.fixture(autouse=True)
def _no_photographs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TELLAPART_DATA", raising=False)


def test_the_plan_says_every_run_and_draws_nothing(tellapart: Tellapart, tmp_path: Path) -> None:
    found = tellapart("reproduce", "all", "--plan", "--out", tmp_path / "out")
    assert found.code == 0
    assert "| mrnn+smile | SMILE | mrnn | 3 |" in found.out
    assert "| coco | " in found.out
    assert "not run here" in found.out
    assert not (tmp_path / "out").exists()


def test_a_budget_makes_the_plan_smaller(tellapart: Tellapart, tmp_path: Path) -> None:
    (tmp_path / "flickr8k").mkdir()
    (tmp_path / "flickr8k" / "captions.txt").touch()
    found = tellapart("reproduce", "mrnn", "--plan", "--data", tmp_path, "--budget", "20m")
    assert found.code == 0
    assert "mrnn~0.25" in found.out


def test_the_plan_of_a_seed_has_what_that_goes_on_from(tellapart: Tellapart, tmp_path: Path) -> None:
    some = ("--only", "mrnn+unkt", "--seed", "2")
    found = tellapart("reproduce", "all", "--plan", *some, "--out", tmp_path / "out")
    assert found.code == 0
    rows = [line.split(" | ")[0].removeprefix("| ") for line in found.out.splitlines() if "| 1 |" in line]
    assert rows[:4] == ["mrnn", "halves", "mrnn-high", "mrnn+unkt"]
    # Of the halves there is one seed for all; judge and teacher of drawn scenes come first.
    assert "6 methods, 6 runs" in found.out


@pytest.mark.parametrize(
    ("arguments", "problem", "hint"),
    [
        (["smiel"], "no paper is called 'smiel'", "smile"),
        (["mrnn", "--budget", "soon"], "'soon' is no time", "30m"),
        (["mrnn", "--budget", "1s"], "nothing of the plan fits", "--budget"),
        (["mrnn", "--data", "nowhere"], "captions.txt: no such file", "--data"),
        (["mrnn", "--plan", "--only", "mrn"], "no method of this plan is called 'mrn'", "mrnn"),
        (["mrnn", "--plan", "--seed", "4"], "no method of this plan has a seed 4", "from 1 to 3"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(
    tellapart: Tellapart, tmp_path: Path, arguments: list[str], problem: str, hint: str
) -> None:
    found = tellapart("reproduce", *arguments, "--out", tmp_path / "out")
    assert found.code == 1
    assert problem in found.err
    assert hint in found.err
    assert "Traceback" not in found.err


def test_a_folder_of_another_plan_is_refused(tellapart: Tellapart, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text('{"ground": "flickr8k"}')
    found = tellapart("reproduce", "mrnn", "--out", tmp_path, "--only", "mrnn", "--budget", "5m")
    assert found.code == 1
    assert "was run on flickr8k, not on shapes" in found.err
    assert "--out" in found.err


def test_without_a_report_only_what_came_out_is_kept(
    tellapart: Tellapart, real_data: Path, tmp_path: Path
) -> None:
    wanted = ("reproduce", "smile", "--data", real_data, "--only", "people")
    found = tellapart(*wanted, "--out", tmp_path, "--no-report")
    assert (found.code, found.out) == (0, "")
    assert [path.name for path in (tmp_path / "captions").iterdir()] == ["people-1-written.jsonl.gz"]
    assert not list(tmp_path.glob("smile.*"))
