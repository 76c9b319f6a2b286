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


FILES = ("config.json", "generation_config.json", "model.safetensors", "preprocessor_config.json",
         "tokenizer.json", "tokenizer_config.json")  # fmt: skip


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("kind", ["git", "vit-gpt2"])
def test_a_corrupt_file_is_named(kind: str, file: str, copy: Folder) -> None:
    folder = copy(kind)
    (folder / file).write_bytes((folder / file).read_bytes()[:-20])
    error = refused(kind, folder)
    assert error.problem.startswith(f"the model {folder} cannot be loaded: {file} is damaged")
    assert "copy that file again" in error.hint


def test_settings_that_are_no_object_are_refused(copy: Folder) -> None:
    folder = copy("git")
    (folder / "generation_config.json").write_text("[3]")
    assert "generation_config.json is damaged: it holds no JSON object" in refused("git", folder).problem


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


@pytest.mark.parametrize("found", ["[SEP]", ["3"], 2.0, True])
@pytest.mark.parametrize("key", ["eos_token_id", "decoder_start_token_id", "pad_token_id"])
def test_special_ids_that_are_no_numbers(key: str, found: object, copy: Folder) -> None:
    folder = copy("vit-gpt2")
    change(folder / "generation_config.json", {key: found})
    assert (
        f"generation_config.json is damaged: {key} is {found!r}, which is no whole"
        in refused("vit-gpt2", folder).problem
    )


@pytest.mark.parametrize("key", ["bos_token_id", "sep_token_id"])
def test_special_ids_that_are_no_numbers_deep_in_the_settings(key: str, copy: Folder) -> None:
    folder = copy("blip")
    config = json.loads((folder / "config.json").read_text())
    change(folder / "config.json", {"text_config": {**config["text_config"], key: ["[SEP]"]}})
    assert f"'{key}' expected int, got list" in refused("blip", folder).problem


def test_of_several_ends_the_tokenizers_own_counts(copy: Folder) -> None:
    folder = copy("vit-gpt2")
    own = json.loads((folder / "generation_config.json").read_text())["eos_token_id"]
    change(folder / "generation_config.json", {"eos_token_id": [own + 5, own]})
    config = CAPTIONERS.get("vit-gpt2").configure({"checkpoint": str(folder)})
    assert build_captioner("vit-gpt2", config, text=None, traits=TRAITS).text.end == own


def test_an_end_that_is_an_ordinary_piece_is_refused(copy: Folder) -> None:
    folder = copy("git")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["added_tokens"] = [sign for sign in tokenizer["added_tokens"] if sign["content"] != "[SEP]"]
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(
        json.dumps({key: value for key, value in settings.items() if value != "[SEP]"})
    )
    assert (
        "a caption ends with '[SEP]', which to its tokenizer is an ordinary" in refused("git", folder).problem
    )


@pytest.mark.parametrize(("window", "fits"), [(4, False), (4096, True)])
def test_a_window_that_hides_the_picture_is_refused(window: int, fits: bool, copy: Folder) -> None:
    folder = copy("image-text")
    config = json.loads((folder / "config.json").read_text())
    layers = ["sliding_attention"] * config["text_config"]["num_hidden_layers"]
    narrow = {**config["text_config"], "layer_types": layers, "sliding_window": window}
    change(folder / "config.json", {"text_config": narrow})
    grid = load_encoder(f"tower:{folder}").shapes["grid"]
    traits = TRAITS.model_copy(update={"shapes": {**TRAITS.shapes, "grid": grid}})
    if fits:
        build("image-text", folder, traits)
    else:
        assert "attends or counts places" in refused("image-text", folder, traits).problem


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
