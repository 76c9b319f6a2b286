"""Tiny checkpoints of CLIP and SigLIP with random weights, as a user has them on disk."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

transformers: Any = import_module("transformers")  # its own types are too partial to check against
tokenizers: Any = import_module("tokenizers")

LONGEST = 40  # tokens: a letter each, since there are no merges
START, END = "<|startoftext|>", "<|endoftext|>"
CLIP_PIXELS: dict[str, Any] = {
    "size": {"shortest_edge": 32}, "crop_size": {"height": 32, "width": 32}, "do_center_crop": True,
    "image_mean": [0.48, 0.46, 0.41], "image_std": [0.27, 0.26, 0.28], "resample": 3,
}  # fmt: skip
SIGLIP_PIXELS: dict[str, Any] = {
    "size": {"height": 32, "width": 32}, "image_mean": [0.5] * 3, "image_std": [0.5] * 3, "resample": 2,
}  # fmt: skip
SIGLIP2_PIXELS: dict[str, Any] = {
    "patch_size": 8, "max_num_patches": 16, "image_mean": [0.5] * 3, "image_std": [0.5] * 3, "resample": 2,
}  # fmt: skip
TOWER = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "initializer_range": 0.5,
}
EYES = TOWER | {"image_size": 32, "patch_size": 8}


def save_clip(folder: Path, *, seed: int = 3, preprocessing: object = CLIP_PIXELS) -> Path:
    """CLIP: weights, tokenizer, preprocessing."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    numbers = numbered([*alphabet, *(f"{letter}</w>" for letter in alphabet), START, END])
    text = TOWER | {
        "vocab_size": len(numbers),
        "max_position_embeddings": LONGEST,
        "bos_token_id": numbers[START],
        "eos_token_id": numbers[END],
        "pad_token_id": numbers[END],
    }
    config = transformers.CLIPConfig(text_config=text, vision_config=EYES, projection_dim=8)
    write(folder, transformers.CLIPModel, config, seed=seed, preprocessing=preprocessing)
    (folder / "vocab.json").write_text(json.dumps(numbers))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "CLIPTokenizer"}))
    return folder


def save_siglip(folder: Path, *, seed: int = 3, preprocessing: object = SIGLIP_PIXELS) -> Path:
    """SigLIP; its tokenizer keeps capitals apart, as that of the fixed-size SigLIP 2 does."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    numbers = numbered(["<pad>", "</s>", *alphabet])
    bare = tokenizers.Tokenizer(tokenizers.models.BPE(numbers, []))
    bare.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    bare.post_processor = tokenizers.processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", numbers["</s>"])]
    )
    config = transformers.SiglipConfig(text_config=siglip_text(len(numbers)), vision_config=EYES)
    write(folder, transformers.SiglipModel, config, seed=seed, preprocessing=preprocessing)
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=bare,
        eos_token="</s>",
        pad_token="<pad>",
        padding_side="right",
        model_input_names=["input_ids"],
    ).save_pretrained(folder)
    return folder


def save_siglip2(folder: Path, *, seed: int = 3, preprocessing: object = SIGLIP2_PIXELS) -> Path:
    """SigLIP 2 that keeps the shape of pictures, with its own class of tokenizer."""
    letters = [chr(code) for code in range(33, 127)]
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    numbers = numbered(["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", *bytes_, "▁", *letters])
    tokenizer = transformers.Siglip2Tokenizer(
        vocab=numbers, merges=[], padding_side="right", model_input_names=["input_ids"]
    )
    tokenizer.backend_tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="$A <eos>", special_tokens=[("<eos>", numbers["<eos>"])]
    )
    eyes = {key: value for key, value in EYES.items() if key != "image_size"} | {"num_patches": 16}
    config = transformers.Siglip2Config(text_config=siglip_text(len(numbers)), vision_config=eyes)
    write(folder, transformers.Siglip2Model, config, seed=seed, preprocessing=preprocessing)
    tokenizer.save_pretrained(folder)
    return folder


SAVE = {"clip": save_clip, "siglip": save_siglip, "siglip2": save_siglip2}


def numbered(tokens: Sequence[str]) -> dict[str, int]:
    return {token: number for number, token in enumerate(tokens)}


def siglip_text(words: int) -> Mapping[str, Any]:
    return TOWER | {
        "vocab_size": words,
        "max_position_embeddings": LONGEST,
        "projection_size": 16,
        "bos_token_id": None,
        "eos_token_id": 1,
        "pad_token_id": 0,
    }


def write(folder: Path, model: Any, config: Any, *, seed: int, preprocessing: object) -> None:
    torch.manual_seed(seed)
    network = model(config).eval()
    if model is not transformers.CLIPModel:  # SigLIP draws numbers so small that all texts are alike
        for parameter in network.parameters():
            if parameter.ndim > 1:
                torch.nn.init.normal_(parameter)
    network.save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(preprocessing))


def draw_pictures(folder: Path) -> tuple[Path, ...]:
    """A wide one, a high one, and one with a camera's turn in its EXIF."""
    draw = np.random.default_rng(1)
    found = []
    for number, size in enumerate([(75, 40), (41, 90), (64, 48)]):
        noise = Image.fromarray(draw.integers(0, 256, (5, 7, 3), dtype=np.uint8))
        path = folder / f"{number}.png"
        exif = Image.Exif()
        exif[0x0112] = 6 if number == 2 else 1
        noise.resize(size, Image.Resampling.BICUBIC).save(path, exif=exif)
        found.append(path)
    return tuple(found)


def open_upright(path: Path) -> Image.Image:
    """One of `draw_pictures`, turned as its EXIF says."""
    with Image.open(path) as picture:
        return (picture.transpose(Image.Transpose.ROTATE_270) if path.stem == "2" else picture).convert("RGB")
