"""`tellapart train` and `tellapart evaluate`, as a user types them."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Outcome

SMALL = (
    "data.scenes=60",
    "captioner.embedding_one=8",
    "captioner.embedding_two=8",
    "captioner.multimodal=8",
    "training.epochs=2",
    "training.images_per_batch=8",
)
CHANGES = [word for change in SMALL for word in ("--set", change)]


def test_an_encoder_is_tuned_and_named_for_the_next_recipe(
    tellapart: Callable[..., Outcome], tmp_path: Path
) -> None:
    run = tmp_path / "eyes"
    small = ("data.scenes=60", "encoder.views=1", "tuning.first_block=15", "tuning.min_images=5")
    changes = [word for change in (*small, "training.epochs=1") for word in ("--set", change)]
    tuned = tellapart("train", "eyes-shapes", "--out", run, *changes)
    assert tuned.code == 0, tuned.err
    assert "average precision of words" in tuned.out
    assert tuned.out.splitlines()[-1].endswith(f"tellapart train RECIPE --set encoder.name=tuned:{run}")


def test_train_then_evaluate_then_caption(
    tellapart: Callable[..., Outcome], tmp_path: Path, scenes: Path
) -> None:
    run = tmp_path / "run"
    trained = tellapart("train", "mrnn-shapes", "--out", run, *CHANGES)
    assert trained.code == 0, trained.err
    assert trained.out.count("validation: perplexity") == 2
    assert str(run) in trained.out.splitlines()[-1]

    evaluated = tellapart("evaluate", run, "--split", "test", "--json")
    result = json.loads(evaluated.out)
    assert (result["images"], result["captions"]) == (6, 30)
    assert 1 < result["perplexity"] < 70
    lines = [json.loads(line) for line in Path(result["predictions"]).read_text().splitlines()]
    assert len(lines) == 6
    assert all(line["caption"] and line["image_id"] and line["candidates"] for line in lines)
    assert "perplexity" in tellapart("evaluate", run, "--split", "val", "--beam", "1").out

    captioned = tellapart("caption", "--apart", "off", scenes / "images", "--captioner", run)
    assert (captioned.code, len(captioned.out.splitlines())) == (0, 60)


def test_json_lines_tell_validations_and_the_run(tellapart: Callable[..., Outcome], tmp_path: Path) -> None:
    out = tellapart("train", "mrnn-shapes", "--out", tmp_path / "run", "--json", *CHANGES).out
    *validations, end = (json.loads(line) for line in out.splitlines())
    assert [line["step"] for line in validations] == [6, 12]
    assert set(validations[0]["validation"]) == {"loss", "perplexity", "accuracy"}
    assert end["run"] == str(tmp_path / "run")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("train", "mrnn-shape"), "did you mean 'mrnn-shapes'"),
        (("train", "mrnn-shapes", "--set", "captioner.droput=1"), "did you mean 'dropout'"),
        (("evaluate", "nowhere"), "nowhere: no run here"),
    ],
)
def test_mistakes_are_told_in_a_line(
    arguments: tuple[str, ...],
    said: str,
    tellapart: Callable[..., Outcome],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = tellapart(*arguments)
    assert outcome.code == 1
    assert said in outcome.err
    assert "Traceback" not in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_a_run_is_not_overwritten(tellapart: Callable[..., Outcome], tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text("mine")
    outcome = tellapart("train", "mrnn-shapes", "--out", tmp_path, *CHANGES)
    assert outcome.code == 1
    assert "--resume" in outcome.err
    assert (tmp_path / "recipe.toml").read_text() == "mine"


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_saves_and_resume_goes_on(sign: signal.Signals, tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = [
        sys.executable,
        "-m",
        "tellapart",
        "train",
        "mrnn-shapes",
        "--out",
        str(run),
        "--json",
        *CHANGES,
    ]
    command += [
        "--set",
        "training.epochs=2000",
        "--set",
        "training.evaluate_every=3",
        "--set",
        "training.patience=0",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    first = json.loads(process.stdout.readline())
    process.send_signal(sign)
    _, complaints = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "saved; go on with the same command and --resume" in complaints
    assert "Traceback" not in complaints

    again = subprocess.Popen(
        [*command, "--resume"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert again.stdout is not None
    assert json.loads(again.stdout.readline())["step"] > first["step"]
    again.kill()
    again.communicate()


def test_a_run_folder_stands_for_its_recipe_and_other_features_are_refused(
    tellapart: Callable[..., Outcome], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert tellapart("train", "mrnn-shapes", "--out", run, *CHANGES).code == 0
    assert tellapart("train", run, "--resume").code == 0
    config = run / "captioner" / "config.json"
    content = json.loads(config.read_text())
    content["encoder"]["identity"] = "patches-of-yesterday"
    config.write_text(json.dumps(content))
    outcome = tellapart("evaluate", run)
    assert outcome.code == 1
    assert "trained on features of patches-of-yesterday" in outcome.err


def test_a_recipe_of_ones_own_means_the_same_files_everywhere(
    tellapart: Callable[..., Outcome], tmp_path: Path, scenes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TELLAPART_DATA", raising=False)
    monkeypatch.chdir(scenes)
    own = ["--set", "data.format=jsonl", "--set", "data.path=captions.jsonl"]
    trained = tellapart("train", "mrnn-shapes", "--out", tmp_path / "run", *CHANGES, *own)
    assert trained.code == 0, trained.err
    monkeypatch.chdir(tmp_path)
    assert tellapart("evaluate", "run", "--split", "test").code == 0


def test_a_captioner_is_measured_on_the_data_of_another_recipe(
    tellapart: Callable[..., Outcome], tmp_path: Path, tiny_captioner: Path
) -> None:
    folder = Path(shutil.copytree(tiny_captioner, tmp_path / "copy"))
    assert "no run here" in tellapart("evaluate", folder).err
    data = ("--recipe", "mrnn-shapes", "--set", "data.scenes=40")
    outcome = tellapart("evaluate", folder, *data, "--split", "val", "--json")
    assert outcome.code == 0, outcome.err
    result = json.loads(outcome.out)
    lines = Path(result["predictions"]).read_text(encoding="utf-8").splitlines()
    assert len(lines) == result["images"] > 0
    assert json.loads((folder / "evaluations" / "val-beam3.json").read_text()) == result
    assert "add --recipe NAME" in tellapart("evaluate", folder, "--set", "data.scenes=40").err
