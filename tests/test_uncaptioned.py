"""Photographs without captions: who learns from them, who refuses them, and that none is measured on."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
import torch
from pydantic import ValidationError
from tests.objectives.material import SMALL, context
from tests.retrievers.tiny_dual import write_tiny_dual

from tellapart.captioner_learner import CaptionerLearner
from tellapart.errors import TellapartError
from tellapart.evaluation import evaluate_run
from tellapart.preparation import prepare
from tellapart.recipe import Recipe, RetrieverRecipe, load_experiment, load_recipe
from tellapart.recipe_sections import SourceConfig
from tellapart.retriever_learner import prepare_retriever
from tellapart.sources import LEFT_OUT, read_sources
from tellapart.training import train
from tellapart.world import World

SPECIFIC = ("objective.name=specificity", "objective.share=0.1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, scenes: Path) -> Path:
    """Drawn scenes with captions, twenty more pictures in two folders without, and a retriever."""
    root = tmp_path_factory.mktemp("data")
    shutil.copytree(scenes, root / "drawn")
    pictures = sorted((root / "drawn" / "images").iterdir())
    for number, picture in enumerate(pictures[:20]):
        inside = root / "photos" / ("deep" if number % 2 else "")
        inside.mkdir(parents=True, exist_ok=True)
        shutil.copy(picture, inside / f"photo {number}{picture.suffix}")
    (root / "photos" / "notes.txt").write_text("no picture")
    write_tiny_dual(root / "dual", ["a red circle and a blue square"])
    return root


def recipe(folder: Path, *changes: str, photographs: str = "photos", more: str = "") -> Recipe:
    extra = f'data.extra=[{{ path = "{photographs}", captions = false{more} }}]'
    own = (
        f"data.root={folder}",
        "data.path=drawn/captions.jsonl",
        "data.images=drawn",
        "data.format=jsonl",
        extra,
    )
    return load_recipe("mrnn-shapes", changes=[*SMALL, *own, *changes])


def ready(some: Recipe) -> CaptionerLearner:
    return CaptionerLearner(some, prepare(some, watch=lambda done, total: None))


def test_pictures_of_a_folder_and_its_folders_are_trained_on(folder: Path) -> None:
    sources = read_sources(recipe(folder).data, seed=1)
    extra = sources[1].examples
    assert len(extra) == 20
    assert Counter(example.split for example in extra) == {"train": 20}
    assert all(example.captions == () and example.pictured for example in extra)
    assert {"photo 0", "deep/photo 1"} <= {example.image_id for example in extra}


def test_pictures_that_have_captions_elsewhere_are_left_out_whether_measured_on_or_trained_on(
    folder: Path,
) -> None:
    sources = read_sources(recipe(folder, photographs="drawn/images").data, seed=1)
    assert Counter(example.split for example in sources[1].examples) == {LEFT_OUT: 60}


def test_an_objective_that_needs_no_captions_learns_from_them(folder: Path, tmp_path: Path) -> None:
    """Trained, validated, evaluated; every batch of photographs alone moves the weights."""
    some = recipe(folder, *SPECIFIC, f"objective.retriever={folder / 'dual'}", "objective.margin=5.0",
                  "training.epochs=1", "objective.mle_weight=0.5")  # fmt: skip
    made = ready(some)
    assert len(made.ready.train_set.examples) == 48 + 20
    bare = 0
    for step in range(made.steps_per_epoch):
        (batch,) = made.shares(step, World())
        if batch.totals().captions == 0:
            bare += 1
            assert batch.tokens.shape == (len(batch.rows), 1, 2)
            loss = made.step(batch, context(step))
            weights = list(made.network.parameters())
            found = torch.autograd.grad(loss.total, weights, materialize_grads=True)
            assert any(gradient.abs().max() > 0 for gradient in found)
            assert loss.parts["mle"] == 0
    assert bare >= 4
    run = train(some, tmp_path / "run")
    logged = [json.loads(line) for line in run.metrics.read_text(encoding="utf-8").splitlines()]
    assert any("validation" in line for line in logged)
    measured = evaluate_run(run.folder, split="train", width=1, watch=lambda done, total: None)
    assert measured.images == 48, "only what has captions"


@pytest.mark.parametrize(
    "rewards",
    [
        '[{{ name = "self-retrieval", retriever = "{dual}", neighbours = 3 }}]',
        '[{{ name = "cider-d" }}, {{ name = "self-retrieval", retriever = "{dual}", neighbours = 3 }}]',
    ],
)
def test_rewards_by_retrieval_take_them(folder: Path, rewards: str) -> None:
    named = rewards.format(dual=folder / "dual")
    made = ready(
        recipe(folder, "objective.name=reward", f"objective.rewards={named}", "objective.baseline=mean")
    )
    bare = [row for row, group in enumerate(made.ready.train_set.captions) if not group]
    batch = made.ready.train_set.batch(bare[:4], captions_per_image=2, seed=1, epoch=0)
    loss = made.step(batch, context(0))
    assert loss.total.isfinite()
    assert loss.total.requires_grad


@pytest.mark.parametrize(
    "objective",
    [
        ("objective.name=mle",),
        ("objective.name=mrnn-cost",),
        ("objective.name=reward",),
        ("objective.name=mix", 'objective.parts=[{ name = "mle" }, { name = "reward", weight = 0.5 }]'),
    ],
)
def test_objectives_that_learn_from_captions_alone_refuse_them(
    folder: Path, objective: tuple[str, ...]
) -> None:
    with pytest.raises(TellapartError, match="photographs without captions, and the objective") as caught:
        ready(recipe(folder, *objective))
    assert "photo" in caught.value.problem
    assert "take specificity" in caught.value.hint


def test_one_part_of_a_mixture_that_takes_them_is_enough(folder: Path) -> None:
    dual = folder / "dual"
    parts = (
        f'objective.parts=[{{ name = "mle" }}, {{ name = "specificity", share = 0.1, retriever = "{dual}" }}]'
    )
    made = ready(recipe(folder, "objective.name=mix", parts))
    assert len(made.ready.train_set.examples) == 68


def test_what_makes_no_sense_without_captions_is_refused(folder: Path) -> None:
    for settings, problem in (
        ({"held_out": 3}, "cannot be held out"),
        ({"pictures": False}, "neither captions nor pictures"),
        ({"images": "x"}, "leave out images and format"),
        ({"format": "coco"}, "leave out images and format"),
    ):
        with pytest.raises(ValidationError, match=problem):
            SourceConfig.model_validate({"path": "photos", "captions": False, **settings})
    with pytest.raises(TellapartError, match="is no folder"):
        ready(recipe(folder, *SPECIFIC, photographs="drawn/captions.jsonl"))
    (folder / "empty").mkdir(exist_ok=True)
    with pytest.raises(TellapartError, match="has no pictures in it"):
        ready(recipe(folder, *SPECIFIC, photographs="empty"))


def test_each_epoch_may_draw_some_of_them(folder: Path) -> None:
    made = ready(recipe(folder, *SPECIFIC, f"objective.retriever={folder / 'dual'}", more=", per_epoch = 5"))
    plan = made.ready.train_set.plan(images_per_batch=4, seed=1, epoch=0)
    rows = [row for batch in plan for row in batch]
    assert len(rows) == 48 + 5
    other = [row for batch in made.ready.train_set.plan(images_per_batch=4, seed=1, epoch=1) for row in batch]
    assert set(rows) != set(other)


def test_a_retriever_refuses_them(folder: Path) -> None:
    extra = 'data.extra=[{ path = "photos", captions = false }]'
    own = (
        f"data.root={folder}",
        "data.path=drawn/captions.jsonl",
        "data.images=drawn",
        "data.format=jsonl",
        extra,
    )
    some = load_experiment("retriever-shapes", changes=own)
    assert isinstance(some, RetrieverRecipe)
    with pytest.raises(TellapartError, match="photographs without captions teach a retriever nothing"):
        prepare_retriever(some, watch=lambda done, total: None)
