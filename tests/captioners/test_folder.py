"""A captioner's folder: whole or refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from tests.captioners.tiny_folder import write_tiny_captioner

from tellapart.captioners.folder import load_captioner, save_captioner
from tellapart.errors import TellapartError


def cut_weights(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])


def other_words(folder: Path) -> None:
    file = folder / "vocabulary.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    content["words"][0] = "another"
    file.write_text(json.dumps(content), encoding="utf-8")


def other_weights(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    weights["output.weight"] = weights["output.weight"][:-1].contiguous()
    save_file(weights, folder / "model.safetensors")


def set_format(folder: Path, value: object) -> None:
    content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    (folder / "config.json").write_text(json.dumps(content | {"format": value}), encoding="utf-8")


def future_format(folder: Path) -> None:
    set_format(folder, 99)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (cut_weights, "half-written or damaged"),
        (other_words, "not the vocabulary that this captioner was trained with"),
        (other_weights, "not of this captioner"),
        (future_format, "format 99"),
        (lambda folder: set_format(folder, "2"), "not the settings of a captioner"),
        (lambda folder: set_format(folder, True), "not the settings of a captioner"),
        (lambda folder: set_format(folder, 1), "written in format 1, this version reads 2"),
        (lambda folder: (folder / "model.safetensors").unlink(), "model.safetensors"),
        (lambda folder: (folder / "vocabulary.json").unlink(), "vocabulary.json"),
        (lambda folder: (folder / "config.json").unlink(), "config.json"),
        (lambda folder: (folder / "config.json").write_text("{"), "not the settings of a captioner"),
        (lambda folder: (folder / "config.json").write_text("{}"), "not the settings of a captioner"),
        (shutil.rmtree, "no captioner folder here"),
    ],
)
def test_what_is_damaged_is_refused_by_name(
    damage: Callable[[Path], object], said: str, tiny_captioner: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(tiny_captioner, tmp_path / "copy"))
    damage(folder)
    with pytest.raises(TellapartError) as caught:
        load_captioner(folder)
    assert said in caught.value.problem
    assert str(folder) in caught.value.problem
    assert caught.value.hint


def test_saving_replaces_the_whole_folder(tiny_captioner: Path, tmp_path: Path) -> None:
    import torch

    saved = load_captioner(tiny_captioner)
    target = tmp_path / "kept"
    target.mkdir()
    (target / "rubbish").touch()
    save_captioner(target, saved, dtype=torch.float16, card="# Card\n")
    names = sorted(file.name for file in target.iterdir())
    assert names == ["card.md", "config.json", "model.safetensors", "vocabulary.json"]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["kept"]


def test_weights_that_two_layers_share_are_written_once(tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    folder = write_tiny_captioner(tmp_path / "shared", "mrnn-shared")
    written = load_file(folder / "model.safetensors")
    assert "embedding_one.weight" in written
    assert "output.2.weight" not in written
    before = load_captioner(folder).captioner.state_dict()
    assert before["output.2.weight"].equal(before["embedding_one.weight"])
    # Folders of earlier versions hold both.
    save_file({**written, "output.2.weight": written["embedding_one.weight"]}, folder / "model.safetensors")
    after = load_captioner(folder).captioner.state_dict()
    assert all(after[name].equal(before[name]) for name in before)
