"""BLIP reads an image without keys and values while that is cheaper; nobody can tell by what it writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from tellapart.captioners.pretrained.blip_writer import FEW, attend_unprojected
from tellapart.decoding.search import beam, greedy


def cross_attentions(captioner: Any) -> list[Any]:
    return [layer.crossattention.self for layer in captioner.writer.network.bert.encoder.layer]


def head_size(captioner: Any) -> int:
    return int(cross_attentions(captioner)[0].attention_head_size)


@contextmanager
def watch_projections(captioner: Any) -> Iterator[list[torch.Size]]:
    """Images and places of each call of a layer that makes keys or values of images."""
    seen = list[torch.Size]()
    hooks = [
        layer.register_forward_hook(lambda module, given, found: seen.append(given[0].shape[:2]))
        for attention in cross_attentions(captioner)
        for layer in (attention.key, attention.value)
    ]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


@pytest.mark.parametrize("rows", [1, 3])
def test_it_attends_as_the_library_does(rows: int, tiny: Callable[..., Any]) -> None:
    made = tiny("blip")
    generator = torch.Generator().manual_seed(3)
    width = made.captioner.writer.network.config.hidden_size
    states = torch.randn(len(made.vision.grid), rows, width, generator=generator).double()
    for attention in cross_attentions(made.captioner):
        biases = attention.key.bias, attention.value.bias
        before = [bias.clone() for bias in biases]
        with torch.no_grad():
            try:
                for bias in biases:  # a fresh checkpoint has none to speak of
                    bias.copy_(torch.randn(bias.shape, generator=generator))
                expected, _ = attention(states, encoder_hidden_states=made.vision.grid)
                found = attend_unprojected(attention, states, made.vision.grid)
            finally:
                for bias, old in zip(biases, before, strict=True):
                    bias.copy_(old)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_few_and_short_captions_take_no_keys_and_values(tiny: Callable[..., Any]) -> None:
    made = tiny("blip")
    with watch_projections(made.captioner) as seen:
        greedy(made.captioner, made.vision, max_words=head_size(made.captioner) - 1)
    assert seen == []


@pytest.mark.parametrize(("width", "words"), [(FEW + 1, 4), (1, 30)])
def test_many_or_long_ones_take_them_once_an_image(width: int, words: int, tiny: Callable[..., Any]) -> None:
    made = tiny("blip")
    captioner = made.captioner
    with watch_projections(captioner) as seen, never_ending(captioner):
        beam(captioner, made.vision, width=width, max_words=words)
    assert seen == [made.vision.grid.shape[:2]] * 2 * len(cross_attentions(captioner))


@contextmanager
def never_ending(captioner: Any) -> Iterator[None]:
    """Captions as long as they may be."""
    bias = captioner.writer.network.cls.predictions.bias
    with torch.no_grad():
        old = bias[captioner.text.end].clone()
        bias[captioner.text.end] = -1e4
        try:
            yield
        finally:
            bias[captioner.text.end] = old


def test_a_word_is_as_likely_before_and_behind_the_place_where_keys_and_values_pay(
    tiny: Callable[..., Any],
) -> None:
    made = tiny("blip", "decoder", "a picture of")
    captioner = made.captioner
    size = head_size(captioner)
    words = torch.randint(
        5, captioner.text.size, (4, 1, 2 * size), generator=torch.Generator().manual_seed(2)
    )
    with torch.no_grad():
        expected = captioner.predict(made.vision, words).logits[:, 0]
        state = captioner.begin(made.vision)
        for place in range(2 * size):
            logits, state = captioner.step(words[:, 0, place], state)
            torch.testing.assert_close(logits, expected[:, place], rtol=0, atol=1e-9)


def test_gradients_reach_the_layers_that_were_passed_by(tiny: Callable[..., Any]) -> None:
    """Word by word, as objectives that sample do it."""
    made = tiny("blip")
    captioner = made.captioner
    logits, _ = captioner.step(torch.full((4,), captioner.text.start), captioner.begin(made.vision))
    logits.logsumexp(1).sum().backward()
    try:
        for attention in cross_attentions(captioner):
            assert attention.key.weight.grad.abs().sum() > 0
            assert attention.value.weight.grad.abs().sum() > 0
    finally:
        captioner.zero_grad()
