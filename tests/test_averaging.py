"""The mean of the weights: by hand, in place of the last ones where it counts, there again after a stop."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.test_training import assert_same, ready, recipe, state_of
from torch import nn

from tellapart.averaging import Averages
from tellapart.captioners.folder import load_captioner
from tellapart.run import Run, start_run
from tellapart.training import train_steps


def run_of(folder: Path, *changes: str, stop_after: int = 0) -> Run:
    some = recipe(*changes)
    run = start_run(folder, some.to_toml())
    if stop_after:
        steps = train_steps(some, run, ready(some))
        for report in steps:
            if report.step == stop_after:
                steps.close()
                break
    for _ in train_steps(some, run, ready(some)):
        pass
    return run


def test_the_mean_by_hand() -> None:
    network = nn.Linear(1, 1, bias=False)
    nn.init.constant_(network.weight, 1.0)
    averages = Averages(network, decay=0.5)
    expected = 1.0
    for step, weight in enumerate((3.0, -2.0, 5.0, 4.0), start=1):
        nn.init.constant_(network.weight, weight)
        averages.note(step)
        decay = min(0.5, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * weight
    with averages.in_use():
        assert network.weight.item() == pytest.approx(expected)
    assert network.weight.item() == 4.0


def test_weights_come_back_after_an_error() -> None:
    network = nn.Linear(2, 2)
    averages, before = Averages(network, decay=0.9), network.weight.detach().clone()
    nn.init.zeros_(network.weight)

    def go_wrong() -> None:
        with averages.in_use():
            assert torch.equal(network.weight, before)
            raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        go_wrong()
    assert not network.weight.any()


def test_the_mean_is_kept_and_training_goes_on_as_without_it(tmp_path: Path) -> None:
    plain, averaged = run_of(tmp_path / "plain"), run_of(tmp_path / "mean", "training.average=0.9")
    states = [state_of(run.latest_checkpoint() or Path()) for run in (plain, averaged)]
    assert_same(states[0]["step"], states[1]["step"])
    assert not states[0]["averages"]
    saved = load_captioner(averaged.captioner).captioner.state_dict()
    for name, mean in states[1]["averages"].items():
        torch.testing.assert_close(saved[name], mean.half().float())
        assert not torch.equal(mean, states[1]["step"][f"captioner.{name}"])


@pytest.mark.parametrize("stop_after", [5, 10])
def test_resumed_equals_uninterrupted_to_the_last_bit(tmp_path: Path, stop_after: int) -> None:
    whole = run_of(tmp_path / "whole", "training.average=0.9")
    stopped = run_of(tmp_path / "stopped", "training.average=0.9", stop_after=stop_after)
    assert_same(*(state_of(run.latest_checkpoint() or Path()) for run in (whole, stopped)))
