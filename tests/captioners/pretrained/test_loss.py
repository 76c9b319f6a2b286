"""Maximum likelihood on our logits is the loss that the checkpoint's own model computes."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
import torch
from torch import Tensor

from tellapart.objectives.compose import token_objective
from tellapart.objectives.tokens import mle
from tellapart.types import Batch, Context

transformers: Any = import_module("transformers")

CAPTIONS = ("a red dog", "two men ride a horse on a beach", "the cat sits", "a ball")
IGNORED = -100


def batch(text: Any) -> tuple[Tensor, Tensor]:
    """Tokens, padded, and what is true for words and end."""
    rows = [text.encode(caption) for caption in CAPTIONS]
    longest = max(map(len, rows))
    tokens = torch.tensor([row + [text.pad] * (longest - len(row)) for row in rows])
    lengths = torch.tensor([len(row) for row in rows])
    return tokens, torch.arange(longest) < lengths.unsqueeze(1)


def ours(made: Any, tokens: Tensor, mask: Tensor) -> Tensor:
    """By the very objective that trains: it shifts the logits and averages."""
    names = tuple(map(str, range(len(tokens))))
    batch = Batch(names, made.vision, tokens.unsqueeze(1), mask.unsqueeze(1))
    objective = token_objective(mle, name="mle")
    return objective(made.captioner, batch, Context(0, torch.Generator())).total


def test_blip(tiny: Callable[..., Any]) -> None:
    made = tiny("blip")
    tokens, mask = batch(made.captioner.text)
    model = transformers.BlipForConditionalGeneration.from_pretrained(made.folder).double().eval()
    labels = tokens.masked_fill(~mask, IGNORED)
    theirs = model(pixel_values=made.pixels, input_ids=tokens, attention_mask=mask.long(), labels=labels).loss
    torch.testing.assert_close(ours(made, tokens, mask), theirs, rtol=1e-9, atol=1e-9)


def test_blip_behind_a_prompt(tiny: Callable[..., Any]) -> None:
    """As SMILE trains it: the prompt is read, and only what follows it counts, the end included."""
    made = tiny("blip", "decoder", "a picture of")
    text = made.captioner.text
    tokens, mask = batch(text)
    prompt = made.captioner.writer.prompt
    assert len(prompt) == 3  # the start sign and two of the prompt's three words
    whole = torch.cat([prompt.expand(len(tokens), -1), tokens], dim=1)
    read = torch.cat([torch.ones(len(tokens), len(prompt), dtype=torch.bool), mask], dim=1)
    counted = read.clone()
    counted[:, : len(prompt) + 1] = False
    model = transformers.BlipForConditionalGeneration.from_pretrained(made.folder).double().eval()
    labels = whole.masked_fill(~counted, IGNORED)
    theirs = model(pixel_values=made.pixels, input_ids=whole, attention_mask=read.long(), labels=labels).loss
    torch.testing.assert_close(ours(made, tokens, mask), theirs, rtol=1e-9, atol=1e-9)


def test_git(tiny: Callable[..., Any]) -> None:
    made = tiny("git")
    tokens, mask = batch(made.captioner.text)
    model = transformers.GitForCausalLM.from_pretrained(made.folder).double().eval()
    labels = tokens.masked_fill(~mask, IGNORED)
    theirs = model(pixel_values=made.pixels, input_ids=tokens, attention_mask=mask.long(), labels=labels).loss
    # The library turns logits into single precision before the loss.
    torch.testing.assert_close(ours(made, tokens, mask), theirs.double(), rtol=1e-6, atol=1e-6)


def test_vision_encoder_decoder(tiny: Callable[..., Any]) -> None:
    made = tiny("vit-gpt2")
    tokens, mask = batch(made.captioner.text)
    model = transformers.VisionEncoderDecoderModel.from_pretrained(made.folder).double().eval()
    labels = tokens[:, 1:].masked_fill(~mask[:, 1:], IGNORED)  # it puts the start sign before them itself
    theirs = model(pixel_values=made.pixels, labels=labels).loss
    torch.testing.assert_close(ours(made, tokens, mask), theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["blip", "vit-gpt2"])
def test_what_is_attended_to_is_what_the_library_attends_to(kind: str, tiny: Callable[..., Any]) -> None:
    made = tiny(kind)
    tokens, _ = batch(made.captioner.text)
    ours = made.captioner.predict(made.vision, tokens.unsqueeze(1))
    if kind == "blip":
        model = transformers.BlipForConditionalGeneration.from_pretrained(made.folder).double().eval()
        theirs = model.text_decoder(
            tokens, encoder_hidden_states=made.vision.grid, output_attentions=True, output_hidden_states=True
        )
        hidden, attention = theirs.hidden_states, theirs.cross_attentions
    else:
        model = transformers.VisionEncoderDecoderModel.from_pretrained(
            made.folder, attn_implementation="eager"
        )
        theirs = model.double().eval()(
            pixel_values=made.pixels,
            decoder_input_ids=tokens,
            output_attentions=True,
            output_hidden_states=True,
        )
        hidden, attention = theirs.decoder_hidden_states, theirs.cross_attentions
    assert len(ours.attention) == len(ours.hidden) == 2
    for layer in range(2):
        # A tower that is told to show its own attention has a softmax of single precision.
        torch.testing.assert_close(ours.attention[layer].squeeze(1), attention[layer], rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(ours.hidden[layer].squeeze(1), hidden[layer + 1], rtol=1e-5, atol=1e-5)
