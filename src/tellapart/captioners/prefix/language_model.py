"""Causal language models of transformers, ready to continue a prefix: loaded, checked, with adapters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from tellapart.captioners.adapters import MARK, add_adapters
from tellapart.captioners.settings.prefix import BYTES, SMOLLM2, PrefixConfig
from tellapart.captioners.tokenizer_text import TokenizerText, find_signs
from tellapart.errors import TellapartError
from tellapart.extras import import_extra
from tellapart.foreign.smollm2 import find_smollm2
from tellapart.foreign.source import expect_whole, find_source, loading

_HINT = "name a folder that holds a causal language model, or a hub name, which needs the network"
_FILES = (("config.json",), ("tokenizer.json",))
_UNBOUNDED = 1 << 20  # tokens, of models that do not say how many they read


@dataclass(frozen=True, slots=True, eq=False)
class LanguageModel:
    """A network that continues vectors with tokens, and the text of those tokens."""

    network: Any
    text: TokenizerText
    name: str

    @property
    def width(self) -> int:
        """Of the vectors it reads."""
        return int(self.network.get_input_embeddings().embedding_dim)

    @property
    def window(self) -> int:
        """How many vectors and tokens it reads at the most."""
        return int(getattr(self.network.config, "max_position_embeddings", None) or _UNBOUNDED)


def load_language_model(name: str) -> LanguageModel:
    """A language model by its name in settings."""
    transformers = import_extra("transformers", needed_by="this captioner", extra="transformers")
    with loading(transformers, name, hint=_HINT):
        if name == BYTES:
            network, tokenizer = _untrained(transformers)
        else:
            network, tokenizer = _load(transformers, name)
        signs = find_signs(tokenizer, network.config, model=name)
        size = int(network.get_output_embeddings().weight.shape[0])
        text = TokenizerText.of(tokenizer, signs, size=size, model=name)
        _try_out(transformers, network, name)
    return LanguageModel(network, text, name)


def _load(transformers: Any, name: str) -> tuple[Any, Any]:
    if name == SMOLLM2:
        source = find_smollm2(transformers, needed_by="this captioner", watch=lambda *progress: None)
    else:
        source = find_source(name, hint=_HINT, files=_FILES)
    local = source.local_files_only
    network, found = transformers.AutoModelForCausalLM.from_pretrained(
        source.model, local_files_only=local, dtype=torch.float32, output_loading_info=True
    )
    expect_whole(found, name)
    tokenizer = transformers.AutoTokenizer.from_pretrained(source.model, local_files_only=local)
    return network, tokenizer


def _untrained(transformers: Any) -> tuple[Any, Any]:
    """A tiny Llama over bytes, the same each time."""
    tokenizers = import_extra("tokenizers", needed_by="this captioner", extra="transformers")
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    start, end = "<start>", "<end>"
    vocabulary = {piece: number for number, piece in enumerate([start, end, *letters])}
    pieces = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    pieces.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    pieces.decoder = tokenizers.decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=pieces, bos_token=start, eos_token=end)
    config = transformers.LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=512,
        bos_token_id=vocabulary[start],
        eos_token_id=vocabulary[end],
        initializer_range=0.3,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return transformers.LlamaForCausalLM(config).eval(), tokenizer


def _try_out(transformers: Any, network: Any, name: str) -> None:
    """An error where a model does not remember what it read as keys and values, as state-space models do."""
    cache = transformers.DynamicCache()
    vectors = torch.zeros(1, 2, int(network.get_input_embeddings().embedding_dim))
    with torch.no_grad():
        network.base_model(inputs_embeds=vectors, past_key_values=cache, use_cache=True)
    if not cache.layers or any(getattr(layer.keys, "ndim", 0) != 4 for layer in cache.layers):
        raise TellapartError(
            f"the language model {name} has no keys and values to go on from",
            hint="name a Transformer that writes from left to right, such as GPT-2 or Llama",
        )


def choose_trained(network: Any, config: PrefixConfig, *, name: str) -> None:
    """Let the settings' share of the weights train, and no other."""
    network.requires_grad_(config.train == "all")
    if config.train == "lora":
        # For the matrices that peft names for this kind of model; of a kind unknown to it, for all.
        peft = import_extra("peft", needed_by="train = 'lora'", extra="pretrained")
        known = peft.utils.TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING
        targets = known.get(network.config.model_type, "all-linear")
        hint = 'set captioner.train to "mapping" or "all"'
        add_adapters(network, config, targets=targets, model=f"the language model {name}", hint=hint)
        for weight_name, weight in network.named_parameters():
            weight.requires_grad_(MARK in weight_name)
