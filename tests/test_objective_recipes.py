"""Every objective's recipe on drawn scenes runs; `benchmarks.drawn_objectives` tells what each moves."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from benchmarks.drawn_objectives import OBJECTIVES, STAGED, continued

from tellapart.objectives.parts import OBJECTIVES as REGISTERED
from tellapart.recipe import built_in_recipes, load_experiment, load_recipe
from tellapart.training import begin, train, train_steps

TINY = (
    "data.scenes=120",
    "captioner.width=8",
    "captioner.heads=2",
    "captioner.feed_forward=12",
    "training.epochs=1",
    "training.images_per_batch=40",
    "decoding.max_words=8",
)
TINY_STAGES = ("stages.base.training.epochs=1", "stages.retriever.training.epochs=1")
MORE = {"specificity": ("objective.share=0.1",)}  # a hundredth of so few scenes is none
ON_DRAWN_SCENES = [name for name in built_in_recipes() if name.endswith("-shapes")]


@pytest.fixture(scope="module")
def tiny_stages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    recipe = load_recipe(f"{STAGED}-shapes", changes=[*TINY, *TINY_STAGES])
    return train(recipe, tmp_path_factory.mktemp("tiny") / "run").stages


def test_every_objective_has_a_recipe() -> None:
    others = {"mle", "mrnn-cost", "mix"}  # the start itself, m-RNN's own likelihood, any of the rest together
    assert {*OBJECTIVES} == {*REGISTERED.names()} - others
    assert {f"{name}-shapes" for name in OBJECTIVES} <= {*ON_DRAWN_SCENES}


def test_all_start_from_the_same() -> None:
    staged = load_recipe(f"{STAGED}-shapes")
    for name in OBJECTIVES:
        recipe = load_recipe(f"{name}-shapes")
        assert recipe.stages.items() <= staged.stages.items()
        same = ("seed", "data", "encoder", "captioner", "optimiser", "training")
        assert all(getattr(recipe, section) == getattr(staged, section) for section in same), name


@pytest.mark.parametrize("name", OBJECTIVES)
def test_takes_two_steps(name: str, tiny_stages: Path, tmp_path: Path) -> None:
    recipe = continued(name, tiny_stages, *TINY, *MORE.get(name, ()))
    run, learner = begin(recipe, tmp_path / "run", resume=False, watch=lambda done, total: None)
    reports = list(islice(train_steps(recipe, run, learner), 2))
    assert [report.step for report in reports] == [1, 2]


@pytest.mark.parametrize("name", sorted({*ON_DRAWN_SCENES} - {f"{name}-shapes" for name in OBJECTIVES}))
def test_what_has_no_stages_takes_two_steps(name: str, tmp_path: Path) -> None:
    recipe = load_experiment(name, changes=["data.scenes=60", "training.images_per_batch=20"])
    run, learner = begin(recipe, tmp_path / "run", resume=False, watch=lambda done, total: None)
    assert len(list(islice(train_steps(recipe, run, learner), 2))) == 2
