"""What a stage takes from its recipe, and stages that nothing names: left out, and said to be."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tellapart.captioners.folder import read_settings
from tellapart.recipe import Recipe, load_recipe
from tellapart.recipe_stages import stages_named
from tellapart.sources import read_examples
from tellapart.training import Screen, train, train_steps, trainings

if TYPE_CHECKING:
    from tests.conftest import Outcome

TINY = """
[data]
format = "shapes"
scenes = 40
min_count = 1

[encoder]
name = "patches"

[stages.base]
training.epochs = 1

[stages.other]
training.start_from = "stage:base"

[captioner]
name = "mrnn"
preset = "tiny"

[training]
epochs = 1
images_per_batch = 20
patience = 0
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "staged.toml"
    path.write_text(TINY)
    return path


def run(recipe: Recipe, folder: Path, *, resume: bool = False) -> tuple[list[str], list[str]]:
    """Train it; the names of what was trained, and what was said."""
    lines: list[str] = []
    names = []
    for one in trainings(recipe, folder, resume=resume, screen=Screen(say=lines.append)):
        names.append(one.stage)
        assert list(train_steps(one.recipe, one.run, one.learner))
    return names, lines


@pytest.mark.parametrize(
    ("changes", "trained"),
    [
        ((), [""]),
        (("training.start_from=stage:base",), ["base", ""]),
        (("training.start_from=stage:other",), ["base", "other", ""]),
    ],
)
def test_a_stage_runs_if_it_is_named_by_what_runs(
    changes: tuple[str, ...], trained: list[str], file: Path, tmp_path: Path
) -> None:
    recipe, folder = load_recipe(str(file), changes=changes), tmp_path / "run"
    names, lines = run(recipe, folder)
    assert names == trained
    needless = [name for name in ("base", "other") if name not in trained]
    told = [f"the stage {name} is left out: nothing names what it makes" for name in needless]
    assert [line for line in lines if "left out" in line] == told
    assert not any((folder / "stages" / name).exists() for name in needless)
    assert load_recipe(str(folder / "recipe.toml")) == recipe, "the run's recipe keeps them"


def test_a_run_that_leaves_all_stages_out_is_resumed(file: Path, tmp_path: Path) -> None:
    recipe = load_recipe(str(file))
    train(recipe, tmp_path / "run")
    names, lines = [], list[str]()
    for one in trainings(recipe, tmp_path / "run", resume=True, screen=Screen(say=lines.append)):
        names.append(one.stage)
        assert not list(train_steps(one.recipe, one.run, one.learner)), "it was over"
    assert names == [""]


def test_the_command_line_says_what_it_leaves_out(
    tellapart: Callable[..., Outcome], file: Path, tmp_path: Path
) -> None:
    told = tellapart(
        "train", file, "--out", tmp_path / "run", "--set", "training.start_from=stage:base", "--json"
    )
    assert told.code == 0, told.err
    said = [line for line in told.err.splitlines() if "stage" in line]
    assert said == [
        "the stage other is left out: nothing names what it makes",
        "stage 1 of 2: base",
        "stage 2 of 2: the recipe itself",
    ]


def test_stages_are_named_through_one_another() -> None:
    stages: dict[str, dict[str, object]] = {
        "retriever": {"seed": 1},
        "halves": {"retriever": "stage:retriever"},
        "teacher": {"data": {"path": "stage:halves/high.jsonl"}},
        "unused": {"start_from": "stage:teacher"},
    }
    assert stages_named({"objective": {"teacher": "stage:teacher"}}, stages) == set(stages) - {"unused"}
    assert stages_named({"objective": {"retriever": "stage:retriever"}}, stages) == {"retriever"}
    assert stages_named({"objective": {"name": "mle"}}, stages) == set()


# What a stage takes from its recipe


HALVED = """
[stages.halves]
kind = "entropy"

[stages.teacher]
data.format = "jsonl"
data.path = "stage:halves/high.jsonl"
data.words_from = ["words.jsonl"]

[stages.richer]
data.path = "stage:halves/low.jsonl"
data.extra = [{ path = "other.jsonl" }]

[stages.same]
training.epochs = 1

[stages.retriever]
based_on = "retriever-shapes"
data.path = "captions.jsonl"

[objective]
name = "unkt"
teacher = "stage:teacher"
"""


def test_a_stage_with_a_caption_file_of_its_own_has_no_extra_sources_but_its_own(tmp_path: Path) -> None:
    for name in ("captions", "more", "other", "words"):
        record = {"image": "1.png", "captions": [f"a {name}"], "split": "train"}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(record))
    path = tmp_path / "staged.toml"
    path.write_text(
        f'[data]\nroot = "{tmp_path}"\npath = "captions.jsonl"\nextra = [{{ path = "more.jsonl" }}]\n{HALVED}'
    )
    recipe = load_recipe(str(path))
    stages = dict(recipe.stage_list())
    sources = {
        name: [source.path for source in work.data.extra]
        for name, work in stages.items()
        if not hasattr(work, "temperature")
    }
    assert sources == {"teacher": [], "richer": ["other.jsonl"], "same": ["more.jsonl"], "retriever": []}
    assert [source.path for source in recipe.data.extra] == ["more.jsonl"]
    teacher = stages["teacher"]
    assert isinstance(teacher, Recipe)
    assert teacher.data.words_from == ["words.jsonl"]


def test_a_teacher_learns_the_captions_of_its_half_once(tmp_path: Path, scenes: Path) -> None:
    lines = (scenes / "captions.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    for record in records:
        record["image"] = str(scenes / record["image"])
    first, second = records[::2], [dict(record, split="train") for record in records[1::2]]
    for name, some in (("first", first), ("second", second)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in some))
    path = tmp_path / "staged.toml"
    path.write_text(
        f'[data]\nroot = "{tmp_path}"\npath = "first.jsonl"\nextra = [{{ path = "second.jsonl" }}]\n'
        '[stages.teacher]\ndata.path = "first.jsonl"\n[training]\nstart_from = "stage:teacher"\n'
    )
    teacher = dict(load_recipe(str(path)).stage_list())["teacher"]
    assert isinstance(teacher, Recipe)
    ids = {example.image_id for example in read_examples(teacher.data, seed=1)}
    assert ids == {record["image_id"] for record in first}


def test_words_may_be_those_of_a_stage(file: Path, tmp_path: Path) -> None:
    file.write_text(TINY.replace("patience = 0", 'patience = 0\nwords_of = "stage:base"'))
    recipe = load_recipe(str(file), changes=["data.min_count=3", "stages.base.data.min_count=1"])
    assert run(recipe, tmp_path / "run")[0] == ["base", ""]
    own, base = (read_settings(tmp_path / "run" / place) for place in ("captioner", "stages/base/captioner"))
    assert own.fingerprint == base.fingerprint
