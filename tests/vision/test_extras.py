"""What is said where an encoder of another library is missing, broken or out of reach."""

from __future__ import annotations

import importlib.util
import json
import socket
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tellapart.errors import TellapartError
from tellapart.extras import import_extra
from tellapart.vision.extras import build_open_clip, build_timm, build_transformers

transformers: Any = import_module("transformers")  # its own types are too partial to check against

SHAPE = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2}
TOWER = {**SHAPE, "num_hidden_layers": 2, "image_size": 32, "patch_size": 8}


def save(model: Any, folder: Path) -> Path:
    model.save_pretrained(folder)
    numbers = {"size": 32, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}
    (folder / "preprocessor_config.json").write_text(json.dumps(numbers))
    return folder


def rewrite(file: Path, changes: Mapping[str, object]) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


@pytest.fixture
def classifier(tmp_path: Path) -> Path:
    config = transformers.ViTConfig(**TOWER, id2label={0: "cat", 1: "dog"}, label2id={"cat": 0, "dog": 1})
    return save(transformers.ViTForImageClassification(config), tmp_path / "classifier")


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every attempt to reach another machine fails at once, and is listed."""
    attempts: list[object] = []

    def refuse(*address: object, **_: object) -> None:
        attempts.append(address)
        raise socket.gaierror(socket.EAI_NONAME, "no network in this test")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(
        "time.sleep", lambda _: None
    )  # the hub's client waits half a minute between its attempts
    return attempts


def test_a_folder_never_touches_the_network(classifier: Path, no_network: list[object]) -> None:
    build_transformers(str(classifier))
    torch.save(load_file(classifier / "model.safetensors"), classifier / "pytorch_model.bin")
    (classifier / "model.safetensors").unlink()
    build_transformers(str(classifier))
    assert no_network == []


def refusal(model: str) -> TellapartError:
    with pytest.raises(TellapartError) as caught:
        build_transformers(model)
    assert "\n" not in caught.value.problem + caught.value.hint
    assert len(caught.value.problem) < 500
    return caught.value


@pytest.mark.usefixtures("no_network")
def test_a_name_that_cannot_be_fetched_is_one_line() -> None:
    error = refusal("nobody/no-such-model")
    assert error.problem.startswith("the encoder 'transformers:nobody/no-such-model' cannot be loaded: ")
    assert "network" in error.hint


def test_what_is_said_of_folders_that_hold_no_checkpoint(tmp_path: Path, classifier: Path) -> None:
    assert refusal(str(tmp_path / "gone")).problem == f"there is no folder {tmp_path / 'gone'}"
    (tmp_path / "empty").mkdir()
    assert refusal(str(tmp_path / "empty")).problem == f"the folder {tmp_path / 'empty'} has no config.json"
    weights = classifier / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:1000])
    assert "cannot be loaded" in refusal(str(classifier)).problem
    weights.unlink()
    assert "cannot be loaded" in refusal(str(classifier)).problem
    weights.write_bytes(whole)
    (classifier / "preprocessor_config.json").write_text("{}")
    assert "does not say how large its pictures are" in refusal(str(classifier)).problem
    (classifier / "preprocessor_config.json").write_text(json.dumps({"size": 32}))
    assert "does not say its image_mean" in refusal(str(classifier)).problem
    (classifier / "preprocessor_config.json").unlink()
    assert "has no preprocessor_config.json" in refusal(str(classifier)).problem
    (classifier / "preprocessor_config.json").write_text(json.dumps({"size": 32}))
    (classifier / "config.json").write_text("{}")
    assert "cannot be loaded" in refusal(str(classifier)).problem


def test_a_model_of_words_is_refused(tmp_path: Path) -> None:
    words = transformers.BertModel(transformers.BertConfig(**SHAPE, num_hidden_layers=1, vocab_size=9))
    assert "has no vision tower (BertModel)" in refusal(str(save(words, tmp_path / "words"))).problem


def test_an_unknown_architecture_is_refused(classifier: Path) -> None:
    rewrite(classifier / "config.json", {"architectures": ["NoSuchModel"]})
    assert "knows no NoSuchModel" in refusal(str(classifier)).problem


def without(folder: Path, part: str) -> Path:
    """The checkpoint after the weights whose names begin so are lost."""
    file = folder / "model.safetensors"
    weights = load_file(file)
    kept = {name: weight for name, weight in weights.items() if not name.startswith(part)}
    assert len(kept) < len(weights)
    save_file(kept, file, {"format": "pt"})
    return folder


def test_a_tower_without_its_weights_is_refused(tmp_path: Path, classifier: Path) -> None:
    text = {**SHAPE, "num_hidden_layers": 1, "vocab_size": 9, "bos_token_id": 1, "eos_token_id": 2}
    config = transformers.CLIPConfig(text_config=text, vision_config=TOWER)
    clip = save(transformers.CLIPModel(config), tmp_path / "clip")
    before = build_transformers(str(clip)).identity
    assert build_transformers(str(without(clip, "text_model.final"))).identity == before
    problem = refusal(str(without(clip, "vision_model.encoder.layers.1.mlp.fc1"))).problem
    assert "lacks 2 weights of its tower, such as vision_model.encoder.layers.1.mlp.fc1.bias" in problem
    assert "such as classifier.bias" in refusal(str(without(classifier, "classifier"))).problem


@pytest.mark.parametrize(
    ("build", "module", "extra"), [(build_timm, "timm", "timm"), (build_open_clip, "open_clip", "open-clip")]
)
def test_a_missing_extra_is_named_with_the_command_that_installs_it(
    build: Any, module: str, extra: str
) -> None:
    if importlib.util.find_spec(module):
        pytest.skip(f"{module} is installed here")
    with pytest.raises(TellapartError) as caught:
        build("resnet18")
    assert caught.value.problem == f"this encoder needs {module}, and there is no module {module!r}"
    assert caught.value.hint == f"pip install 'tellapart[{extra}]'"


def test_a_library_that_breaks_while_it_is_imported_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_library.py").write_text("raise RuntimeError('operator\\ndoes not exist')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(TellapartError) as caught:
        import_extra("broken_library", needed_by="this encoder", extra="timm")
    assert caught.value.problem.endswith("fails to import: operator does not exist")
    assert caught.value.hint == "install versions that belong together: pip install 'tellapart[timm]'"


def test_the_builders_are_imported_without_torch_or_the_libraries() -> None:
    code = "import sys, tellapart.vision.extras; print({'torch', 'transformers', 'timm'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"
