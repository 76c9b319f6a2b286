"""Recipes with stages: made by one command, resumed in any stage, and mistakes said before anything runs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from tellapart import genericity
from tellapart.captioners.folder import load_captioner
from tellapart.errors import TellapartError
from tellapart.evaluation import evaluate_run
from tellapart.preparation import prepare
from tellapart.recipe import Recipe, RetrieverRecipe, load_experiment, load_recipe
from tellapart.recipe_stages import HALVES, EntropyConfig
from tellapart.run import Run
from tellapart.stages import open_stages
from tellapart.training import Screen, train, train_steps, trainings
from tellapart.world import World

if TYPE_CHECKING:
    from tests.conftest import Outcome

WHOLE = """
seed = 3

[data]
format = "shapes"
scenes = 40
min_count = 1

[encoder]
name = "patches"

[stages.retriever]
based_on = "retriever-shapes"
retriever.width = 8
retriever.hidden = 8
retriever.word_width = 8
training.epochs = 2
training.images_per_batch = 16

[stages.halves]
kind = "entropy"
retriever = "stage:retriever"

[stages.teacher]
data.format = "jsonl"
data.path = "stage:halves/high.jsonl"
data.words_from = ["stage:halves/high.jsonl", "stage:halves/low.jsonl"]
captioner.dropout = 0.0
training.epochs = 1

[captioner]
name = "transformer"
preset = "tiny"

[objective]
name = "unkt"
teacher = "stage:teacher"
weight = 0.4

[optimiser]
learning_rate = 5e-3

[training]
epochs = 2
images_per_batch = 8
captions_per_image = 2
evaluate_every = 3
log_every = 1
patience = 0
"""
NAMES = ("retriever", "halves", "teacher", "")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recipes") / "staged.toml"
    path.write_text(WHOLE)
    return path


@pytest.fixture(scope="module")
def uninterrupted(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(load_recipe(str(file)), tmp_path_factory.mktemp("runs") / "whole")


def state_of(run: Run) -> dict[str, Any]:
    path = run.latest_checkpoint()
    assert path is not None
    state: dict[str, Any] = torch.load(path, weights_only=True)
    return state


def assert_same(one: Run, other: Run) -> None:
    """Weights, optimiser, best captioner and what the stages made are equal to the last bit."""
    left, right = state_of(one), state_of(other)
    for name, weight in left["step"].items():
        assert torch.equal(weight, right["step"][name]), name
    assert left["progress"]["step"] == right["progress"]["step"]
    for kept in ("captioner/model.safetensors", "stages/teacher/captioner/model.safetensors"):
        assert (one.folder / kept).read_bytes() == (other.folder / kept).read_bytes(), kept
    for half in HALVES:
        assert (one.stages / "halves" / half).read_text() == (other.stages / "halves" / half).read_text()


def test_one_recipe_makes_all_that_it_needs(uninterrupted: Run) -> None:
    stages = uninterrupted.stages
    assert sorted(path.name for path in stages.iterdir()) == ["halves", "retriever", "teacher"]
    assert (stages / "retriever" / "retriever").is_dir()
    student, teacher = (
        load_captioner(uninterrupted.captioner),
        load_captioner(stages / "teacher" / "captioner"),
    )
    assert student.settings.fingerprint == teacher.settings.fingerprint, (
        "half of the captions, all of the words"
    )
    lines = [json.loads(line) for line in (stages / "halves" / "high.jsonl").read_text().splitlines()]
    assert 0 < sum(len(line["captions"]) for line in lines if line["split"] == "train") < 32 * 5
    parts = uninterrupted.entries()[0]
    assert {"mle", "predictions", "hidden", "attention", "weight"} <= parts.keys()
    assert parts["weight"] == pytest.approx(0.4)


def test_the_runs_recipe_means_the_same_wherever_it_is_read(
    file: Path, uninterrupted: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = load_recipe(str(file))
    monkeypatch.chdir(tmp_path)
    again = load_recipe(str(uninterrupted.recipe))
    assert again == recipe
    assert again.to_toml() == recipe.to_toml()
    assert recipe.objective["teacher"] == "stage:teacher", "a copy of the run makes stages of its own"
    for folder in (uninterrupted.folder, uninterrupted.stages / "teacher"):
        assert evaluate_run(folder, split="val", width=1, watch=lambda done, total: None).images == 4


def test_a_stage_shares_what_it_does_not_set(file: Path) -> None:
    stages = dict(load_recipe(str(file)).stage_list())
    retriever, halves, teacher = stages["retriever"], stages["halves"], stages["teacher"]
    assert isinstance(retriever, RetrieverRecipe)
    assert isinstance(halves, EntropyConfig)
    assert isinstance(teacher, Recipe)
    assert (retriever.seed, retriever.data.scenes, retriever.optimiser.warmup_steps) == (3, 40, 20)
    assert (retriever.retriever["width"], retriever.training.epochs) == (8, 2)
    assert (teacher.seed, teacher.captioner["width"], teacher.captioner["dropout"]) == (3, 8, 0.0)
    assert teacher.objective["name"] == "mle"
    assert (teacher.training.epochs, teacher.training.images_per_batch) == (1, 8)
    assert halves.temperature == 0.07


def test_changes_reach_into_stages(file: Path) -> None:
    changes = ["stages.teacher.training.epochs=7", "stages.halves.top_n=5", "data.scenes=50"]
    stages = dict(load_recipe(str(file), changes=changes).stage_list())
    teacher, halves, retriever = stages["teacher"], stages["halves"], stages["retriever"]
    assert isinstance(teacher, Recipe)
    assert isinstance(halves, EntropyConfig)
    assert isinstance(retriever, RetrieverRecipe)
    assert (teacher.training.epochs, halves.top_n, retriever.data.scenes) == (7, 5, 50)


def test_files_of_halves_are_called_as_they_are_written() -> None:
    assert HALVES == (genericity.HIGH, genericity.LOW)


# Stopped and resumed


class StoppedError(Exception):
    """As a kill would: nothing is tidied up."""


@contextmanager
def stopping() -> Iterator[Callable[[str, int, int], None]]:
    def watch(what: str, done: int, total: int) -> None:
        raise StoppedError

    yield watch


def run_until(recipe: Recipe, folder: Path, stage: str, *, step: int) -> None:
    """Run, and stop within a stage as Ctrl-C does: after the step under way, which is saved."""
    screen = Screen(dividing=stopping) if stage == "halves" else Screen()
    for one in trainings(recipe, folder, resume=False, screen=screen):
        for report in train_steps(one.recipe, one.run, one.learner):
            if one.stage == stage and report.step == step:
                os.kill(os.getpid(), signal.SIGINT)
            if report.interrupted:
                raise StoppedError


@pytest.mark.parametrize(("stage", "step"), [("retriever", 1), ("halves", 0), ("teacher", 2), ("", 4)])
def test_resumed_in_any_stage_it_equals_an_uninterrupted_run(
    stage: str, step: int, file: Path, uninterrupted: Run, tmp_path: Path
) -> None:
    recipe, folder = load_recipe(str(file)), tmp_path / "run"
    with pytest.raises(StoppedError):
        run_until(recipe, folder, stage, step=step)
    done = {path.name for path in (folder / "stages").glob("[!.]*")}
    assert done == set(NAMES[: NAMES.index(stage) + (stage != "halves")]) - {""}
    before = {path: path.stat().st_mtime_ns for path in folder.glob("stages/*/recipe.toml")}
    lines: list[str] = []
    steps = [
        report.step
        for one in trainings(recipe, folder, resume=True, screen=Screen(say=lines.append))
        for report in train_steps(one.recipe, one.run, one.learner)
    ]
    # What was over is not touched; what was not goes on where it was.
    assert steps[0] == (step + 2 if stage != "halves" else 1)
    over = [line for line in lines if "there already" in line]
    assert len(over) == NAMES.index(stage)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert_same(Run(folder), uninterrupted)


def test_a_kill_in_a_stage_loses_nothing_but_steps(file: Path, uninterrupted: Run, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    command = [sys.executable, "-m", "tellapart", "train", str(file), "--out", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    teacher = Run(folder / "stages" / "teacher")
    deadline = time.monotonic() + 120
    while teacher.latest_checkpoint() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert teacher.latest_checkpoint() is not None
    train(load_recipe(str(file)), folder, resume=True)
    assert_same(Run(folder), uninterrupted)


def test_what_a_kill_left_of_a_stages_beginning_is_thrown_away(
    file: Path, uninterrupted: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(uninterrupted.folder, folder)
    for name in ("checkpoints", "captioner", "metrics.jsonl", "stages/teacher"):
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    (folder / "stages" / "teacher").mkdir()
    (folder / "stages" / "teacher" / ".recipe.toml.0123.part").touch()
    (folder / "stages" / ".halves.0123.part").mkdir()
    train(load_recipe(str(file)), folder, resume=True)
    assert_same(Run(folder), uninterrupted)


def test_the_command_line_tells_of_each_stage_and_goes_on(
    tellapart: Callable[..., Outcome], file: Path, uninterrupted: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    told = tellapart("train", file, "--out", folder, "--json")
    assert told.code == 0, told.err
    said = [line for line in told.err.splitlines() if line.startswith("stage ")]
    assert said == [
        "stage 1 of 4: retriever",
        "stage 2 of 4: halves",
        "stage 3 of 4: teacher",
        "stage 4 of 4: the recipe itself",
    ]
    lines = [json.loads(line) for line in told.out.splitlines()]
    ends = [line for line in lines if "run" in line]
    assert [line.get("stage", "") for line in ends] == ["retriever", "teacher", ""]
    assert ends[1]["captioner"] == str(folder / "stages" / "teacher" / "captioner")
    assert {line.get("stage") for line in lines if "validation" in line} == {"retriever", "teacher", None}
    assert_same(Run(folder), uninterrupted)
    again = tellapart("train", folder, "--resume")
    assert again.code == 0, again.err
    assert again.err.count("which is there already") == 3
    assert "stage 1 of 4: retriever, which is there already" in again.err


# Mistakes


def test_a_folder_with_something_in_it_is_refused_before_a_stage_runs(file: Path, tmp_path: Path) -> None:
    (tmp_path / "note.txt").touch()
    with pytest.raises(TellapartError, match="there is something in this folder already"):
        train(load_recipe(str(file)), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]


def test_another_recipe_is_not_resumed(file: Path, uninterrupted: Run) -> None:
    changed = load_recipe(str(file), changes=["stages.teacher.training.epochs=5"])
    with pytest.raises(TellapartError, match="started with another recipe"):
        train(changed, uninterrupted.folder, resume=True)


def test_a_retriever_is_not_trained_by_several_processes(
    file: Path, uninterrupted: Run, tmp_path: Path
) -> None:
    two = World(rank=0, size=2)
    recipe, folder = load_recipe(str(file)), tmp_path / "run"
    with pytest.raises(TellapartError, match="the stage 'retriever' trains a retriever"):
        open_stages(recipe, folder, resume=False, watch=lambda done, total: None, world=two)
    assert not folder.exists()
    over = open_stages(recipe, uninterrupted.folder, resume=True, watch=lambda done, total: None, world=two)
    assert [stage.name for stage in over] == list(NAMES), "one that is over is no hindrance"


def test_what_the_recipe_itself_lacks_is_said_before_its_stages_run(file: Path, tmp_path: Path) -> None:
    recipe = load_recipe(str(file), changes=["captioner.name=mrnn", "captioner.preset=tiny"])
    with pytest.raises(
        TellapartError, match="compares the attention of every layer, and the captioner has none"
    ):
        train(recipe, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_one_picture_cannot_be_divided(tmp_path: Path, scenes: Path) -> None:
    first, *rest = (scenes / "captions.jsonl").read_text().splitlines()
    last = next(line for line in rest if json.loads(line)["split"] == "val")
    (tmp_path / "captions.jsonl").write_text(f"{first}\n{last}\n")
    changes = [
        f"data.root={tmp_path}",
        "data.path=captions.jsonl",
        f"data.images={scenes}",
        "data.format=jsonl",
    ]
    (tmp_path / "staged.toml").write_text(WHOLE)
    recipe = load_recipe(str(tmp_path / "staged.toml"), changes=changes)
    with pytest.raises(TellapartError, match="there is one picture to train on"):
        train(recipe, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def line_of(text: str, line: str) -> int:
    return text.splitlines().index(line) + 1


@pytest.mark.parametrize(
    ("before", "after", "problem", "hint"),
    [
        (
            'teacher = "stage:teacher"',
            'teacher = "stage:techer"',
            "objective.teacher: no stage is called 'techer'",
            "did you mean 'teacher'?",
        ),
        (
            'data.path = "stage:halves/high.jsonl"',
            'data.path = "stage:halfs/high.jsonl"',
            "stages.teacher.data.path: no stage is called 'halfs'",
            "did you mean 'halves'?",
        ),
        (
            'retriever = "stage:retriever"',
            'retriever = "stage:teacher"',
            "stages.halves.retriever: the stage 'teacher' is not over yet",
            "move [stages.teacher] before what names it",
        ),
        (
            "training.epochs = 1",
            'training.start_from = "stage:teacher"',
            "stages.teacher.training.start_from: the stage 'teacher' is not over yet",
            "move [stages.teacher] before what names it",
        ),
        (
            'teacher = "stage:teacher"',
            'teacher = "stage:retriever"',
            "objective.teacher: a captioner is wanted, and the stage 'retriever' makes a retriever",
            "there are: teacher",
        ),
        (
            'data.path = "stage:halves/high.jsonl"',
            'data.path = "stage:halves"',
            "stages.teacher.data.path: the stage 'halves' makes no ''",
            "write stage:halves/high.jsonl or stage:halves/low.jsonl",
        ),
        (
            'teacher = "stage:teacher"',
            'teacher = "stage:teacher/captioner"',
            "objective.teacher: the stage 'teacher' makes no 'captioner'",
            "write stage:teacher",
        ),
        (
            'based_on = "retriever-shapes"',
            'based_on = "retriever-shape"',
            "stages.retriever.based_on: no recipe file or built-in recipe is called 'retriever-shape'",
            "did you mean 'retriever-shapes'?",
        ),
        (
            'based_on = "retriever-shapes"',
            'based_on = "unkt-shapes"',
            "stages.retriever.based_on: unkt-shapes has stages of its own",
            "write its stages before this one",
        ),
        (
            'kind = "entropy"',
            'kind = "entropi"',
            "stages.halves.kind: no stage is of the kind 'entropi'",
            "did you mean 'entropy'?",
        ),
        (
            'retriever = "stage:retriever"',
            "temprature = 1.0",
            "stages.halves.temprature: unknown key 'temprature'",
            "did you mean 'temperature'?",
        ),
        (
            "captioner.dropout = 0.0",
            "captioner.droput = 0.0",
            "stages.teacher.captioner.droput: unknown key 'droput'",
            "did you mean 'dropout'?",
        ),
    ],
)
def test_a_mistake_is_named_with_its_line_before_anything_runs(
    before: str, after: str, problem: str, hint: str, tmp_path: Path
) -> None:
    path, text = tmp_path / "staged.toml", WHOLE.replace(before, after)
    path.write_text(text)
    with pytest.raises(TellapartError) as caught:
        load_experiment(str(path))
    assert caught.value.problem == f"{path}:{line_of(text, after)}: {problem}"
    assert caught.value.hint == hint


def test_two_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "staged.toml"
    path.write_text(WHOLE + '\n[stages.halves]\nkind = "entropy"\n')
    with pytest.raises(
        TellapartError, match=r"Cannot declare \('stages', 'halves'\) twice \(at line \d+"
    ) as caught:
        load_experiment(str(path))
    assert caught.value.hint == "give each its own name"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('stages = "x"', "stages: should hold a table for each stage"),
        ('[stages]\nteacher = "x"', "stages.teacher: should be a table"),
        ('[stages."../x"]\nkind = "entropy"', "a folder is to be called so"),
        ('[objective]\nname = "unkt"\nteacher = "stage:x"', "objective.teacher: no stage is called 'x'"),
        ('[training]\nstart_from = "stage:x"', "training.start_from: no stage is called 'x'"),
    ],
)
def test_stages_are_tables_and_there(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "staged.toml"
    path.write_text(f'{text}\n[data]\nformat = "shapes"\n')
    with pytest.raises(TellapartError) as caught:
        load_experiment(str(path))
    assert problem in caught.value.problem
    assert str(path) in caught.value.problem


def test_a_retriever_has_no_stages(tmp_path: Path) -> None:
    path = tmp_path / "staged.toml"
    path.write_text(
        '[data]\nformat = "shapes"\n[retriever]\nname = "dual"\n[stages.halves]\nkind = "entropy"\n'
    )
    with pytest.raises(TellapartError, match="unknown key 'stages'"):
        load_experiment(str(path))


def test_captions_as_generic_as_each_other_have_no_halves(file: Path, tmp_path: Path) -> None:
    recipe = load_recipe(str(file), changes=["stages.halves.top_n=1"])  # of one picture the entropy is 0
    with pytest.raises(TellapartError, match=r"stage 'halves': to .* all captions are as generic"):
        train(recipe, tmp_path / "run")
    assert not (tmp_path / "run" / "stages" / "halves").exists()


# Words of other captions


def test_the_words_of_named_files_are_known(tmp_path: Path, scenes: Path) -> None:
    records = [json.loads(line) for line in (scenes / "captions.jsonl").read_text().splitlines()]
    lines = [json.dumps({**record, "captions": ["a zebra"]}) for record in records[:20]]
    lines.append(json.dumps({**records[-1], "split": "test", "captions": ["an okapi"]}))
    (tmp_path / "words.jsonl").write_text("\n".join(lines) + "\n")
    changes = ("data.scenes=40", "data.min_count=5", "captioner.preset=tiny", f"data.root={tmp_path}")
    recipe = load_recipe("mrnn-shapes", changes=[*changes, 'data.words_from=["words.jsonl"]'])
    text = prepare(recipe, watch=lambda done, total: None).saved.captioner.text
    assert text.decode(text.encode("a zebra")) == "a zebra"
    assert text.decode(text.encode("an okapi")) == "<unk> <unk>", "captions to test on teach no words"
    assert text.decode(text.encode("red circle")) == "<unk> <unk>", "nor do the data's own"


def test_a_missing_file_of_words_is_named() -> None:
    with pytest.raises(TellapartError, match=r"--set data\.words_from: no such file or folder"):
        load_recipe("mrnn-shapes", changes=['data.words_from=["nowhere.jsonl"]'])
