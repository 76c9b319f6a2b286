"""The meshed-memory Transformer against a NumPy transcription of its paper's equations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tellapart.captioners.meshed import Gates, MeshedLayer
from tellapart.captioners.settings.transformer import MeshedConfig
from tellapart.captioners.transformer import Transformer
from tellapart.testing import prepare
from tellapart.types import Vision

Array = np.ndarray[Any, np.dtype[np.float64]]
Weights = Mapping[str, Array]


def make() -> tuple[Transformer, Vision, Weights]:
    subject = prepare("meshed")
    assert isinstance(subject.captioner, Transformer)
    weights = {name: value.numpy() for name, value in subject.captioner.state_dict().items()}
    return subject.captioner, subject.vision, weights


def attention(queries: Array, keys: Array, values: Array, *, causal: bool = False) -> Array:
    """Eq. 1, head by head."""
    heads = []
    for q, k, v in zip(*(np.split(x, 2, axis=1) for x in (queries, keys, values)), strict=True):
        scores = np.exp(q @ k.T / np.sqrt(q.shape[1]))
        if causal:
            scores = np.tril(scores)
        heads.append(scores / scores.sum(1, keepdims=True) @ v)
    return np.concatenate(heads, axis=1)


def linear(x: Array, w: Weights, at: str) -> Array:
    return x @ w[f"{at}.weight"].T + w.get(f"{at}.bias", np.zeros(1))


def add_norm(x: Array, added: Array, w: Weights, at: str) -> Array:
    total = x + added
    centred = total - total.mean(-1, keepdims=True)
    scaled = centred / np.sqrt(np.square(centred).mean(-1, keepdims=True) + 1e-5)
    result: Array = scaled * w[f"{at}.weight"] + w[f"{at}.bias"]
    return result


def feed_forward(x: Array, w: Weights, at: str) -> Array:
    """Eq. 4."""
    return linear(np.maximum(0, linear(x, w, f"{at}.feed_forward.0")), w, f"{at}.feed_forward.2")


def encode(x: Array, w: Weights, at: str) -> Array:
    """Eq. 3 and 5; slots are kept head by head."""
    queries, keys, values = np.split(linear(x, w, f"{at}.attention.project"), 3, axis=1)
    slots = [np.concatenate(list(w[f"{at}.attention.slots.{number}"]), axis=1) for number in range(2)]
    keys, values = np.concatenate([keys, slots[0]]), np.concatenate([values, slots[1]])
    mixed = attention(queries, keys, values)
    z = add_norm(x, linear(mixed, w, f"{at}.attention.output"), w, f"{at}.norms.0")
    return add_norm(z, feed_forward(z, w, at), w, f"{at}.norms.1")


def decode(y: Array, levels: list[Array], w: Weights, at: str) -> Array:
    """Eq. 6 to 9."""
    queries, keys, values = np.split(linear(y, w, f"{at}.words.project"), 3, axis=1)
    heard = linear(attention(queries, keys, values, causal=True), w, f"{at}.words.output")
    y = add_norm(y, heard, w, f"{at}.norms.0")
    meshed = np.zeros_like(y)
    for number, level in enumerate(levels):
        keys, values = np.split(linear(level, w, f"{at}.memory.look"), 2, axis=1)
        seen = attention(linear(y, w, f"{at}.memory.query"), keys, values)
        seen = linear(seen, w, f"{at}.memory.output")  # Eq. 7
        mine = slice(8 * number, 8 * number + 8)
        left = w[f"{at}.gates.from_words.weight"][mine]
        matrix = np.concatenate([left, w[f"{at}.gates.from_level"][number].T], axis=1)  # W_i
        both = np.concatenate([y, seen], axis=1)  # [Y, C_i]
        gate = 1 / (1 + np.exp(-(both @ matrix.T + w[f"{at}.gates.from_words.bias"][mine])))  # Eq. 8
        meshed += gate * seen / np.sqrt(len(levels))  # Eq. 6
    z = add_norm(y, meshed, w, f"{at}.norms.1")
    return add_norm(z, feed_forward(z, w, at), w, f"{at}.norms.2")


def test_equations_1_to_9() -> None:
    model, vision, w = make()
    tokens = [2, 5, 1, 1, 9]
    x = np.maximum(0, linear(vision.grid[1].numpy(), w, "remember.from_grid")) + w["places"]
    levels = []
    for number in range(2):
        x = encode(x, w, f"encoder.layers.{number}")
        levels.append(x)
    y = w["words.read"][tokens] * np.sqrt(8) + model.moments[:5].numpy()
    hidden = []
    for number in range(2):
        y = decode(y, levels, w, f"layers.{number}")
        hidden.append(y)
    found = model.predict(vision, torch.tensor(tokens).expand(4, 1, 5))
    for ours, theirs in zip(found.hidden, hidden, strict=True):
        np.testing.assert_allclose(ours[1, 0].detach().numpy(), theirs, atol=1e-11)
    logits = found.logits[1, 0].detach().numpy()
    np.testing.assert_allclose(logits, y @ w["words.read"].T + w["words.bias"], atol=1e-11)


def test_gates_lie_between_0_and_1_and_differ_by_level() -> None:
    torch.manual_seed(0)
    gates = Gates(levels=3, width=8)
    words, seen = torch.randn(2, 5, 8), torch.randn(2, 3, 5, 8)
    found = gates(words, seen)
    assert found.shape == (2, 3, 5, 8)
    assert (found > 0).all()
    assert (found < 1).all()
    assert not torch.allclose(gates(words, seen[:, :1].expand_as(seen))[:, 0], found[:, 1])


def run(layer: MeshedLayer, levels: Tensor) -> tuple[Tensor, Tensor]:
    x = torch.randn(2, 3, 4, 8, generator=torch.Generator().manual_seed(7))
    found, weights, _ = layer(x, layer.words.empty(6), layer.memory.keep(levels), torch.zeros(2, 5))
    return found, weights


@torch.no_grad()
def test_closed_gates_shut_a_level_out() -> None:
    torch.manual_seed(0)
    layer = MeshedLayer(MeshedConfig(layers=2, width=8, heads=2, feed_forward=12, slots=3)).eval()
    layer.gates.from_words.bias[:8] = -1e4  # of the lower level
    levels = torch.randn(2, 2, 5, 8)
    lower, upper = levels.clone(), levels.clone()
    lower[:, 0] += 1
    upper[:, 1] = torch.randn(2, 5, 8)
    kept, _ = run(layer, levels)
    assert torch.equal(run(layer, lower)[0], kept)
    assert not torch.allclose(run(layer, upper)[0], kept)


@torch.no_grad()
def test_attention_is_the_mean_over_the_levels() -> None:
    torch.manual_seed(0)
    layer = MeshedLayer(MeshedConfig(layers=2, width=8, heads=2, feed_forward=12, slots=3)).eval()
    levels = torch.randn(2, 2, 5, 8)
    alone = [run(layer, levels[:, [number, number]])[1] for number in range(2)]
    torch.testing.assert_close(run(layer, levels)[1], (alone[0] + alone[1]) / 2)


def test_slots_take_part_in_every_layer_of_the_encoder() -> None:
    model, vision, _ = make()
    tokens = torch.full((4, 1, 2), model.text.start)
    before = model.predict(vision, tokens).logits
    for number in range(2):
        slots = model.get_parameter(f"encoder.layers.{number}.attention.slots.1")
        kept = slots.detach().clone()
        slots.data.add_(1.0)
        assert not torch.allclose(model.predict(vision, tokens).logits, before)
        slots.data.copy_(kept)


def test_default_sizes_are_the_papers() -> None:
    config = MeshedConfig()
    assert (config.layers, config.width, config.heads, config.feed_forward) == (3, 512, 8, 2048)
    assert (config.slots, config.dropout) == (40, 0.1)
