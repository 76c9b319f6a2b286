"""Runs a plan: trains what is missing, and writes down what comes out of it.

Each method and seed is a run folder in OUT/runs, resumed like any other; what came out of it goes onto the
shelf, and is not made again even if the folder is gone. So a program that was killed goes on where it was,
and a machine may be lost.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import torch

from tellapart.errors import TellapartError
from tellapart.recipe import AnyRecipe, Recipe
from tellapart.recipe_stages import EntropyConfig
from tellapart.reproduction.corpora import CORPORA, write_corpus
from tellapart.reproduction.ground import Ground
from tellapart.reproduction.plan import JUDGE, TEACHER, Job, Method, Plan, Way
from tellapart.reproduction.shelf import LOG, Line, Made, Shelf, about_here
from tellapart.reproduction.ways import BY_THEMSELVES, WAYS, digest_of
from tellapart.reproduction.writing import Shown, Watch, Writer, write_people
from tellapart.run import Run
from tellapart.stages import Division, Stage, divide
from tellapart.storage import write_text
from tellapart.training import train_steps, trainings

PLAN_FILE = "plan.json"
CURVE = ("step", "loss", "validation")  # of a run's log
PATIENCE = 1.0  # seconds, until it is seen whether another program is done


@dataclass(frozen=True, slots=True)
class Screen:
    """Where it is told what happens; by default nowhere."""

    say: Callable[[str], None] = lambda line: None
    watching: Callable[[], AbstractContextManager[Watch]] = lambda: nullcontext(
        lambda what, done, total: None
    )


@dataclass(frozen=True)
class Workshop:
    """A folder in which a plan is run on some ground."""

    out: Path
    ground: Ground
    plan: Plan
    shelf: Shelf
    screen: Screen = field(default_factory=Screen)

    @cached_property
    def shown(self) -> Shown:
        """The pictures that all methods caption."""
        recipe = self.ground.load(Method("data", "", "mrnn"), 1, {})
        assert isinstance(recipe, Recipe)
        return Shown.read(recipe)

    def folder(self, job: Job) -> Path:
        """Where it is trained."""
        return self.out / "runs" / job.name

    def digest(self, method: Method, way: str = LOG) -> str:
        """A name for all settings of a method and of how something came out of it."""
        own = self.ground.digest(method, self.plan.methods)
        return own if way == LOG else f"{own}-{digest_of(WAYS[way])}"

    def retriever(self, name: str) -> str:
        """The judge or the teacher: its name or, where it is trained here, its folder."""
        folder = (self.out / "runs").absolute()
        return str(folder / f"{name}-1") if name in self.plan.methods else name

    def run(self) -> dict[str, TellapartError]:
        """All that is not there yet; what could not be run, by job, and why.

        One method that lacks a library, or diverges, does not keep others from being run; what goes on from
        it is left out with it. Without the judge or the teacher nothing can be told of any.
        """
        claim_folder(self.out, self.ground)
        self.ground.draw()
        wanted = self._wanted()
        failed: dict[str, TellapartError] = {}
        pending = list(wanted)
        while pending:
            with self._taken(pending) as job:
                pending.remove(job)
                number = len(wanted) - len(pending)
                self.screen.say(f"{number} of {len(wanted)}: {job.name} ({job.method.says})")
                cause = next((failed[other] for other in self.plan.needs(job) if other in failed), None)
                try:
                    if cause is not None:
                        raise cause
                    self._make(job)
                    if job.ways:
                        self._write(job)
                except TellapartError as error:
                    if job.method in self.ground.retrievers:
                        raise
                    self.screen.say(f"{job.name} is not run: {error.problem} ({error.hint})")
                    failed[job.name] = error
        return failed

    @contextmanager
    def _taken(self, pending: Sequence[Job]) -> Iterator[Job]:
        """The next job that no other program is at: several programs in one folder share a plan.

        The lock goes with the process that holds it.
        """
        told = False
        while True:
            for job in self._ready(pending):
                with self.locked(job.name) as is_mine:
                    if is_mine:
                        yield job
                        return
            if not told:
                self.screen.say(f"waiting: another program is at {pending[0].name}")
                told = True
            time.sleep(PATIENCE)

    def _ready(self, pending: Sequence[Job]) -> list[Job]:
        """Those that go on from nothing still to be trained; judge and teacher come before all others."""
        untrained = [job for job in pending if not self._is_over(job)]
        if first := [job for job in untrained if job.method in self.ground.retrievers]:
            return first
        names = {job.name for job in untrained}
        return [job for job in pending if names.isdisjoint(self.plan.needs(job))]

    @contextmanager
    def locked(self, what: str) -> Iterator[bool]:
        """Whether no other program is at this; then none will be."""
        lock = self.out / "locks" / what
        lock.parent.mkdir(parents=True, exist_ok=True)
        with lock.open("wb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    def check_shelf(self) -> None:
        """Refuse files that other settings have made, and damaged ones: now, and not after hours."""
        for job in self.plan.jobs:
            for way in (*(way.name for way in job.ways), LOG):
                if self.shelf.holds(job, way):
                    self.shelf.read(job, way, digest=self.digest(job.method, way))

    def _wanted(self) -> list[Job]:
        """Jobs that have something missing on the shelf, and those whose folders such jobs need."""
        return wanted_jobs(self.plan, self.shelf, self.ground, is_over=self._is_over)

    def recipe(self, job: Job) -> AnyRecipe:
        """The checked recipe of a job whose others are there."""
        folder = (self.out / "runs").absolute()
        places = {method: str(folder / name) for name, method in self.plan.needs(job).items()}
        places[TEACHER] = self.retriever(self.ground.teacher)
        places[JUDGE] = self.retriever(self.ground.judge)
        return self.ground.load(job.method, job.seed, places)

    def _is_over(self, job: Job) -> bool:
        if job.method.kind == "train":
            return Run(self.folder(job)).is_over
        return job.method.kind == "people" or self.folder(job).is_dir()

    def _make(self, job: Job) -> None:
        """Train it to the end, from the beginning or from where it was."""
        self._claim_run(job)
        if not self._is_over(job):
            self._make_anew(job)

    def _claim_run(self, job: Job) -> None:
        """Refuse a folder that other settings have made; of a new one, write down by which it is made."""
        path, digest = self.out / "settings" / job.name, self.digest(job.method)
        if not self.folder(job).exists():
            write_text(path, f"{digest}\n")
        elif not path.is_file() or path.read_text(encoding="utf-8").strip() != digest:
            raise TellapartError(
                f"{self.folder(job)}: this was made with other settings than this plan's",
                hint="delete it to have it made anew, or name another folder with --out",
            )

    def _make_anew(self, job: Job) -> None:
        folder, kind = self.folder(job), job.method.kind
        if kind == "entropy":
            data = self.recipe(job).data
            config = EntropyConfig(retriever=self.retriever(self.ground.teacher))
            with self.screen.watching() as watch:
                divide(Stage(job.name, Division(config, data, job.seed), folder), watch=watch)
        elif kind in CORPORA:
            write_corpus(folder, self.recipe(job).data, kind=kind)
        else:
            self._train(job, folder)

    def _train(self, job: Job, folder: Path) -> None:
        begun = Run(folder).recipe.exists()
        if not begun:
            shutil.rmtree(folder, ignore_errors=True)  # what a kill left of a beginning
        with self.screen.watching() as watch:
            for training in trainings(self.recipe(job), folder, resume=begun):
                for report in train_steps(training.recipe, training.run, training.learner):
                    watch(f"training {job.name}", report.step, report.steps)
                    if report.interrupted:
                        raise KeyboardInterrupt

    def _write(self, job: Job) -> None:
        """Everything that is wanted of it and not on the shelf."""
        missing = [way for way in job.ways if not self.shelf.holds(job, way.name)]
        if job.method.kind == "people":
            for way in missing:
                self._keep(self._made(job, way.name, 0.0, ""), job, write_people(self.shown))
            return
        if job.method.kind == "train" and not self.shelf.holds(job, LOG):
            entries = Run(self.folder(job)).entries()
            curve = [{key: entry[key] for key in CURVE} for entry in entries if "validation" in entry]
            self.shelf.write(job, self._made(job, LOG, 0.0, ""), curve)
        if missing:
            recipe = self.recipe(job)
            assert isinstance(recipe, Recipe)
            teacher = self.retriever(self.ground.teacher)
            with self.screen.watching() as watch:
                writer = Writer(self.folder(job), recipe, self.shown, teacher, job.seed, watch)
                for way in missing:
                    self._check_weights(job, way, writer.describer.fingerprint)
                    started = time.perf_counter()
                    lines = writer.write(way, self._before(job, way))
                    seconds = round(time.perf_counter() - started, 1)
                    self._keep(self._made(job, way.name, seconds, writer.describer.fingerprint), job, lines)

    def _check_weights(self, job: Job, wanted: Way, weights: str) -> None:
        """Refuse to lay beside captions that are kept of a job what another training of it came to.

        On another machine the last bits of a product differ, and in the end all weights.
        """
        if wanted.kind in BY_THEMSELVES:
            return
        for way in job.ways:
            if way.kind not in BY_THEMSELVES and self.shelf.holds(job, way.name):
                made = self.shelf.check(job, way.name, digest=self.digest(job.method, way.name))
                if made.weights != weights:
                    raise TellapartError(
                        f"{self.shelf.path(job, way.name)}: written by another training than the one in "
                        f"{self.folder(job)}",
                        hint=f"delete all files of {job.name} to have them written anew, or name another "
                        "folder with --kept",
                    )

    def _before(self, job: Job, way: Way) -> list[Line]:
        """The captions that a way chooses from."""
        if not way.of:
            return []
        return self.shelf.read(job, way.of, digest=self.digest(job.method, way.of)).lines

    def _keep(self, made: Made, job: Job, lines: list[Line]) -> None:
        self.shelf.write(job, made, (line.to_json() for line in lines))

    def _made(self, job: Job, way: str, seconds: float, weights: str) -> Made:
        return Made(
            self.ground.name,
            job.method.name,
            job.seed,
            way,
            self.digest(job.method, way),
            core_minutes(Run(self.folder(job))),
            seconds,
            weights=weights,
            **about_here(),
        )


def wanted_jobs(
    plan: Plan, shelf: Shelf, ground: Ground, *, is_over: Callable[[Job], bool] = lambda job: False
) -> list[Job]:
    """Jobs that have something missing on the shelf, and those whose folders such jobs need."""
    needed: set[str] = {f"{method.name}-1" for method in ground.retrievers}
    for job in reversed(plan.jobs):
        is_missing = any(not shelf.holds(job, way.name) for way in job.ways)
        if is_missing or job.name in needed:
            needed.add(job.name)
            needed |= set() if is_over(job) else set(plan.needs(job))
    return [job for job in plan.jobs if job.name in needed]


def minutes_left(plan: Plan, shelf: Shelf, ground: Ground) -> float:
    """What is still to be trained and written, on this ground with 2 cores; half a training counts whole."""
    jobs = wanted_jobs(plan, shelf, ground)
    ways = (way for job in jobs for way in job.ways if not shelf.holds(job, way.name))
    return ground.pace * (sum(job.method.minutes for job in jobs) + sum(way.minutes for way in ways))


def core_minutes(run: Run) -> float:
    """Processor time that training took, all cores together; 0 where there is no checkpoint to tell."""
    checkpoint = run.latest_checkpoint()
    if checkpoint is None:
        return 0.0
    state = torch.load(checkpoint, weights_only=True)
    return round(float(state["progress"]["core_seconds"]) / 60, 2)


def claim_folder(out: Path, ground: Ground) -> None:
    """Refuse a folder that holds what was run on another ground."""
    path = out / PLAN_FILE
    if not path.exists():
        write_text(path, json.dumps({"ground": ground.name}) + "\n")
        return
    try:
        before: Mapping[str, object] = dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError) as error:
        raise TellapartError(f"{path}: not JSON: {error}", hint="delete it, or name another --out") from error
    if before.get("ground") != ground.name:
        raise TellapartError(
            f"{out}: what is in this folder was run on {before.get('ground')}, not on {ground.name}",
            hint="name another folder with --out",
        )


def cells_on(shelf: Shelf, plan: Plan) -> Iterator[tuple[Job, Way]]:
    """All that is on the shelf."""
    for job in plan.jobs:
        for way in job.ways:
            if shelf.holds(job, way.name):
                yield job, way
