"""Checkpoints of a training run: one file each, whole or not there."""

from __future__ import annotations

import pickle
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from tellapart.averaging import Averages
from tellapart.errors import TellapartError
from tellapart.learner import Learner, Validation
from tellapart.run import Run
from tellapart.storage import new_file
from tellapart.world import ALONE, World


@dataclass(slots=True)
class Progress:
    """Where training stands."""

    step: int = 0
    best: float | None = None
    best_step: int = 0
    worse: int = 0  # validations since the best
    core_seconds: float = 0.0  # processor time spent so far, all cores together

    def note(self, validation: Validation, metric: str) -> bool:
        """Take in a validation; say whether it is the best so far."""
        if validation.better(metric, self.best):
            self.best, self.best_step, self.worse = validation.value(metric), self.step, 0
            return True
        self.worse += 1
        return False


def save_checkpoint(
    run: Run, progress: Progress, learner: Learner, optimiser: torch.optim.Optimizer, averages: Averages
) -> None:
    """Write all that a resumed run needs, then drop older checkpoints."""
    path = run.checkpoint(progress.step)
    state = {
        "progress": asdict(progress),
        "step": learner.step.state_dict(),  # the network, and what an objective has learnt or noted
        "optimiser": optimiser.state_dict(),
        "averages": averages.state(),
        "fingerprint": learner.fingerprint,
    }
    with new_file(path) as temporary:
        try:
            torch.save(state, temporary)
        except RuntimeError as error:  # such as of a full disk, which it does not call by its name
            raise OSError(f"{path}: this checkpoint cannot be written: {error}") from error
    run.drop_checkpoints(but=path)


def load_checkpoint(
    run: Run,
    learner: Learner,
    optimiser: torch.optim.Optimizer,
    averages: Averages,
    *,
    world: World = ALONE,
) -> Progress:
    """Put all where the newest checkpoint left it; without one, start at step 0."""
    path = run.latest_checkpoint()
    if path is None:
        if world.leads:
            run.forget_after(0)
        return Progress()
    try:
        state = torch.load(path, weights_only=True, map_location=world.device)
        words, progress = state["fingerprint"], Progress(**state["progress"])
        weights, moments, means = state["step"], state["optimiser"], state.get("averages", {})
    except (OSError, RuntimeError, EOFError, KeyError, TypeError, pickle.UnpicklingError) as error:
        raise TellapartError(
            f"{path}: damaged checkpoint, or one of an earlier version",
            hint="delete it: the run then starts from the beginning",
        ) from error
    if words != learner.fingerprint:
        raise _other_words(path)
    learner.step.load_state_dict(weights)
    optimiser.load_state_dict(moments)
    averages.restore(means)
    if world.leads:
        run.forget_after(progress.step)
    return progress


def _other_words(path: Path) -> TellapartError:
    return TellapartError(
        f"{path}: this checkpoint has another vocabulary than the data set gives now",
        hint="the captions changed since the run was started: restore them, or start a new run with --out",
    )
