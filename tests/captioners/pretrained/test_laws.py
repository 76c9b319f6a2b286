"""What holds for every captioner holds for those made from checkpoints, however they are trained."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from tellapart.testing import LAWS, Subject, check_law, prepare_built

# Llama computes its norms in single precision whatever its weights are.
TOLERANCE = {"image-text": 1e-5, "smolvlm": 1e-5}
WAYS = [
    ("blip", "decoder", ""),
    ("blip", "lora", "a picture of"),
    ("blip", "all", ""),
    ("git", "decoder", "a picture of"),
    ("git", "lora", ""),
    ("git", "all", ""),
    ("vit-gpt2", "decoder", ""),
    ("vit-gpt2", "lora", "a picture of"),
    ("vit-gpt2", "all", ""),
    ("blip2", "decoder", "a picture of"),
    ("blip2", "lora", ""),
    ("blip2", "all", ""),
    ("image-text", "decoder", "describe the image"),
    ("image-text", "lora", ""),
    ("image-text", "all", ""),
    ("smolvlm", "decoder", ""),
    ("smolvlm", "all", "describe the image"),
]


@pytest.fixture(scope="module")
def subject(tiny: Callable[..., Any]) -> Callable[..., Subject]:
    @cache
    def make(kind: str, train: str, prompt: str) -> Subject:
        made = tiny(kind, train, prompt)
        return prepare_built(
            made.captioner, made.vision, settings=made.settings, tolerance=TOLERANCE.get(kind, 1e-9)
        )

    return make


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("kind", "train", "prompt"), WAYS)
def test_law(kind: str, train: str, prompt: str, law: str, subject: Callable[..., Subject]) -> None:
    check_law(law, subject(kind, train, prompt))
