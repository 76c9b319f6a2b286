"""A checkpoint that cannot be used is refused in one clear line, before anything is trained."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tellapart.captioners.folder import build_captioner
from tellapart.captioners.parts import CAPTIONERS
from tellapart.errors import TellapartError
from tellapart.vision.parts import load_encoder
from tellapart.vision.traits import EncoderTraits

TRAITS = EncoderTraits(
    name="tower:x", identity="x", shapes={"grid": (5, 16), "pooled": (16,), "classes": (0,)}
)
Folder = Callable[[str], Path]


def build(name: str, folder: Path | str, traits: EncoderTraits = TRAITS) -> None:
    build_captioner(
        name, CAPTIONERS.get(name).configure({"checkpoint": str(folder)}), text=None, traits=traits
    )


def refused(name: str, folder: Path | str, traits: EncoderTraits = TRAITS) -> TellapartError:
    with pytest.raises(TellapartError) as caught:
        build(name, folder, traits)
    assert "\n" not in caught.value.problem
    assert caught.value.hint
    return caught.value


@pytest.fixture
def copy(tiny_folder: Folder, tmp_path: Path) -> Folder:
    """A checkpoint to spoil."""
    return lambda kind: Path(shutil.copytree(tiny_folder(kind), tmp_path / kind))


def change(file: Path, changes: dict[str, Any]) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "preprocessor_config.json"])
def test_a_missing_file_is_named(file: str, copy: Folder) -> None:
    folder = copy("blip")
    (folder / file).unlink()
    assert file.removesuffix(".safetensors") in refused("blip", folder).problem


def test_a_missing_tokenizer_is_named(copy: Folder) -> None:
    folder = copy("blip")
    for file in ("tokenizer.json", "tokenizer_config.json"):
        (folder / file).unlink()
    assert refused("blip", folder).problem == f"the folder {folder} has no tokenizer.json"


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_corrupt_file_is_refused(file: str, copy: Folder) -> None:
    folder = copy("blip")
    (folder / file).write_bytes((folder / file).read_bytes()[:40])
    assert f"the model {folder} cannot be loaded" in refused("blip", folder).problem


def test_weights_that_are_not_there_are_not_made_up(copy: Folder) -> None:
    from safetensors.torch import load_file, save_file

    folder = copy("git")
    weights = load_file(folder / "model.safetensors")
    del weights["git.encoder.layer.1.output.dense.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    assert (
        "lacks 1 weights, such as git.encoder.layer.1.output.dense.weight" in refused("git", folder).problem
    )
    load_encoder(f"tower:{folder}")  # which does not need it


def test_a_tower_that_is_not_there_is_not_made_up(copy: Folder) -> None:
    from safetensors.torch import load_file, save_file

    folder = copy("git")
    kept = {
        name: weight
        for name, weight in load_file(folder / "model.safetensors").items()
        if "image_encoder" not in name
    }
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(TellapartError, match=r"lacks .* weights, such as git\.image_encoder"):
        load_encoder(f"tower:{folder}")
    build("git", folder)  # which looks through the cached features of that tower


@pytest.mark.parametrize(
    ("name", "kind", "right"),
    [("blip", "git", "git"), ("git", "blip", "blip"), ("image-text", "blip2", "blip2"),
     ("vit-gpt2", "image-text", "image-text"), ("blip2", "vit-gpt2", "vit-gpt2")],
)  # fmt: skip
def test_a_checkpoint_of_another_kind_is_told_its_captioner(
    name: str, kind: str, right: str, tiny_folder: Folder
) -> None:
    error = refused(name, tiny_folder(kind))
    assert "is of kind" in error.problem
    assert error.hint == f"it belongs to the captioner {right!r}"


def test_a_folder_that_is_not_there_and_a_hub_name_without_network(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert refused("blip", tmp_path / "nowhere").problem == f"there is no folder {tmp_path / 'nowhere'}"
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    error = refused("git", "nobody/no-such-model")
    assert "the model nobody/no-such-model cannot be loaded" in error.problem
    assert "needs the network" in error.hint


def test_special_ids_that_the_files_do_not_name(copy: Folder) -> None:
    folder = copy("blip")
    config = json.loads((folder / "config.json").read_text())
    for key, sign in (("bos_token_id", "start"), ("sep_token_id", "end")):
        changed = {**config, "text_config": {**config["text_config"], key: None}}
        (folder / "config.json").write_text(json.dumps(changed))
        error = refused("blip", folder)
        assert f"name no sign for the {sign} of a caption" in error.problem
        assert key in error.hint


def test_special_ids_that_the_network_has_not(copy: Folder) -> None:
    folder = copy("vit-gpt2")
    change(folder / "generation_config.json", {"eos_token_id": 9999})
    assert "the id of its end sign is 9999" in refused("vit-gpt2", folder).problem


def test_a_grid_of_another_width_is_refused(tiny_folder: Folder) -> None:
    other = TRAITS.model_copy(update={"shapes": {"grid": (81, 1280), "pooled": (1280,), "classes": (0,)}})
    error = refused("blip", tiny_folder("blip"), other)
    assert "gives vectors of 1280 numbers" in error.problem
    assert "looks at 16" in error.problem


def test_a_language_model_without_pictures_is_no_captioner(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    (tmp_path / "preprocessor_config.json").write_text("{}")
    assert "which writes no captions" in refused("image-text", tmp_path).problem


def test_loading_is_quiet(tiny_folder: Folder, capfd: pytest.CaptureFixture[str]) -> None:
    from importlib import import_module

    bars: Any = import_module("transformers").utils.logging
    bars.enable_progress_bar()
    try:
        capfd.readouterr()
        build("blip", tiny_folder("blip"))
        assert capfd.readouterr() == ("", "")
        assert bars.is_progress_bar_enabled()
    finally:
        bars.disable_progress_bar()
