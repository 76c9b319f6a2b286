"""Captioners in their papers' sizes on real data: a few training steps each, as a Markdown table.

    TELLAPART_DATA=DATA python -m benchmarks.paper_sizes [--steps 50] [--only NAME …]

Each captioner is trained in a process of its own by its recipe for Flickr8k, but with every setting of the
captioner at its default, which is the paper's, and by plain likelihood, so that losses compare: the mean of
the first and of the last ten steps, in nats a token with dropout at work. Tokens a second leave the first two
steps out. Memory is the most that the process held at once, captions and library included.
"""

from __future__ import annotations

import argparse
import json
import time

from benchmarks.captioner_worker import use_two_cores
from benchmarks.peak import watch
from tellapart.captioner_learner import CaptionerLearner
from tellapart.captioners.parts import CAPTIONERS
from tellapart.objectives.parts import OBJECTIVES
from tellapart.preparation import prepare
from tellapart.recipe import Recipe, built_in_recipes, load_recipe
from tellapart.stepping import Moment, build_optimiser, take_step
from tellapart.training import deterministic
from tellapart.world import ALONE

ENDING = "-flickr8k"
ENDS = 10  # steps at the beginning and at the end whose loss is told
WARM_UP = 2  # steps that the speed leaves out


def in_paper_size(name: str) -> Recipe:
    """The recipe of that captioner, but with the captioner's own defaults, and by likelihood."""
    recipe = load_recipe(f"{name}{ENDING}")
    sizes = CAPTIONERS.get(name).configure({}).model_dump()
    objective = OBJECTIVES.get("mle").configure({}).model_dump()
    return recipe.model_copy(
        update={"captioner": {"name": name, **sizes}, "objective": {"name": "mle", **objective}}
    )


def train(name: str, steps: int) -> dict[str, float]:
    """Take the first steps of a whole training."""
    recipe = in_paper_size(name)
    learner = CaptionerLearner(recipe, prepare(recipe, watch=lambda done, total: None))
    step = learner.step.train()
    optimiser = build_optimiser(recipe.optimiser, learner.network)
    planned = learner.steps_per_epoch * recipe.training.epochs
    losses, tokens, taken = [], [], []
    with deterministic():
        for number in range(steps):
            shares = learner.shares(number, ALONE)
            started = time.perf_counter()
            losses.append(take_step(step, optimiser, shares, recipe, Moment(number, planned)).loss)
            taken.append(time.perf_counter() - started)
            tokens.append(learner.tokens(number))
    return {
        "weights": sum(parameter.numel() for parameter in learner.network.parameters()) / 1e6,
        "images": recipe.training.images_per_batch,
        "first": sum(losses[:ENDS]) / len(losses[:ENDS]),
        "last": sum(losses[-ENDS:]) / len(losses[-ENDS:]),
        "speed": sum(tokens[WARM_UP:]) / sum(taken[WARM_UP:]),
    }


def row(name: str, steps: int) -> str:
    """The figures of one captioner, trained in a process of its own."""
    watched = watch("-m", "benchmarks.paper_sizes", "--steps", str(steps), "--here", name)
    found = json.loads(watched.printed.splitlines()[-1])
    cells = [
        name,
        f"{found['weights']:.1f}",
        f"{found['images']}",
        f"{found['first']:.2f}",
        f"{found['last']:.2f}",
        f"{found['speed']:,.0f}",
        f"{watched.peak:,.0f}",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    names = [name for name in CAPTIONERS.names() if f"{name}{ENDING}" in built_in_recipes()]
    names = [name for name in names if not CAPTIONERS.get(name).own_text]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument("--here", choices=names, metavar="NAME", help="train this one in this process")
    arguments = parser.parse_args()
    if arguments.steps <= WARM_UP:
        parser.error(f"--steps: more than {WARM_UP}, which the speed leaves out")
    use_two_cores()
    if arguments.here:
        print(json.dumps(train(arguments.here, arguments.steps)))
        return
    print("| captioner | M weights | images a step | loss, first 10 | loss, last 10 | tokens/s | peak MiB |")
    print("|---|---|---|---|---|---|---|")
    for name in arguments.only:
        print(row(name, arguments.steps), flush=True)


if __name__ == "__main__":
    main()
