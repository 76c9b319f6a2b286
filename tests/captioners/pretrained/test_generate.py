"""Our search and the library's own `generate` write the same captions, with the same scores.

`generate` keeps finished captions apart and always goes on with as many unfinished ones as its beam is wide;
ours keep their place in the beam. So that it means the same search, it is told of no end, and a processor of
log-probabilities does what our search does: a finished caption goes on by padding at no cost, silent tokens
and an end at the very beginning are forbidden, and the last place is an end. Networks, caches, the choice
among beams and the sums (`length_penalty=0`) are the library's.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
import torch
from torch import Tensor

from tellapart.decoding.search import beam, greedy

transformers: Any = import_module("transformers")

LOADERS = {
    "blip": "BlipForConditionalGeneration",
    "git": "GitForCausalLM",
    "vit-gpt2": "VisionEncoderDecoderModel",
    "blip2": "Blip2ForConditionalGeneration",
    "image-text": "LlavaForConditionalGeneration",
    "smolvlm": "Idefics3ForConditionalGeneration",
}
WORDS = 7


class OurRules(transformers.LogitsProcessor):  # type: ignore[misc]
    """What our search allows, as something that `generate` asks about its scores."""

    def __init__(self, text: Any, before: int) -> None:
        self.text = text
        self.before = before

    def __call__(self, tokens: Tensor, scores: Tensor) -> Tensor:
        written = tokens[:, self.before :]
        allowed = scores.clone()
        allowed[:, list(self.text.silent)] = -torch.inf
        if written.size(1) == 0:
            allowed[:, self.text.end] = -torch.inf
        if written.size(1) == WORDS:
            allowed[:, torch.arange(scores.size(1)) != self.text.end] = -torch.inf
        finished = (written == self.text.end).any(1)
        allowed[finished] = -torch.inf
        allowed[finished, self.text.pad] = 0
        return allowed


def library(made: Any, kind: str) -> Any:
    return getattr(transformers, LOADERS[kind]).from_pretrained(made.folder).double().eval()


def inputs(made: Any, kind: str, model: Any) -> tuple[Any, dict[str, Any], int]:
    """What generates, what it is given, and how many tokens its answer begins with that are no caption."""
    captioner, pictures = made.captioner, len(made.pixels)
    prompt = [*captioner.writer.prompt.tolist(), captioner.text.start]
    tokens = torch.tensor([prompt] * pictures)
    every = torch.ones_like(tokens)
    if kind == "blip":
        shown = model.vision_model(made.pixels).last_hidden_state
        given = {"input_ids": tokens, "attention_mask": every, "encoder_hidden_states": shown}
        return model.text_decoder, given, len(prompt)
    if kind == "vit-gpt2":
        given = {"decoder_input_ids": tokens, "decoder_attention_mask": every, "pixel_values": made.pixels}
        return model, given, len(prompt)
    if kind == "blip2":
        embedded = model.get_input_embeddings()(tokens)
        places = (tokens == model.config.image_token_index).unsqueeze(-1)
        shown = model.get_image_features(pixel_values=made.pixels).pooler_output
        return model.language_model, {"inputs_embeds": embedded.masked_scatter(places, shown)}, 0
    pixels = made.pixels.unsqueeze(1) if kind == "smolvlm" else made.pixels
    return model, {"input_ids": tokens, "attention_mask": every, "pixel_values": pixels}, len(prompt)


def generate(made: Any, kind: str, width: int) -> tuple[Any, int]:
    model = library(made, kind)
    with torch.no_grad():
        writer, given, before = inputs(made, kind, model)
        writer.generation_config.eos_token_id = None
        return writer.generate(
            **given,
            num_beams=width,
            num_return_sequences=width,
            max_new_tokens=WORDS + 1,
            min_new_tokens=None,
            length_penalty=0.0,
            do_sample=False,
            pad_token_id=made.captioner.text.pad,
            logits_processor=[OurRules(made.captioner.text, before)],
            output_scores=True,
            return_dict_in_generate=True,
        ), before


@pytest.mark.parametrize(
    ("kind", "prompt"),
    [
        ("blip", ""),
        ("blip", "a picture of"),
        ("git", ""),
        ("git", "a picture of"),
        ("vit-gpt2", ""),
        ("blip2", "a picture of"),
        ("image-text", "describe the image"),
        ("smolvlm", "describe the image"),
    ],
)
@pytest.mark.parametrize("width", [1, 4])
def test_our_beam_and_generate_find_the_same_captions_with_the_same_scores(
    kind: str, prompt: str, width: int, tiny: Callable[..., Any]
) -> None:
    made = tiny(kind, "decoder", prompt)
    ours = beam(made.captioner, made.vision, width=width, max_words=WORDS)
    theirs, before = generate(made, kind, width)
    sequences = theirs.sequences.view(len(made.pixels), width, -1)[:, :, before:]
    assert sequences.tolist() == ours.tokens.tolist()
    text = made.captioner.text
    sentences = {text.decode(row) for rows in ours.tokens.tolist() for row in rows}
    assert len(sentences) > width, "the pictures make a difference"
    if width > 1:  # without beams the library gives no score
        scores = theirs.sequences_scores.view(len(made.pixels), width)
        torch.testing.assert_close(ours.log_probabilities, scores.double(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "prompt"),
    [("blip", ""), ("blip", "a picture of"), ("git", ""), ("git", "a picture of"), ("vit-gpt2", "")],
)
def test_a_caption_begins_as_the_model_itself_begins_one(
    kind: str, prompt: str, tiny: Callable[..., Any]
) -> None:
    """It is given pictures, and the prompt as its own tokenizer writes it: no sign of ours."""
    made = tiny(kind, "decoder", prompt)
    model = library(made, kind)
    tokenizer = transformers.AutoTokenizer.from_pretrained(made.folder)
    given: dict[str, Any] = {"pixel_values": made.pixels}
    if prompt:  # as the processors of both write it, but that GIT's callers leave out the last sign
        words = tokenizer(prompt, add_special_tokens=False).input_ids
        last = [tokenizer.sep_token_id] if kind == "blip" else []
        whole = torch.tensor([[tokenizer.cls_token_id, *words, *last]] * len(made.pixels))
        given |= {"input_ids": whole, "attention_mask": torch.ones_like(whole)}
    with torch.no_grad():
        found = model.generate(**given, max_new_tokens=1, min_new_tokens=1, do_sample=False)
    begun = [*made.captioner.writer.prompt.tolist(), made.captioner.text.start]
    before = found[:, :-1]
    assert before.tolist() == [begun] * len(made.pixels)


@pytest.mark.parametrize("kind", ["blip", "git", "vit-gpt2"])
def test_scores_of_its_own_search_are_our_probabilities(kind: str, tiny: Callable[..., Any]) -> None:
    """Plain `generate`, its own ending and all: what it says of its captions, we say of them too."""
    made = tiny(kind)
    model, captioner = library(made, kind), made.captioner
    with torch.no_grad():
        writer, given, before = inputs(made, kind, model)
        found = writer.generate(
            **given, num_beams=3, num_return_sequences=3, max_new_tokens=12, length_penalty=0.0,
            do_sample=False, early_stopping=False, eos_token_id=captioner.text.end,
            pad_token_id=captioner.text.pad, output_scores=True, return_dict_in_generate=True,
        )  # fmt: skip
        whole = found.sequences[:, before - 1 :].view(len(made.pixels), 3, -1)
        logits = captioner.predict(made.vision, whole[:, :, :-1]).logits
    words = whole[:, :, 1:]
    ends = (words == captioner.text.end).long()
    written = ends.cumsum(2) - ends == 0
    each = logits.log_softmax(-1).gather(3, words.unsqueeze(3)).squeeze(3).masked_fill(~written, 0)
    scores = found.sequences_scores.view(len(made.pixels), 3).double()
    torch.testing.assert_close(each.sum(2), scores, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ["blip", "git", "vit-gpt2"])
def test_greedy_is_the_plain_generate_of_the_library(kind: str, tiny: Callable[..., Any]) -> None:
    made = tiny(kind)
    model, text = library(made, kind), made.captioner.text
    ours = greedy(made.captioner, made.vision, max_words=WORDS)
    with torch.no_grad():
        writer, given, before = inputs(made, kind, model)
        found = writer.generate(
            **given, do_sample=False, max_new_tokens=WORDS, suppress_tokens=list(text.silent) or None,
            begin_suppress_tokens=[text.end], eos_token_id=text.end, pad_token_id=text.pad,
        )  # fmt: skip
    assert [text.decode(row) for row in found[:, before:].tolist()] == [
        text.decode(row[0]) for row in ours.tokens.tolist()
    ]
