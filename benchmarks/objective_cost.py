"""Seconds and memory of a training step by each objective, relative to one by likelihood.

    TELLAPART_DATA=DATA python -m benchmarks.objective_cost [--captioner transformer] [--rounds 7]

Each objective trains the same captioner on the same batches of Flickr8k; they take turns, batch by batch, so
that whatever else the machine does falls on all alike. Told is the median of the ratios of a round, with the
extremes. What a fixed reference says of the training captions is known from the first visit, as in every
epoch but the first; "contrastive, known" keeps its negatives (objective.redraw=false), so that it is known of
these too. Memory is the most that a process holds that takes such steps and does nothing else.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator

from benchmarks.captioner_worker import use_two_cores
from benchmarks.peak import watch
from benchmarks.race import Race, Told, markdown_row
from tellapart.captioner_learner import CaptionerLearner, Step
from tellapart.objectives.parts import OBJECTIVES
from tellapart.preparation import prepare
from tellapart.recipe import load_recipe
from tellapart.stepping import Moment, build_optimiser, take_step
from tellapart.training import deterministic
from tellapart.world import ALONE

MLE = "mle"
KNOWN = "contrastive, known"
LIMITS = {"smile": 1.1, KNOWN: 7.0, "unkt": 2.5}
KNOWN_LIMIT = 4.0  # where a trained encoder is shared
SHARED_ENCODER = {"transformer", "meshed"}
NAMES = (
    MLE,
    "unlikelihood",
    "distillation",
    "smile",
    "contrastive",
    KNOWN,
    "introspective",
    "gan",
    "specificity",
    "unkt",
    "reward",
    "dpo",
)
CAPTIONER, ROUNDS = "transformer", 7
BATCHES = 2  # that each round goes through


def prepared(captioner: str, name: str) -> CaptionerLearner:
    """A captioner ready to learn by an objective."""
    changes = [f"objective.name={name.partition(',')[0]}"]
    if name == KNOWN:
        changes.append("objective.redraw=false")
    if name == "unkt" and captioner not in SHARED_ENCODER:
        changes += ["objective.hidden=false", "objective.attention=false"]
    recipe = load_recipe(f"{captioner}-flickr8k", changes=changes)
    return CaptionerLearner(recipe, prepare(recipe, watch=lambda done, total: None))


def stepper(learner: CaptionerLearner) -> Callable[[int], float]:
    """Takes the step of a batch, and tells how long it took."""
    optimiser = build_optimiser(learner.recipe.optimiser, learner.step)
    step: Step = learner.step

    def take(number: int) -> float:
        shares = learner.shares(number, ALONE)
        started = time.perf_counter()
        with deterministic():
            take_step(step.train(), optimiser, shares, learner.recipe, Moment(number, 1000))
            learner.after_step(number, ALONE)
        return time.perf_counter() - started

    return take


def step_seconds(captioner: str, rounds: int) -> dict[str, list[float]]:
    """Of each objective, what its steps took in each round."""
    missing = set(OBJECTIVES.names()) - {*NAMES, "mix", "mrnn-cost"}
    assert not missing, f"no row for {missing}"
    steppers = {name: stepper(prepared(captioner, name)) for name in NAMES}
    for take in steppers.values():  # the first visit fills caches
        for number in range(BATCHES):
            take(number)
    found: dict[str, list[float]] = {name: [] for name in NAMES}
    for _ in range(rounds):
        seconds = dict.fromkeys(NAMES, 0.0)
        for number in range(BATCHES):
            for name, take in steppers.items():
                seconds[name] += take(number) / BATCHES
        for name, took in seconds.items():
            found[name].append(took)
    return found


def races(*, captioner: str = CAPTIONER, rounds: int = ROUNDS) -> Iterator[Race]:
    """A step by each objective against one by likelihood."""
    use_two_cores()
    found = step_seconds(captioner, rounds)
    for name in NAMES:
        known = KNOWN_LIMIT if captioner in SHARED_ENCODER else LIMITS[KNOWN]
        yield Race(
            f"training step of {captioner} by {name}",
            found[name],
            "s",
            against="" if name == MLE else "likelihood",
            theirs=found[MLE],
            told=Told.LONG,
            aim=known if name == KNOWN else LIMITS.get(name),
        )


def memory(captioner: str, name: str) -> float:
    """MiB that a process holds at the most."""
    return watch("-m", "benchmarks.objective_cost", "--captioner", captioner, "--here", name).peak


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--captioner", default=CAPTIONER)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--here", choices=NAMES, help="take steps by this objective in this process")
    arguments = parser.parse_args()
    use_two_cores()
    if arguments.here:
        take = stepper(prepared(arguments.captioner, arguments.here))
        for number in range(BATCHES):
            take(number)
        return
    print(markdown_row((f"objective, {arguments.captioner}", "time of a step", "limit", "peak MiB")))
    print("|---|---|---|---|")
    for name, race in zip(NAMES, races(captioner=arguments.captioner, rounds=arguments.rounds), strict=True):
        peak = f"{memory(arguments.captioner, name):,.0f}"
        print(markdown_row((name, race.ratio(), race.verdict(), peak)), flush=True)


if __name__ == "__main__":
    main()
