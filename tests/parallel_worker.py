"""One of several processes: takes a few steps of each of some recipes, and writes down what it then holds.

test_parallel.py starts it, alone or by a launcher, with a file of jobs and a folder to write to.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch

from tellapart.recipe import load_recipe
from tellapart.stepping import Moment, build_optimiser, take_step
from tellapart.training import deterministic, prepare_learner
from tellapart.world import World, join_world

STEPS = 3


def take_steps(changes: list[str], world: World) -> dict[str, torch.Tensor]:
    """All that is trained or remembered, after a few steps."""
    recipe = load_recipe("mrnn-shapes", changes=changes)
    learner = prepare_learner(recipe, watch=lambda done, total: None, world=world)
    optimiser = build_optimiser(recipe.optimiser, learner.step)
    steps = learner.steps_per_epoch * recipe.training.epochs
    for number in range(STEPS):
        shares = learner.shares(number, world)
        moment = Moment(number, steps, by_term=number == 1)
        take_step(learner.step.train(), optimiser, shares, recipe, moment, world=world)
        learner.after_step(number, world)
    return learner.step.state_dict()


def main() -> None:
    """Take the steps of every job."""
    jobs, folder = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    with join_world() as world, deterministic():
        for name, changes in jobs.items():
            torch.save(take_steps(changes, world), folder / f"{name}-{world.rank}.pt")
            world.agree(None)


if __name__ == "__main__":
    main()
