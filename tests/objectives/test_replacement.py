"""A reference that the best target so far replaces: when, by what, and in checkpoints."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from tests.objectives.material import SMALL, context, learner
from tests.objectives.precise import move

from tellapart.objectives.replacement import Renewed
from tellapart.recipe import load_recipe
from tellapart.run import Run, resume_run, start_run
from tellapart.training import prepare_learner, train_steps

RENEWED = (
    "objective.name=contrastive",
    "objective.replace_every=1",
    "objective.negatives=2",
    "training.epochs=3",
    "training.log_every=1",
)


def test_the_best_target_becomes_the_reference() -> None:
    made = learner(*RENEWED)
    objective, per_epoch = made.step.objective, made.steps_per_epoch
    assert isinstance(objective, Renewed)
    made.step.train()
    start = objective._reference.captioner
    made.step(made.batch(0), context(0))
    move(made.network)
    noted = {name: value.clone() for name, value in made.network.state_dict().items()}
    objective.note_best(made.network)
    move(made.network, seed=1)
    made.step(made.batch(1), context(per_epoch - 1))
    assert objective._reference.captioner is start
    made.step(made.batch(1), context(per_epoch))
    reference = objective._reference.captioner
    assert reference is not start
    assert not reference.training
    assert all(torch.equal(value, noted[name]) for name, value in reference.state_dict().items())
    names = {name for name, weight in made.step.named_parameters() if weight.requires_grad}
    assert names == {f"captioner.{name}" for name, _ in made.network.named_parameters()}


def test_without_a_best_the_reference_stays() -> None:
    made = learner(*RENEWED)
    objective = made.step.objective
    assert isinstance(objective, Renewed)
    objective.after_step(made.steps_per_epoch, lambda tensors: None)
    made.step(made.batch(1), context(made.steps_per_epoch))
    assert objective._reference.captioner is objective._first[0]
    objective.note_best(made.network)
    objective.after_step(2 * made.steps_per_epoch, lambda tensors: None)  # by a process without a share
    assert objective.replaced == 1


RENEWED_RECIPE = ("mrnn-shapes", ("captioner.name=mrnn", *SMALL, *RENEWED, "training.epochs=2"))


def renewed(run: Run, *, stop_after: int = 0) -> Mapping[str, torch.Tensor]:
    """Train on in this run; what its last checkpoint holds."""
    name, changes = RENEWED_RECIPE
    recipe = load_recipe(name, changes=list(changes))
    for report in train_steps(recipe, run, prepare_learner(recipe, watch=lambda done, total: None)):
        if report.step == stop_after:
            os.kill(os.getpid(), signal.SIGINT)  # as Ctrl-C: the next step is finished and saved
    path = run.latest_checkpoint()
    assert path is not None
    state: Mapping[str, torch.Tensor] = torch.load(path, weights_only=True)["step"]
    return state


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, torch.Tensor]:
    return renewed(start_run(tmp_path_factory.mktemp("renewed") / "run", renewed_text()))


def renewed_text() -> str:
    name, changes = RENEWED_RECIPE
    return load_recipe(name, changes=list(changes)).to_toml()


@pytest.mark.parametrize("stop_after", [11, 14])  # before and after the swap that begins the second epoch
def test_a_renewed_run_resumes_to_the_last_bit(
    stop_after: int, uninterrupted: Mapping[str, torch.Tensor], tmp_path: Path
) -> None:
    stopped = renewed(start_run(tmp_path / "run", renewed_text()), stop_after=stop_after)
    assert int(stopped["objective.replaced"]) == (stop_after > 11)
    resumed = renewed(resume_run(tmp_path / "run", renewed_text()))
    assert resumed.keys() == uninterrupted.keys()
    assert all(torch.equal(resumed[name], value) for name, value in uninterrupted.items())
    assert uninterrupted["objective.replaced"] == 1
    reference, target = (
        uninterrupted[f"{owner}.output.weight"] for owner in ("objective.current", "captioner")
    )
    assert not torch.equal(reference, target)
