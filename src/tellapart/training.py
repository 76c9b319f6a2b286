"""The training loop, in the order in which it happens.

Everything random in a step is a function of the seed and the step's number, and everything else is in the
checkpoint; so a run that was stopped and resumed equals one that never stopped, to the last bit.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from tellapart.averaging import Averages
from tellapart.captioner_learner import CaptionerLearner
from tellapart.checkpoint import Progress, load_checkpoint, save_checkpoint
from tellapart.corpus import Watch
from tellapart.encoder_learner import prepare_encoder
from tellapart.errors import TellapartError
from tellapart.learner import Learner, Validation
from tellapart.metrics.material import Watch as WatchWhat
from tellapart.preparation import prepare
from tellapart.recipe import AnyRecipe, EncoderRecipe, Recipe, RetrieverRecipe
from tellapart.retriever_learner import prepare_retriever
from tellapart.run import Run, refuse_full, resume_run, start_run
from tellapart.stages import Division, divide, open_stages
from tellapart.stepping import Moment, Taken, build_optimiser, take_step
from tellapart.world import ALONE, World


@dataclass(frozen=True, slots=True)
class Report:
    """What happened in a step, for whoever watches."""

    step: int
    steps: int
    taken: Taken
    tokens_per_second: float
    validation: Validation | None
    is_best: bool
    interrupted: bool
    stopped_by: str = ""  # the setting that ended training with this step: epochs, patience or core_minutes


@dataclass(frozen=True, slots=True)
class Screen:
    """Where it is told what happens besides training; by default nowhere."""

    looking: Callable[[], AbstractContextManager[Watch]] = lambda: nullcontext(lambda done, total: None)
    dividing: Callable[[], AbstractContextManager[WatchWhat]] = lambda: nullcontext(
        lambda what, done, total: None
    )
    say: Callable[[str], None] = lambda line: None


SILENT = Screen()


@dataclass(frozen=True, slots=True)
class Training:
    """Something that is about to be trained: a stage or, without a name, what all was for."""

    stage: str
    recipe: AnyRecipe
    run: Run
    learner: Learner


def trainings(
    recipe: AnyRecipe, folder: Path, *, resume: bool, world: World = ALONE, screen: Screen = SILENT
) -> Iterator[Training]:
    """All that is still to be trained, each when what it stands on is there: train it, then ask for the next.

    Whatever a run needs besides training is done on the way.
    """
    with screen.looking() as watch:
        stages = open_stages(recipe, folder, resume=resume, watch=watch, world=world)
    for name in recipe.needless_stages() if isinstance(recipe, Recipe) else ():
        screen.say(f"the stage {name} is left out: nothing names what it makes")
    for number, stage in enumerate(stages, start=1):
        said = f"stage {number} of {len(stages)}: {stage.name or 'the recipe itself'}"
        if world.agree(stage.is_over):
            screen.say(f"{said}, which is there already")
            continue
        if len(stages) > 1:
            screen.say(said)
        if not isinstance(stage.work, Division):
            begun = resume if len(stages) == 1 else world.leads and stage.clear()
            with screen.looking() as watch:
                run, learner = begin(stage.work, stage.folder, resume=begun, watch=watch, world=world)
            yield Training(stage.name, stage.work, run, learner)
        elif world.leads:
            with screen.dividing() as watch_what:
                divide(stage, watch=watch_what)


def begin(
    recipe: AnyRecipe, folder: Path, *, resume: bool, watch: Watch, world: World = ALONE
) -> tuple[Run, Learner]:
    """Open a run and make all ready; a new run's folder is written only when nothing is missing."""
    text, run = recipe.to_toml(), Run(folder)
    ready = recipe.located(run.stages)
    if world.leads:
        if resume:
            resume_run(folder, text)
        else:
            refuse_full(folder)
        learner = prepare_learner(ready, watch=watch, world=world)
        learner.gather()
        if not resume:
            start_run(folder, text)
    world.agree(None)  # the others find all pictures looked at
    if not world.leads:
        learner = prepare_learner(ready, watch=watch, world=world)
        learner.gather()
    return run, learner


def prepare_learner(recipe: AnyRecipe, *, watch: Watch, world: World = ALONE) -> Learner:
    """What the recipe trains, with its data."""
    if isinstance(recipe, RetrieverRecipe):
        return prepare_retriever(recipe, watch=watch)
    if isinstance(recipe, EncoderRecipe):
        return prepare_encoder(recipe, watch=watch, world=world)
    return CaptionerLearner(recipe, prepare(recipe, watch=watch), world.device)


def train(recipe: AnyRecipe, folder: Path, *, resume: bool = False, world: World = ALONE) -> Run:
    """Train a recipe to the end, its stages first; what is kept of it is in the run's folder."""
    for one in trainings(recipe, folder, resume=resume, world=world):
        for report in train_steps(one.recipe, one.run, one.learner, world=world):
            if report.interrupted:
                raise KeyboardInterrupt
    return Run(folder)


def train_steps(
    recipe: AnyRecipe, run: Run, learner: Learner, *, world: World = ALONE
) -> Generator[Report, None, None]:
    """Train until the epochs, the patience or the processor time are over, telling of each step."""
    learner.step.to(world.device)
    optimiser = build_optimiser(recipe.optimiser, learner.step)
    averages = Averages(learner.network, decay=recipe.training.average)
    progress = load_checkpoint(run, learner, optimiser, averages, world=world)
    steps = learner.steps_per_epoch * recipe.training.epochs
    every = recipe.training.evaluate_every or learner.steps_per_epoch
    clock = CoreClock()
    with deterministic(), interruptible() as asked_to_stop:
        for number in range(progress.step, steps):
            if why_stop(recipe, progress, steps):  # of a run that was over when it was resumed
                break
            moment = Moment(number, steps, by_term=(number + 1) % recipe.training.log_every == 0)
            started = time.perf_counter()
            shares = learner.shares(number, world)
            taken = take_step(learner.step.train(), optimiser, shares, recipe, moment, world=world)
            learner.after_step(number, world)
            speed = learner.tokens(number) / (time.perf_counter() - started)
            progress.step += 1
            averages.note(progress.step)
            progress.core_seconds += world.total(clock.lap())
            validation, is_best = None, False
            if progress.step % every == 0 or why_stop(recipe, progress, steps):
                with averages.in_use():
                    progress, validation, is_best = validate(recipe, run, learner, progress, world)
                progress.core_seconds += world.total(clock.lap())
            report = Report(
                progress.step,
                steps,
                taken,
                speed,
                validation,
                is_best,
                world.any(asked_to_stop.is_set()),
                why_stop(recipe, progress, steps),
            )
            if world.leads:
                log(run, report, every=recipe.training.log_every)
                if validation or report.interrupted:
                    save_checkpoint(run, progress, learner, optimiser, averages)
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


def validate(
    recipe: AnyRecipe, run: Run, learner: Learner, progress: Progress, world: World = ALONE
) -> tuple[Progress, Validation, bool]:
    """The leading process measures on the validation split and keeps the best; all learn what it found."""
    found = _validate(recipe, run, learner, progress) if world.leads else None
    progress, validation, is_best = world.agree((progress, *(found or (None, False))))
    assert validation is not None  # the leading process has measured
    if is_best:
        learner.note_best()
    return progress, validation, is_best


def _validate(recipe: AnyRecipe, run: Run, learner: Learner, progress: Progress) -> tuple[Validation, bool]:
    validation = learner.validate()
    if not all(map(math.isfinite, validation.to_json().values())):
        raise TellapartError(
            f"step {progress.step}: the loss on the validation split is {validation.value('loss')}",
            hint="lower optimiser.learning_rate; the run can be resumed from its last checkpoint",
        )
    is_best = progress.note(validation, recipe.training.stop_metric)
    if is_best or recipe.training.keep == "last":
        learner.save(run)
    return validation, is_best


def log(run: Run, report: Report, *, every: int) -> None:
    """Write every so many steps, and every validation, to the run's log."""
    if report.step % every and not report.validation:
        return
    taken = report.taken
    entry: dict[str, object] = {"step": report.step, "loss": taken.loss, **taken.parts}
    entry |= {f"{name}/gradient_norm": norm for name, norm in taken.norms.items()}
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
