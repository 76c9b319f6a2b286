"""CLIP and SigLIP checkpoints of transformers, read in one way by all that measure or search with them.

Pictures are prepared as the checkpoint's preprocessor_config.json says, texts by its own tokenizer, cut at
the length that the model was made for. CLIP reads as many tokens as there are. SigLIP was trained on lower
case, always filled up to its full length, what fills it up read like the rest: so it is used here, whatever
its tokenizer would do by itself. All in single precision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from tellapart.arrays import Float, Float32
from tellapart.errors import TellapartError
from tellapart.extras import import_extra
from tellapart.foreign.clip_pixels import ClipPixels, PatchPixels, read_pixels
from tellapart.foreign.source import Source, expect_whole, find_source, loading


@dataclass(frozen=True, slots=True)
class Family:
    """Checkpoints that are used alike."""

    name: str
    loaders: Mapping[str, str]  # the class of transformers that reads each model_type


CLIP = Family("CLIP", {"clip": "CLIPModel"})
SIGLIP = Family("SigLIP", {"siglip": "SiglipModel", "siglip2": "Siglip2Model"})

_OTHER_FILES = (
    ("preprocessor_config.json", "processor_config.json"),
    # Without any of them the library would make up a tokenizer that knows no word, and not say so.
    ("tokenizer.json", "vocab.json", "spiece.model"),
)


@dataclass(frozen=True, slots=True, eq=False)
class ClipModel:
    """A checkpoint with what stands before it."""

    source: Source
    kind: str  # the model_type of its config.json
    network: Any = field(repr=False)
    tokenizer: Any = field(repr=False)
    pixels: ClipPixels | PatchPixels
    longest: int  # tokens of a text, those of its beginning and end among them
    width: int  # numbers of a vector

    def see(self, pixels: Float32[Tensor, "b 3 h w"]) -> Float[Tensor, "b d"]:
        """Vectors of prepared pictures, as long as the model makes them."""
        with torch.inference_mode():
            if isinstance(self.pixels, PatchPixels):
                return self._finite(self._see_patches(pixels, self.pixels.patch))
            return self._finite(self.network.get_image_features(pixel_values=pixels).pooler_output)

    def tokens(self, texts: Sequence[str]) -> tuple[list[list[int]], list[bool]]:
        """The tokens of each text, as many as the model reads, and whether that cut some off."""
        if not texts:
            return [], []
        wanted = list(texts) if self.kind in CLIP.loaders else [text.lower() for text in texts]
        # The tokenizer is asked for all of it first: cutting by itself, it would not say what it cut.
        found: list[list[int]] = self.tokenizer(wanted, verbose=False)["input_ids"]
        too_long = [len(ids) > self.longest for ids in found]
        for number in (number for number, long in enumerate(too_long) if long):
            found[number] = self.tokenizer(wanted[number], truncation=True, max_length=self.longest)[
                "input_ids"
            ]
        return found, too_long

    def read(self, ids: Sequence[list[int]]) -> Float[Tensor, "b d"]:
        """Vectors of texts given as tokens, as long as the model makes them."""
        with torch.inference_mode():
            if self.kind in CLIP.loaders:
                padded = self.tokenizer.pad({"input_ids": list(ids)}, return_tensors="pt")
                # The model pools at the end token, and looks only back: what fills up is never seen.
                read = self.network.get_text_features(
                    input_ids=padded["input_ids"], attention_mask=padded["attention_mask"]
                )
            else:
                padded = self.tokenizer.pad(
                    {"input_ids": list(ids)},
                    padding="max_length",
                    max_length=self.longest,
                    return_tensors="pt",
                )
                read = self.network.get_text_features(input_ids=padded["input_ids"])
            return self._finite(read.pooler_output)

    def _see_patches(self, pixels: Tensor, patch: int) -> Tensor:
        batch, channels, height, width = pixels.shape
        rows, columns = height // patch, width // patch
        cut = pixels.view(batch, channels, rows, patch, columns, patch).permute(0, 2, 4, 3, 5, 1)
        seen = self.network.get_image_features(
            pixel_values=cut.reshape(batch, rows * columns, patch * patch * channels),
            pixel_attention_mask=torch.ones(batch, rows * columns, dtype=torch.int32),
            spatial_shapes=torch.tensor([[rows, columns]]).expand(batch, 2),
        )
        vectors: Tensor = seen.pooler_output
        return vectors

    def _finite(self, vectors: Tensor) -> Tensor:
        if not vectors.isfinite().all():
            raise TellapartError(
                f"the model {self.source.name} gives numbers that are not finite",
                hint="its weights are damaged: copy or download them again",
            )
        return vectors


def cut_note(cut: int, what: str, model: ClipModel) -> list[str]:
    """What a report says of texts that were too long; nothing where none was."""
    if not cut:
        return []
    spoken = f"1 {what} was" if cut == 1 else f"{cut} {what}s were"
    family = next(family for family in (CLIP, SIGLIP) if model.kind in family.loaders)
    return [f"{spoken} cut at the {model.longest} tokens that the {family.name} model reads"]


def read_clip(model: str, family: Family, *, needed_by: str, hint: str) -> ClipModel:
    """A checkpoint of that family, from a folder (never touching the network) or from the hub.

    Args:
        model: the folder or the hub name.
        family: CLIP or SIGLIP.
        needed_by: who is told to need transformers where it is missing.
        hint: what to do where there is no such checkpoint.
    """
    transformers = import_extra("transformers", needed_by=needed_by, extra="transformers")
    source = find_source(model, hint=hint)
    with loading(transformers, model, hint=hint):
        config = transformers.AutoConfig.from_pretrained(
            source.model, local_files_only=source.local_files_only, trust_remote_code=False
        )
        if config.model_type not in family.loaders:
            raise TellapartError(
                f"{source.name} is a model of type {config.model_type}, not {family.name}", hint=hint
            )
        find_source(model, hint=hint, files=_OTHER_FILES)
        return _read(transformers, source, config, family.loaders[config.model_type])


def _read(transformers: ModuleType, source: Source, config: Any, loader: str) -> ClipModel:
    local = source.local_files_only
    settings, _ = transformers.ImageProcessingMixin.get_image_processor_dict(
        source.model, local_files_only=local
    )
    pixels = read_pixels(config.model_type, settings, source.name)
    tokenizer = _read_tokenizer(transformers, source, config.text_config.vocab_size)
    network, found = getattr(transformers, loader).from_pretrained(
        source.model,
        local_files_only=local,
        trust_remote_code=False,
        weights_only=True,
        dtype=torch.float32,
        output_loading_info=True,
    )
    expect_whole(found, source.name)
    return ClipModel(
        source=source,
        kind=config.model_type,
        network=network.eval().requires_grad_(False),
        tokenizer=tokenizer,
        pixels=pixels,
        longest=config.text_config.max_position_embeddings,
        width=config.projection_dim if config.model_type == "clip" else config.text_config.projection_size,
    )


def _read_tokenizer(transformers: ModuleType, source: Source, words: int) -> Any:
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            source.model, local_files_only=source.local_files_only, trust_remote_code=False
        )
    except (ImportError, ValueError) as error:
        if find_spec("sentencepiece") is None and "sentencepiece" in str(error).lower():
            raise TellapartError(
                f"the tokenizer of {source.name} needs sentencepiece, which is not installed",
                hint="pip install 'tellapart[siglip]'",
            ) from error
        raise
    again = "copy the tokenizer's files again from where the checkpoint came from"
    # A file that is missing or another model's is not told by the library: it would read every word alike.
    if not words // 2 < len(tokenizer) <= words:
        problem = (
            f"the tokenizer of {source.name} knows {len(tokenizer):,} pieces of words, the model {words:,}"
        )
        raise TellapartError(problem, hint=again)
    if tokenizer.pad_token_id is None:
        raise TellapartError(f"the tokenizer of {source.name} has no token that fills up", hint=again)
    return tokenizer
