"""The stages of a run: what a recipe wants made first, each once, whatever stops the run in between.

A stage that is trained is a run of its own in RUN/stages/NAME, over when its log says so; one that divides
captions is a folder that is there whole or not at all. So a run that is resumed goes on in the stage in which
it was stopped.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tellapart.captioner_learner import CaptionerLearner
from tellapart.corpus import Watch
from tellapart.data.examples import Example
from tellapart.errors import TellapartError
from tellapart.genericity import Hesitation, measure_genericity, to_filter, write_genericity
from tellapart.metrics.material import Watch as WatchWhat
from tellapart.preparation import prepare
from tellapart.recipe import AnyRecipe, Recipe, RetrieverRecipe
from tellapart.recipe_sections import DataConfig
from tellapart.recipe_stages import EntropyConfig, located, references, wanted_by, without_references
from tellapart.retrievers.loading import load_retriever
from tellapart.run import Run, refuse_full, resume_run, start_run
from tellapart.sources import read_examples
from tellapart.world import ALONE, World


@dataclass(frozen=True, slots=True)
class Division:
    """Training captions that are to be divided by retrieval entropy."""

    config: EntropyConfig
    data: DataConfig
    seed: int


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of a run: something that is made first or, without a name, what it is made for."""

    name: str
    work: AnyRecipe | Division
    folder: Path

    @property
    def is_over(self) -> bool:
        """Whether what is made first is there; the last stage is always asked to go on."""
        if isinstance(self.work, Division):
            return self.folder.is_dir()
        return bool(self.name) and Run(self.folder).is_over

    def clear(self) -> bool:
        """Whether it was begun before; what a kill left of a beginning is thrown away."""
        begun = Run(self.folder).recipe.exists()
        if self.name and not begun:
            shutil.rmtree(self.folder, ignore_errors=True)
        return begun


def open_stages(
    recipe: AnyRecipe, folder: Path, *, resume: bool, watch: Watch, world: World = ALONE
) -> list[Stage]:
    """All parts of a run in their order, without stages that nothing names.

    The folder of a recipe with stages is written here, for the first stage lies in it, and only when the
    recipe's own data was read and its objective found what it needs.
    """
    last = Stage("", recipe, folder)
    if not isinstance(recipe, Recipe):
        return [last]
    needless = recipe.needless_stages()
    stages = [
        _stage(recipe, name, work, Run(folder)) for name, work in recipe.stage_list() if name not in needless
    ]
    if not stages:
        return [last]
    _refuse_many(stages, world)
    if world.leads and resume:
        resume_run(folder, recipe.to_toml())
    elif world.leads:
        refuse_full(folder)
        _rehearse(recipe, stages, watch)
        start_run(folder, recipe.to_toml())
    return [*stages, last]


def _stage(recipe: Recipe, name: str, work: Recipe | RetrieverRecipe | EntropyConfig, run: Run) -> Stage:
    folder = run.stages / name
    if not isinstance(work, EntropyConfig):
        return Stage(name, work.located(run.stages), folder)
    config = EntropyConfig.model_validate(located(work.model_dump(), run.stages))
    return Stage(name, Division(config, recipe.located(run.stages).data, recipe.seed), folder)


def _refuse_many(stages: Sequence[Stage], world: World) -> None:
    """A retriever is trained by one process: it shall not turn out when its turn comes."""
    for stage in stages:
        if world.size > 1 and isinstance(stage.work, RetrieverRecipe) and not stage.is_over:
            raise TellapartError(
                f"the stage {stage.name!r} trains a retriever, which learns from whole batches, and "
                f"{world.size} processes would each see a share",
                hint="run in one process, without torchrun or accelerate launch, until that stage is over",
            )


def _rehearse(recipe: Recipe, stages: Sequence[Stage], watch: Watch) -> None:
    """Let whatever the recipe lacks be said now, and not when all stages have run.

    Captioners that the stages are to make are stood in for by the recipe's own, untrained.
    """
    values = recipe.model_dump(exclude={"stages"})
    wanted = {wanted_by(keys) for keys in references(values)}
    if "caption files" not in wanted and any(isinstance(stage.work, Division) for stage in stages):
        _refuse_one(read_examples(recipe.data, seed=recipe.seed))
    if wanted <= {"a captioner"}:
        rehearsed = Recipe.model_validate(without_references(values))
        CaptionerLearner(rehearsed, prepare(rehearsed, watch=watch)).step.train()


def _refuse_one(everything: Sequence[Example]) -> None:
    if len({example.path for example in to_filter(everything)}) < 2:
        raise TellapartError(
            "captions are to be divided by how many pictures they fit, and there is one picture to train on",
            hint="train on more pictures, or drop the stage of kind 'entropy'",
        )


def divide(stage: Stage, *, watch: WatchWhat) -> None:
    """Write a stage's caption files, those that fit many pictures and those that fit few."""
    work = stage.work
    assert isinstance(work, Division)
    everything = read_examples(work.data, seed=work.seed)
    _refuse_one(everything)
    retriever = load_retriever(work.config.retriever)
    hesitation = Hesitation(work.config.temperature, work.config.top_n)
    found = measure_genericity(to_filter(everything), retriever, hesitation, watch=watch)
    if found.is_high.all():
        raise TellapartError(
            f"stage {stage.name!r}: to {retriever.name} all captions are as generic, and there are no halves",
            hint=f"give stages.{stage.name} another retriever, or another temperature",
        )
    write_genericity(stage.folder, found, everything)
