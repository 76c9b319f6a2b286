"""`tellapart train`: from a recipe to a captioner."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

from tellapart.cli.console import counting, progress_bar, say, stderr, tell, watching

if TYPE_CHECKING:
    from tellapart.recipe import AnyRecipe
    from tellapart.training import Report, Training
    from tellapart.world import World


_TRY = {
    "captioner": "caption photo.jpg --captioner {}",
    "retriever": "search 'a dog' photos/ --retriever {}",
    "encoder": "train RECIPE --set encoder.name=tuned:{}",
}


def train(
    recipe: Annotated[
        str,
        typer.Argument(
            help="A recipe file, the name of a built-in recipe, or a run folder to resume.",
            show_default=False,
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="Run folder.", show_default="runs/RECIPE")] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change a value: section.key=value; may be repeated.", show_default=False),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in that folder.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Validations and the result as JSON lines.")] = False,
) -> None:
    """Train a captioner or a retriever, or tune an encoder.

    Example: tellapart train mrnn-shapes --set training.epochs=3
    """
    from tellapart.recipe import load_experiment
    from tellapart.run import Run

    given = Path(recipe)
    source = Run(given).recipe if given.is_dir() else recipe  # a run folder stands for its own recipe
    checked = load_experiment(str(source), changes=changes or ())  # before torch is imported
    folder = out or (given if given.is_dir() else Path("runs") / given.stem)

    from tellapart.world import LeftBehindError, join_world

    try:
        with join_world() as world:
            _train(checked, folder, world, resume=resume, as_json=json)
    except LeftBehindError as error:  # the one that ended has said all there is to say
        stderr.print(error.problem)
        raise typer.Exit(1) from error


def _train(recipe: AnyRecipe, folder: Path, world: World, *, resume: bool, as_json: bool) -> None:
    """Train all that there is to train, and tell of it where this process leads."""
    from tellapart.training import SILENT, Screen, train_steps, trainings

    screen = (
        Screen(lambda: counting("looking at pictures"), watching, stderr.print) if world.leads else SILENT
    )
    for training in trainings(recipe, folder, resume=resume, world=world, screen=screen):
        reports = train_steps(training.recipe, training.run, training.learner, world=world)
        if world.leads:
            last = _show(training, reports, as_json=as_json)
            _tell_end(last, training, as_json=as_json)
        elif any(report.interrupted for report in reports):
            return


def _show(training: Training, reports: Iterable[Report], *, as_json: bool) -> Report | None:
    """Tell of each step as it is taken; the last one, if there was any."""
    stderr.print(training.learner.summary())
    last: Report | None = None
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with progress_bar(*columns) as bar:
        task = bar.add_task("", total=None)
        for last in reports:
            line = f"loss {last.taken.loss:.3f}  {last.tokens_per_second:,.0f} tokens/s"
            bar.update(task, completed=last.step, total=last.steps, description=line)
            if last.validation:
                bar.stop()  # its line must be free, as stdout may be the same screen
                _tell_validation(last, training.stage, as_json=as_json)
                bar.start()
    return last


def _tell_validation(report: Report, stage: str, *, as_json: bool) -> None:
    found = report.validation
    if found is None:
        return
    if as_json:
        say(
            ({"stage": stage} if stage else {})
            | {
                "step": report.step,
                "loss": report.taken.loss,
                "validation": found.to_json(),
                "is_best": report.is_best,
            }
        )
    else:
        star = " *" if report.is_best else ""
        tell(f"step {report.step}: loss {report.taken.loss:.3f}; validation: {found}{star}")


def _tell_end(last: Report | None, training: Training, *, as_json: bool) -> None:
    kind, folder = training.learner.kind, training.run.folder
    if last is not None and last.interrupted:
        stderr.print(f"stopped at step {last.step} and saved; go on with the same command and --resume")
        raise typer.Exit(130)
    stopped_by = last.stopped_by if last is not None else ""
    if as_json:
        stage = {"stage": training.stage} if training.stage else {}
        say({**stage, "run": str(folder), kind: str(folder / kind), "stopped_by": stopped_by})
        return
    if stopped_by:
        tell(f"ended by training.{stopped_by}")
    if not training.stage:
        kept = training.recipe.training.keep  # the best one, or the last
        tell(f"the {kept} {kind} is in {folder}; try: tellapart {_TRY[kind].format(folder)}")
