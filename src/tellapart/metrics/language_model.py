"""Causal language models: SmolLM2 out of its wheel, or any of transformers from a folder or the hub."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tellapart.errors import TellapartError
from tellapart.extras import import_extra
from tellapart.foreign.smollm2 import find_smollm2
from tellapart.foreign.source import Source, expect_whole, find_source, loading
from tellapart.metrics.material import Watch
from tellapart.metrics.pretrained import identity

SMOLLM2 = "smollm2"
SMOLLM2_OPENING = "<|im_start|>assistant\n"
_UNBOUNDED = 1 << 20  # tokens, of models that do not say how many they read
_HINT = "name a folder that holds a causal language model, or a hub name, which needs the network"


@dataclass(frozen=True, slots=True, eq=False)
class LanguageModel:
    """A network that gives each next token its likelihood."""

    network: Any
    tokenizer: Any
    opening: str  # what every text stands after
    opening_ids: list[int]
    window: int  # tokens it reads at the most
    vocabulary: int
    identity: str

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of each text alone; the name of a special token is text like any other."""
        if not texts:
            return []
        read = self.tokenizer(list(texts), add_special_tokens=False, split_special_tokens=True, verbose=False)
        found: list[list[int]] = read["input_ids"]
        return found


def load_language_model(model: str, watch: Watch) -> LanguageModel:
    """A language model by its name in settings: `smollm2`, a folder, or a name on the hub."""
    transformers = import_extra("transformers", needed_by="perplexity", extra="fluency")
    if model == SMOLLM2:
        source = find_smollm2(transformers, needed_by="perplexity", watch=watch)
        return _load(transformers, source, SMOLLM2_OPENING)
    return _load(transformers, find_source(model, hint=_HINT), None)


def _load(transformers: Any, source: Source, opening: str | None) -> LanguageModel:
    local = source.local_files_only
    with loading(transformers, source.model, hint=_HINT):
        network, found = transformers.AutoModelForCausalLM.from_pretrained(
            source.model, local_files_only=local, dtype=torch.float32, output_loading_info=True
        )
        expect_whole(found, source.name)
        tokenizer = transformers.AutoTokenizer.from_pretrained(source.model, local_files_only=local)
    opening = opening or _first_token(tokenizer, source.name)
    network.eval()
    window = getattr(network.config, "max_position_embeddings", None) or _UNBOUNDED
    return LanguageModel(
        network,
        tokenizer,
        opening,
        tokenizer(opening, add_special_tokens=False)["input_ids"],
        window=int(window),
        vocabulary=int(network.config.vocab_size),
        identity=identity(source, network, {}),
    )


def _first_token(tokenizer: Any, model: str) -> str:
    """What a text begins with: the token for that, else the one between texts."""
    for token in (tokenizer.bos_token, tokenizer.eos_token):
        if token:
            return str(token)
    raise TellapartError(
        f"the tokenizer of {model} has no token for the beginning of a text",
        hint="name a model whose tokenizer_config.json has a bos_token or an eos_token",
    )
