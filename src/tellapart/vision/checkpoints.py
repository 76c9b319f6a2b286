"""Checkpoints of transformers that write captions: read quietly and safely, or refused in one line.

Nothing of a checkpoint is run but what transformers itself brings: weights are read as numbers, never as
programs, and a checkpoint that wants its own code is refused by the library.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from tellapart.errors import TellapartError
from tellapart.extras import import_extra
from tellapart.foreign.source import Source, loading
from tellapart.vision.transformers_encoder import find_seeing

LOADERS: Mapping[str, str] = {
    "blip": "BlipForConditionalGeneration",
    "git": "GitForCausalLM",
    "vision-encoder-decoder": "VisionEncoderDecoderModel",
    "blip-2": "Blip2ForConditionalGeneration",
}
"""What reads a checkpoint of each kind; all others are image-text models."""
OTHERS = "AutoModelForImageTextToText"


@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """A captioning model of transformers as its files describe it, in single precision."""

    name: str  # as the user called it
    library: ModuleType  # transformers
    source: Source
    kind: str  # the model_type of its config.json
    model: Any
    missing: Mapping[int, str]  # weights that the file does not hold, by identity

    @property
    def config(self) -> Any:
        """Its config.json."""
        return self.model.config

    def expect_whole(self, result: Tensor) -> None:
        """An error where a result depends on weights that the file lacks: those are only random numbers."""
        absent = [self.missing[key] for key in reached(result) if key in self.missing]
        if absent:
            raise TellapartError(
                f"the checkpoint {self.name} lacks {len(absent)} weights, such as {min(absent)}",
                hint="the file is incomplete, or its config.json names another architecture",
            )


def read_config(name: str) -> tuple[ModuleType, Source, Any]:
    """The library, where the checkpoint lies, and its config.json."""
    library = import_extra("transformers", needed_by="this captioner", extra="transformers")
    source = find_seeing(name)
    with reading(library, name):
        config = library.AutoConfig.from_pretrained(
            source.model, local_files_only=source.local_files_only, trust_remote_code=False
        )
    return library, source, config


def read_checkpoint(name: str) -> Checkpoint:
    """A whole captioning model, from a folder (never touching the network) or from the hub."""
    library, source, config = read_config(name)
    kind: str = config.model_type
    loader = LOADERS.get(kind, OTHERS)
    if kind not in LOADERS and type(config) not in library.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING:
        raise TellapartError(
            f"the checkpoint {name} is of kind {kind!r}, which writes no captions",
            hint=f"name one of {', '.join(LOADERS)}, or an image-text-to-text model such as LLaVA or SmolVLM",
        )
    with reading(library, name):
        model, loading = getattr(library, loader).from_pretrained(
            source.model,
            config=config,
            local_files_only=source.local_files_only,
            trust_remote_code=False,
            weights_only=True,
            dtype=torch.float32,
            output_loading_info=True,
            # What its decoder attends to is asked of it, and only plain attention tells.
            attn_implementation={"decoder": "eager"} if kind == "vision-encoder-decoder" else None,
        )
    parameters = dict(model.named_parameters(remove_duplicate=False))
    missing = {id(parameters[key]): key for key in loading["missing_keys"] if key in parameters}
    return Checkpoint(name, library, source, kind, model, missing)


def reading(transformers: Any, name: str) -> AbstractContextManager[None]:
    """Quietly; whatever the library raises becomes one line."""
    hint = "name a folder with a whole checkpoint, or a hub name, whose first use needs the network"
    return loading(transformers, name, hint=hint)


def reached(result: Tensor) -> set[int]:
    """Identities of the parameters that a result was computed from, read off its history."""
    found: set[int] = set()
    seen: set[Any] = set()
    waiting = [result.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.add(id(node.variable))
        waiting.extend(following for following, _ in node.next_functions)
    return found
