"""The training loop, in the order in which it happens.

Everything random in a step is a function of the seed and the step's number, and everything else is in the
checkpoint; so a run that was stopped and resumed equals one that never stopped, to the last bit.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
from torch import nn

from tellapart.captioner_learner import CaptionerLearner
from tellapart.checkpoint import Progress, load_checkpoint, save_checkpoint
from tellapart.corpus import Watch
from tellapart.errors import TellapartError
from tellapart.learner import Learner, Named, Validation
from tellapart.preparation import prepare
from tellapart.recipe import Recipe, RetrieverRecipe
from tellapart.recipe_sections import OptimiserConfig
from tellapart.retriever_learner import prepare_retriever
from tellapart.run import Run, refuse_full, resume_run, start_run
from tellapart.types import Context, Loss

AnyRecipe = Recipe | RetrieverRecipe


@dataclass(frozen=True, slots=True)
class Report:
    """What happened in a step, for whoever watches."""

    step: int
    steps: int
    loss: float
    parts: Mapping[str, float]
    tokens_per_second: float
    validation: Validation | None
    is_best: bool
    interrupted: bool
    stopped_by: str = ""  # the setting that ended training with this step: epochs, patience or core_minutes


def begin(recipe: AnyRecipe, folder: Path, *, resume: bool, watch: Watch) -> tuple[Run, Learner]:
    """Open a run and make all ready; a new run's folder is written only when all the data was read."""
    text = recipe.to_toml()
    if resume:
        return resume_run(folder, text), prepare_learner(recipe, watch=watch)
    refuse_full(folder)
    learner = prepare_learner(recipe, watch=watch)
    return start_run(folder, text), learner


def prepare_learner(recipe: AnyRecipe, *, watch: Watch) -> Learner:
    """What the recipe trains, with its data."""
    if isinstance(recipe, RetrieverRecipe):
        return prepare_retriever(recipe, watch=watch)
    return CaptionerLearner(recipe, prepare(recipe, watch=watch))


def train(recipe: AnyRecipe, folder: Path, *, resume: bool = False) -> Run:
    """Train a recipe to the end; the best captioner or retriever is in the run's folder."""
    run, learner = begin(recipe, folder, resume=resume, watch=lambda done, total: None)
    for report in train_steps(recipe, run, learner):
        if report.interrupted:
            raise KeyboardInterrupt
    return run


def train_steps(recipe: AnyRecipe, run: Run, learner: Learner) -> Generator[Report, None, None]:
    """Train until the epochs, the patience or the processor time are over, telling of each step."""
    optimiser = build_optimiser(recipe.optimiser, learner.network)
    progress = load_checkpoint(run, learner, optimiser)
    steps = learner.steps_per_epoch * recipe.training.epochs
    every = recipe.training.evaluate_every or learner.steps_per_epoch
    clock = CoreClock()
    with deterministic(), interruptible() as asked_to_stop:
        for number in range(progress.step, steps):
            if why_stop(recipe, progress, steps):  # of a run that was over when it was resumed
                break
            batch = learner.batch(number)
            started = time.perf_counter()
            loss = take_step(learner.step.train(), optimiser, batch, recipe, number=number, steps=steps)
            speed = learner.tokens(batch) / (time.perf_counter() - started)
            progress.step += 1
            progress.core_seconds += clock.lap()
            validation, is_best = None, False
            if progress.step % every == 0 or why_stop(recipe, progress, steps):
                validation, is_best = validate(recipe, run, learner, progress)
                progress.core_seconds += clock.lap()
            report = Report(
                progress.step,
                steps,
                loss.total.item(),
                loss.parts,
                speed,
                validation,
                is_best,
                asked_to_stop.is_set(),
                why_stop(recipe, progress, steps),
            )
            log(run, report, every=recipe.training.log_every)
            if validation or report.interrupted:
                save_checkpoint(run, progress, learner, optimiser)
            yield report
            if report.interrupted:
                return


class CoreClock:
    """Processor time of this process, all cores together."""

    def __init__(self) -> None:
        self._before = time.process_time()

    def lap(self) -> float:
        """Seconds since it was asked before."""
        before, self._before = self._before, time.process_time()
        return self._before - before


def why_stop(recipe: AnyRecipe, progress: Progress, steps: int) -> str:
    """The setting that ends training here, if one does."""
    if progress.step >= steps:
        return "epochs"
    if 0 < recipe.training.patience <= progress.worse:
        return "patience"
    limit = recipe.training.core_minutes * 60
    return "core_minutes" if 0 < limit <= progress.core_seconds else ""


def validate(recipe: AnyRecipe, run: Run, learner: Learner, progress: Progress) -> tuple[Validation, bool]:
    """Measure on the validation split; keep what was trained if it is the best so far."""
    validation = learner.validate()
    if not all(map(math.isfinite, validation.to_json().values())):
        raise TellapartError(
            f"step {progress.step}: the loss on the validation split is {validation.value('loss')}",
            hint="lower optimiser.learning_rate; the run can be resumed from its last checkpoint",
        )
    is_best = progress.note(validation, recipe.training.stop_metric)
    if is_best:
        learner.save(run)
    return validation, is_best


def take_step(
    step: nn.Module,
    optimiser: torch.optim.Optimizer,
    batch: Named,
    recipe: AnyRecipe,
    *,
    number: int,
    steps: int,
) -> Loss:
    """One update of the weights."""
    # Two streams, or what an objective draws would follow the pattern of the dropout.
    for_dropout, for_objective = map(int, np.random.SeedSequence([recipe.seed, number]).generate_state(2))
    torch.manual_seed(for_dropout)  # dropout draws from the global generator
    for group in optimiser.param_groups:
        group["lr"] = learning_rate(recipe.optimiser, number, steps)
    loss: Loss = step(batch, Context(number, torch.Generator().manual_seed(for_objective)))
    optimiser.zero_grad()
    loss.total.backward()  # type: ignore[no-untyped-call]
    limit = recipe.optimiser.clip_norm or math.inf
    norm = nn.utils.clip_grad_norm_(step.parameters(), limit)
    if not (math.isfinite(loss.total.item()) and math.isfinite(norm.item())):
        raise TellapartError(
            f"step {number + 1}: the loss is {loss.total.item()} and its gradient's norm {norm.item()}; "
            f"images of the batch: {', '.join(batch.image_ids)}",
            hint="lower optimiser.learning_rate or optimiser.clip_norm, and look at these images' captions",
        )
    optimiser.step()
    return loss


def learning_rate(config: OptimiserConfig, number: int, steps: int) -> float:
    """Linear warm-up, then constant or down to 0 along half a cosine."""
    if number < config.warmup_steps:
        return config.learning_rate * (number + 1) / config.warmup_steps
    if config.decay == "constant":
        return config.learning_rate
    done = (number - config.warmup_steps) / max(1, steps - config.warmup_steps)
    return config.learning_rate * 0.5 * (1 + math.cos(math.pi * done))


def build_optimiser(config: OptimiserConfig, network: nn.Module) -> torch.optim.Optimizer:
    """The optimiser a recipe names."""
    weights = [parameter for parameter in network.parameters() if parameter.requires_grad]
    rate, decay = config.learning_rate, config.weight_decay
    if config.name == "sgd":
        return torch.optim.SGD(weights, lr=rate, weight_decay=decay, momentum=config.momentum)
    kind = torch.optim.AdamW if config.name == "adamw" else torch.optim.Adam
    return kind(weights, lr=rate, weight_decay=decay, betas=(config.momentum, config.beta2))


def log(run: Run, report: Report, *, every: int) -> None:
    """Write every so many steps, and every validation, to the run's log."""
    if report.step % every and not report.validation:
        return
    entry: dict[str, object] = {"step": report.step, "loss": report.loss, **report.parts}
    entry["tokens_per_second"] = round(report.tokens_per_second)
    if report.validation:
        entry["validation"] = report.validation.to_json()
        entry["is_best"] = report.is_best
        entry["stopped_by"] = report.stopped_by
    run.log(entry)


@contextmanager
def deterministic() -> Iterator[None]:
    """Within the block, torch takes only algorithms that give the same bits each time."""
    settings: Any = torch.utils.deterministic  # its one switch has no type
    before, filled = torch.are_deterministic_algorithms_enabled(), settings.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    # Filling fresh memory guards against bugs that the tests look for, at a price in every step.
    settings.fill_uninitialized_memory = False
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
        settings.fill_uninitialized_memory = filled


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """Within the block, Ctrl-C and a polite kill only raise a flag: the step under way is finished first."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked  # only the main thread may handle signals
        return

    def note(number: int, frame: FrameType | None) -> None:
        if asked.is_set():
            raise KeyboardInterrupt  # asked twice: do not wait for a long validation
        asked.set()

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
