"""A BLIP of the base size with random weights: our decoding against transformers' own `generate`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks.captioner_worker import LENGTH, WIDTH, Unending, write
from benchmarks.race import Race
from benchmarks.random_checkpoints import captioner_of
from benchmarks.turns import ENOUGH, in_turns
from tellapart.types import AnyCaptioner, Vision

BATCHES = (1, 8)
AIM = 1.3  # times as fast


def blip_races(rounds: int, batches: Sequence[int] = BATCHES) -> Iterator[Race]:
    """The same weights, beams and lengths; from the tower's features on, and with the tower's time added."""
    captioner, whole = captioner_of("blip")
    config = whole.config.vision_config
    captioner.text = Unending(captioner.text)
    for batch in batches:
        pixels = torch.rand(batch, 3, config.image_size, config.image_size)
        for width in (1, WIDTH):
            yield from race_generate(captioner, whole, pixels, width, rounds)


def race_generate(
    captioner: AnyCaptioner, whole: Any, pixels: Tensor, width: int, rounds: int
) -> Iterator[Race]:
    """Captions of these pictures by a beam of that width."""
    see = torch.no_grad()(partial(whole.vision_model, pixel_values=pixels))
    shown = see().last_hidden_state
    nothing = shown.new_zeros(len(shown), 0)
    ours = partial(write, captioner, Vision(shown, nothing, nothing), width)
    theirs = partial(generate, whole, shown, width)
    same = (ours()[:, 0, :LENGTH] == theirs()[:, 1 : LENGTH + 1]).all(1)
    times = in_turns({"theirs": theirs, "ours": ours, "tower": see}, rounds, enough=ENOUGH)
    for how, tower in (
        ("from the tower's features on", [0.0] * len(times["tower"])),
        ("with its tower", times["tower"]),
    ):
        yield Race(
            f"BLIP of the base size, {len(pixels)} images, beam {width}, {how}",
            [sum(pair) for pair in zip(times["ours"], tower, strict=True)],
            "s",
            against="transformers' generate",
            theirs=[sum(pair) for pair in zip(times["theirs"], tower, strict=True)],
            aim=AIM,
            note=f"{int(same.sum())} captions are the same",
        )


def generate(whole: Any, shown: Tensor, width: int) -> Tensor:
    """As the library's model calls its text decoder, but that no token ends a caption."""
    ids = whole.config.text_config
    tokens: Tensor = whole.text_decoder.generate(
        input_ids=torch.full((len(shown), 1), ids.bos_token_id),
        encoder_hidden_states=shown,
        encoder_attention_mask=torch.ones(shown.shape[:2], dtype=torch.long),
        num_beams=width,
        max_new_tokens=LENGTH + 1,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=ids.pad_token_id,
    )
    assert tokens.shape == (len(shown), LENGTH + 2)
    return tokens
