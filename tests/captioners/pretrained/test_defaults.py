"""What a captioner is where nothing is said: whose checkpoint, and how many weights it has."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch

from tellapart.captioners.parts import CAPTIONERS
from tellapart.captioners.settings.pretrained import PretrainedConfig
from tellapart.captioners.size import count_parameters
from tellapart.recipe import load_recipe

transformers: Any = import_module("transformers")


@pytest.mark.parametrize(
    ("recipe", "name", "base", "large"),
    [
        ("blip-finetune", "blip", "Salesforce/blip-image-captioning-base",
         "Salesforce/blip-image-captioning-large"),
        ("git-lora", "git", "microsoft/git-base-coco", "microsoft/git-large-coco"),
    ],
)  # fmt: skip
def test_a_recipe_takes_the_base_or_the_large_one(
    recipe: str, name: str, base: str, large: str, tmp_path: Path
) -> None:
    (tmp_path / "flickr8k" / "images").mkdir(parents=True)
    (tmp_path / "flickr8k" / "captions.txt").touch()
    for changes, checkpoint in (([], base), (["captioner.preset=large"], large)):
        kind, config = load_recipe(recipe, changes=[*changes, f"data.root={tmp_path}"]).part("captioner")
        assert kind == name
        assert isinstance(config, PretrainedConfig)
        assert config.checkpoint == checkpoint


def blip() -> Any:
    return transformers.BlipForConditionalGeneration(transformers.BlipConfig())


def git() -> Any:
    return transformers.GitForCausalLM(transformers.GitConfig())


def vit_gpt2() -> Any:
    both = transformers.ViTConfig(), transformers.GPT2Config(add_cross_attention=True)
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(*both)
    return transformers.VisionEncoderDecoderModel(config)


def blip2() -> Any:
    """With OPT of 2.7 billion weights (Zhang et al. 2022, Table 1), its embeddings filled up to 50,304."""
    text = {
        "model_type": "opt", "hidden_size": 2560, "word_embed_proj_dim": 2560, "ffn_dim": 10240,
        "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 50304,
    }  # fmt: skip
    return transformers.Blip2ForConditionalGeneration(transformers.Blip2Config(text_config=text))


def image_text() -> Any:
    """SmolVLM-256M: SmolLM2-135M with places for pictures among its words, and SigLIP's base tower."""
    text = {
        "model_type": "llama", "hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30,
        "num_attention_heads": 9, "num_key_value_heads": 3, "vocab_size": 49280,
        "tie_word_embeddings": False,
    }  # fmt: skip
    seeing = {
        "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12,
        "image_size": 512, "patch_size": 16,
    }  # fmt: skip
    config = transformers.Idefics3Config(text_config=text, vision_config=seeing, scale_factor=4)
    return transformers.Idefics3ForConditionalGeneration(config)


@pytest.mark.parametrize(
    ("name", "make"),
    [("blip", blip), ("git", git), ("vit-gpt2", vit_gpt2), ("blip2", blip2), ("image-text", image_text)],
)
def test_the_weights_that_are_told_are_those_of_its_architecture(name: str, make: Any) -> None:
    with torch.device("meta"):
        whole = make()
    assert count_parameters(CAPTIONERS.get(name)) == sum(weight.numel() for weight in whole.parameters())


def test_the_weights_of_a_prefix_before_smollm2_add_up() -> None:
    language_model = 49_152 * 576 + 30 * (576 * (576 + 2 * 192 + 576) + 3 * 576 * 1536 + 2 * 576) + 576
    hidden = 10 * 576 // 2
    mapping = 1280 * hidden + hidden + hidden * 10 * 576 + 10 * 576
    adapters = 30 * 8 * ((576 + 576) + (576 + 192))  # of rank 8, on queries and values
    assert count_parameters(CAPTIONERS.get("prefix")) == language_model + mapping + adapters
