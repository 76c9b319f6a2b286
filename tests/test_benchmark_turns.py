"""Competitors take turns, and what they took is theirs alone."""

from __future__ import annotations

import itertools

import pytest
import torch
from benchmarks.machine import machine
from benchmarks.peak import watch
from benchmarks.turns import in_turns, milliseconds, threads


def test_each_has_a_call_that_is_not_counted_and_then_its_turn_in_every_round() -> None:
    called: list[str] = []
    ticks = itertools.count()
    times = in_turns(
        {"a": lambda: called.append("a"), "b": lambda: called.append("b")}, 2, clock=lambda: next(ticks)
    )
    assert called == ["a", "b"] * 3
    assert times == {"a": [1, 1], "b": [1, 1]}


def test_a_slow_one_spares_all_another_round() -> None:
    now = [0.0]

    def pass_time() -> None:
        now[0] += 3

    times = in_turns({"slow": pass_time, "quick": lambda: None}, 9, enough=5, clock=lambda: now[0])
    assert times == {"slow": [3, 3], "quick": [0, 0]}


def test_milliseconds_are_of_a_piece() -> None:
    assert milliseconds([1, 0.5], 10) == [100, 50]


def test_threads_are_given_back() -> None:
    before = torch.get_num_threads()
    with threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


def test_a_process_is_watched_to_its_end() -> None:
    watched = watch("-c", "import os; print(os.environ['BAKED'])", env={"BAKED": "bread"})
    assert watched.printed == "bread\n"
    assert watched.peak > 1
    with pytest.raises(RuntimeError, match="no oven"):
        watch("-c", "raise SystemExit('no oven')")


def test_the_machine_is_told_in_a_line() -> None:
    assert f"torch {torch.__version__.partition('+')[0]}" in machine()
    assert "\n" not in machine()
    assert "cores" in machine()
