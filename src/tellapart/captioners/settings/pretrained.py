"""Captioners of transformers, with their own vision tower and tokenizer: settings and names."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tellapart.captioners.settings.kinds import CaptionerPart, LoraSettings

_CHECKPOINT = "a folder that save_pretrained() wrote, or a hub name"


class PretrainedConfig(LoraSettings):
    """Which checkpoint, how it is prompted, and what of it is trained."""

    checkpoint: str = Field(min_length=1, description=_CHECKPOINT)
    prompt: str = Field("", description="what a caption continues; empty: as the checkpoint does by itself")
    train: Literal["decoder", "lora", "all"] = Field(
        "decoder",
        description="the text decoder; low-rank adapters in its attention (peft); or the vision tower too",
    )


class BlipConfig(PretrainedConfig):
    """BLIP's base model, fine-tuned to caption COCO."""

    checkpoint: str = Field("Salesforce/blip-image-captioning-base", min_length=1, description=_CHECKPOINT)


class GitConfig(PretrainedConfig):
    """GIT's base model, fine-tuned to caption COCO."""

    checkpoint: str = Field("microsoft/git-base-coco", min_length=1, description=_CHECKPOINT)


class VitGpt2Config(PretrainedConfig):
    """A vision-encoder-decoder of ViT and GPT-2."""

    checkpoint: str = Field("nlpconnect/vit-gpt2-image-captioning", min_length=1, description=_CHECKPOINT)


class Blip2Config(PretrainedConfig):
    """BLIP-2 with the decoder-only language model OPT."""

    checkpoint: str = Field("Salesforce/blip2-opt-2.7b", min_length=1, description=_CHECKPOINT)


class ImageTextConfig(PretrainedConfig):
    """Any image-text-to-text model, asked for a caption."""

    checkpoint: str = Field("HuggingFaceTB/SmolVLM-256M-Instruct", min_length=1, description=_CHECKPOINT)
    prompt: str = Field("Describe the image in one sentence.", description="what the model is asked for")


def own_encoder(config: PretrainedConfig) -> str:
    """The checkpoint's own tower, whose features are remembered; or only pixels, where it is trained too."""
    return f"{'pixels' if config.train == 'all' else 'tower'}:{config.checkpoint}"


def _part(
    name: str, summary: str, config: type[PretrainedConfig], paper: str, weights: int, large: str = ""
) -> CaptionerPart:
    return CaptionerPart(
        name=name,
        summary=summary,
        config=config,
        build=f"tellapart.captioners.pretrained.build:build_{name.replace('-', '_')}",
        paper=paper,
        presets={"large": {"checkpoint": large}} if large else {},
        own_text=True,
        folders=("checkpoint",),
        own_encoder=own_encoder,
        checkpoint_weights=weights,
    )


PARTS: tuple[CaptionerPart, ...] = (
    _part(
        "blip",
        "pretrained BLIP: a BERT that cross-attends to a vision transformer",
        BlipConfig,
        "Li et al. 2022, BLIP, section 3.1: the image-grounded text decoder",
        weights=223_971_644,
        large="Salesforce/blip-image-captioning-large",
    ),
    _part(
        "git",
        "pretrained GIT: a decoder whose sequence begins with the image",
        GitConfig,
        "Wang et al. 2022, GIT, Eq. 1",
        weights=176_619_066,
        large="microsoft/git-large-coco",
    ),
    _part(
        "vit-gpt2",
        "pretrained vision-encoder-decoder, such as ViT and GPT-2",
        VitGpt2Config,
        "Dosovitskiy et al. 2021, ViT; Radford et al. 2019, GPT-2; joined by cross-attention",
        weights=239_195_904,
    ),
    _part(
        "blip2",
        "pretrained BLIP-2: queries about the image before a language model",
        Blip2Config,
        "Li et al. 2023, BLIP-2, section 3.3",
        weights=3_744_761_856,
    ),
    _part(
        "image-text",
        "pretrained image-text-to-text model (LLaVA, SmolVLM …) with a prompt",
        ImageTextConfig,
        "Liu et al. 2023, LLaVA, Eq. 3, and its like",
        weights=256_484_928,
    ),
)
