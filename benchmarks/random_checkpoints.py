"""Checkpoints of transformers in the sizes that people use, with random weights: there are no others here."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from tellapart.captioners.folder import build_captioner
from tellapart.captioners.parts import CAPTIONERS
from tellapart.extras import import_extra
from tellapart.types import AnyCaptioner
from tellapart.vision.traits import EncoderTraits


def captioner_of(kind: str) -> tuple[AnyCaptioner, Any]:
    """Our captioner of such a checkpoint, and the library's model with the same weights."""
    with tempfile.TemporaryDirectory() as scratch:
        whole = write_checkpoint(kind, Path(scratch))
        config = CAPTIONERS.get(kind).configure({"checkpoint": scratch})
        seeing = sight_of(whole.config)
        grid = ((seeing.image_size // seeing.patch_size) ** 2 + 1, seeing.hidden_size)
        traits = EncoderTraits(name="tower", identity="tower", shapes={"grid": grid})
        return build_captioner(kind, config, text=None, traits=traits).eval(), whole


def write_checkpoint(kind: str, folder: Path) -> Any:
    """Write one of the library's default sizes, the base model's; gives the model back."""
    transformers, tokenizers = (
        import_extra(module, needed_by=kind, extra="transformers")
        for module in ("transformers", "tokenizers")
    )
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()  # it warns of a length penalty without a beam
    torch.manual_seed(1)
    whole, signs, size = KINDS[kind](transformers)
    pieces = {signs.get(place, f"piece{place}"): place for place in range(size)}
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer(tokenizers.models.WordPiece(pieces, unk_token="[UNK]")),
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
    )
    whole.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    side = sight_of(whole.config).image_size
    settings = {"size": {"height": side, "width": side}, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    (folder / "preprocessor_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return whole


def sight_of(config: Any) -> Any:
    """The settings of the part that sees, which vision-encoder-decoders call their encoder."""
    return getattr(config, "vision_config", None) or config.encoder


def _blip(transformers: Any) -> tuple[Any, dict[int, str], int]:
    config = transformers.BlipConfig()
    ids = config.text_config
    whole = transformers.BlipForConditionalGeneration(config)
    # Its beams are then weighed as ours are, by the probability of the whole caption.
    whole.text_decoder.generation_config.update(eos_token_id=None, length_penalty=0.0)
    signs = {ids.pad_token_id: "[PAD]", 100: "[UNK]", 101: "[CLS]", ids.sep_token_id: "[SEP]"}
    return whole, signs, ids.bos_token_id  # the start sign stands behind the tokenizer's own pieces


def _git(transformers: Any) -> tuple[Any, dict[int, str], int]:
    config = transformers.GitConfig()
    signs = {config.pad_token_id: "[PAD]", 100: "[UNK]", 101: "[CLS]", 102: "[SEP]"}
    return transformers.GitForCausalLM(config), signs, config.vocab_size


def _vit_gpt2(transformers: Any) -> tuple[Any, dict[int, str], int]:
    writing = transformers.GPT2Config(add_cross_attention=True, is_decoder=True)
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(
        transformers.ViTConfig(), writing
    )
    config.decoder_start_token_id = config.eos_token_id = config.pad_token_id = writing.eos_token_id
    whole = transformers.VisionEncoderDecoderModel(config)
    whole.generation_config.update(
        decoder_start_token_id=writing.eos_token_id,
        eos_token_id=writing.eos_token_id,
        pad_token_id=writing.eos_token_id,
    )
    signs = {0: "[PAD]", 1: "[UNK]", 2: "[CLS]", writing.eos_token_id: "[SEP]"}
    return whole, signs, writing.vocab_size


KINDS: Mapping[str, Callable[[Any], tuple[Any, dict[int, str], int]]] = {
    "blip": _blip,
    "git": _git,
    "vit-gpt2": _vit_gpt2,
}
