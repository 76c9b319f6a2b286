"""From a checkpoint's files to a captioner: one builder a kind of checkpoint.

A caption continues the prompt: the prompt's last token is the caption's start sign, and what stands before
that is read once an image.
"""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from typing import Any

import torch
from PIL import Image

from tellapart.captioners.pretrained.blip_writer import BlipWriter
from tellapart.captioners.pretrained.captioner import PretrainedCaptioner
from tellapart.captioners.pretrained.prompts import (
    chat_prompt,
    choose_signs,
    expect_start,
    image_token,
    own_id,
    read_tokenizer,
    words_of,
)
from tellapart.captioners.pretrained.training import prepare_training
from tellapart.captioners.pretrained.writers import GitWriter, LibraryWriter, Writer
from tellapart.captioners.settings.pretrained import PretrainedConfig
from tellapart.captioners.tokenizer_text import TokenizerText
from tellapart.errors import TellapartError
from tellapart.types import Vision
from tellapart.vision.checkpoints import LOADERS, Checkpoint, read_checkpoint, read_config
from tellapart.vision.tower_encoder import drop_sight, find_pixels, look_at_nothing, take_tower
from tellapart.vision.traits import EncoderTraits

CAPTIONERS = {"blip": "blip", "git": "git", "vision-encoder-decoder": "vit-gpt2", "blip-2": "blip2"}
"""The captioner for each kind of checkpoint; `image-text` for all others."""

SHORTEST = 3  # tokens: start sign, one word, and the place that tells what follows


@dataclass(frozen=True, slots=True)
class Made:
    """What was made of a checkpoint."""

    checkpoint: Checkpoint
    writer: Writer
    text: TokenizerText
    width: int  # of the vectors that its tower gives


def build_blip(config: PretrainedConfig, *, traits: EncoderTraits) -> PretrainedCaptioner:
    """BLIP. The ids of its text config count: bos begins a caption, sep closes it."""
    checkpoint = _read(config, "blip")
    ids = checkpoint.config.text_config
    tokenizer = read_tokenizer(checkpoint)
    prompt = [expect_start(checkpoint, own_id("bos_token_id", ids)), *words_of(tokenizer, config.prompt)]
    signs = choose_signs(
        checkpoint,
        tokenizer,
        start=prompt[-1],
        end=own_id("sep_token_id", ids),
        pad=own_id("pad_token_id", ids),
    )
    text = TokenizerText.of(tokenizer, signs, size=ids.vocab_size, model=checkpoint.name)
    writer = BlipWriter(checkpoint.model.text_decoder, prompt=tuple(prompt[:-1]), crosses=True)
    return _assemble(config, Made(checkpoint, writer, text, ids.encoder_hidden_size), traits)


def build_git(config: PretrainedConfig, *, traits: EncoderTraits) -> PretrainedCaptioner:
    """GIT: the image, the start sign, the prompt, the caption."""
    checkpoint = _read(config, "git")
    whole = checkpoint.model
    prompt, text = _continue(checkpoint, config, whole.generation_config, whole.config)
    writer = GitWriter(whole, prompt=prompt, places=_places(checkpoint, config, traits))
    return _assemble(config, Made(checkpoint, writer, text, whole.config.vision_config.hidden_size), traits)


def build_vit_gpt2(config: PretrainedConfig, *, traits: EncoderTraits) -> PretrainedCaptioner:
    """A vision-encoder-decoder whose decoder takes positions, as GPT-2 and BERT do."""
    checkpoint = _read(config, "vision-encoder-decoder")
    whole = checkpoint.model
    if "position_ids" not in signature(type(whole.decoder).forward).parameters:
        raise TellapartError(
            f"the decoder of {checkpoint.name}, {type(whole.decoder).__name__}, counts positions by itself",
            hint="take a checkpoint whose decoder is GPT-2 or BERT",
        )
    settings = (whole.generation_config, whole.config, whole.config.decoder)
    prompt, text = _continue(checkpoint, config, *settings, start="decoder_start_token_id")
    project = getattr(whole, "enc_to_dec_proj", None)
    writer = LibraryWriter(whole.decoder, prompt=prompt, crosses=True, project=project)
    return _assemble(config, Made(checkpoint, writer, text, whole.config.encoder.hidden_size), traits)


def build_blip2(config: PretrainedConfig, *, traits: EncoderTraits) -> PretrainedCaptioner:
    """BLIP-2 with a decoder-only language model: the queries, the start sign, the prompt, the caption."""
    checkpoint = _read(config, "blip-2")
    ids = checkpoint.config.text_config
    if not checkpoint.config.use_decoder_only_language_model:
        raise TellapartError(
            f"the language model of {checkpoint.name} has an encoder of its own ({ids.model_type})",
            hint="take a BLIP-2 with OPT, such as Salesforce/blip2-opt-2.7b",
        )
    network, place = checkpoint.model.language_model, image_token(checkpoint)
    prompt, text = _continue(checkpoint, config, network.generation_config, ids)
    queries = (place,) * _places(checkpoint, config, traits)
    writer = LibraryWriter(network, prompt=queries + prompt, crosses=False, image_token=place)
    return _assemble(config, Made(checkpoint, writer, text, ids.hidden_size), traits)


def build_image_text(config: PretrainedConfig, *, traits: EncoderTraits) -> PretrainedCaptioner:
    """Any model of transformers that answers a question about an image."""
    checkpoint = _read(config, "")
    whole, ids = checkpoint.model, checkpoint.config.get_text_config()
    pixels = find_pixels(checkpoint.name)
    blank = Image.new("RGB", (pixels.width, pixels.height))
    tokens, question = chat_prompt(checkpoint, config.prompt, blank, _places(checkpoint, config, traits))
    _expect_plain_attention(checkpoint, ids, len(tokens))
    tokenizer = read_tokenizer(checkpoint)
    signs = choose_signs(
        checkpoint,
        tokenizer,
        start=tokens[-1],
        end=own_id("eos_token_id", whole.generation_config, ids),
        pad=own_id("pad_token_id", whole.generation_config, tokenizer, ids),
    )
    glued = False if question[-1:].isspace() else None
    text = TokenizerText.of(tokenizer, signs, size=ids.vocab_size, model=checkpoint.name, leading_space=glued)
    if config.train != "all":
        drop_sight(checkpoint)
    place = image_token(checkpoint)
    writer = LibraryWriter(whole, prompt=tuple(tokens[:-1]), crosses=False, image_token=place)
    return _assemble(config, Made(checkpoint, writer, text, ids.hidden_size), traits)


def _read(config: PretrainedConfig, kind: str) -> Checkpoint:
    """The checkpoint, if it is of that kind; no weights are read of any other."""
    _, _, found = read_config(config.checkpoint)
    if found.model_type != kind and (kind or found.model_type in LOADERS):
        raise TellapartError(
            f"the checkpoint {config.checkpoint} is of kind {found.model_type!r}, not of this captioner's",
            hint=f"it belongs to the captioner {CAPTIONERS.get(found.model_type, 'image-text')!r}",
        )
    return read_checkpoint(config.checkpoint)


def _continue(
    checkpoint: Checkpoint, config: PretrainedConfig, *settings: Any, start: str = "bos_token_id"
) -> tuple[tuple[int, ...], TokenizerText]:
    """Start sign and prompt; each id from the first of the settings that has it, sizes from the last."""
    tokenizer = read_tokenizer(checkpoint)
    words = words_of(tokenizer, config.prompt)
    prompt = [expect_start(checkpoint, own_id(start, *settings)), *words]
    signs = choose_signs(
        checkpoint,
        tokenizer,
        start=prompt[-1],
        end=own_id("eos_token_id", *settings),
        pad=own_id("pad_token_id", *settings),
    )
    text = TokenizerText.of(
        tokenizer,
        signs,
        size=settings[-1].vocab_size,
        model=checkpoint.name,
        leading_space=None if words else False,  # behind a special sign a caption begins without a space
    )
    return tuple(prompt[:-1]), text


def _places(checkpoint: Checkpoint, config: PretrainedConfig, traits: EncoderTraits) -> int:
    """How many vectors the tower gives of a picture."""
    if config.train != "all":
        return traits.grid()[0]
    pixels = find_pixels(checkpoint.name)
    with torch.no_grad():
        return look_at_nothing(take_tower(checkpoint), pixels, checkpoint.name).size(1)


def _expect_plain_attention(checkpoint: Checkpoint, ids: Any, prompt: int) -> None:
    """A window that never bites is as good as none; other kinds of attention cannot be shared by captions."""
    kinds = set(getattr(ids, "layer_types", None) or ["full_attention"])
    narrow = "sliding_attention" in kinds and (getattr(ids, "sliding_window", None) or 0) < 2 * prompt
    if narrow or kinds - {"full_attention", "sliding_attention"} or "mrope" in str(ids.to_dict()):
        raise TellapartError(
            f"the checkpoint {checkpoint.name} attends or counts places as captions cannot share",
            hint="take a model such as LLaVA or SmolVLM",
        )


def _assemble(config: PretrainedConfig, made: Made, traits: EncoderTraits) -> PretrainedCaptioner:
    checkpoint, width, sides, tower = made.checkpoint, made.width, (0, 0), None
    if config.train == "all":
        pixels = find_pixels(checkpoint.name)
        sides, width = (pixels.height, pixels.width), pixels.height * pixels.width
        tower = take_tower(checkpoint)
    places, found = traits.grid()
    if found != width:
        raise TellapartError(
            f"the encoder {traits.name} gives vectors of {found} numbers, "
            f"but the captioner made from {checkpoint.name} looks at {width}",
            hint="leave encoder.name out: this captioner brings its own",
        )
    captioner = PretrainedCaptioner(
        made.writer, text=made.text, grid=(places, found), tower=tower, sides=sides
    )
    if captioner.longest is not None and captioner.longest < SHORTEST:
        raise TellapartError(
            f"captioner.prompt leaves {max(0, captioner.longest)} tokens for a caption in {checkpoint.name}",
            hint="shorten the prompt",
        )
    blank = Vision(torch.zeros(1, places, found), torch.zeros(1, 0), torch.zeros(1, 0))
    prepare_training(captioner, config, checkpoint, blank)
    return captioner
