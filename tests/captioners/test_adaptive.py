"""Adaptive attention against a NumPy transcription of its paper's equations, and its sentinel."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from tellapart.captioners.adaptive import Adaptive
from tellapart.captioners.settings.recurrent import AdaptiveConfig
from tellapart.data.text import PRESETS
from tellapart.data.vocabulary import Vocabulary
from tellapart.data.word_text import WordText
from tellapart.types import Vision
from tellapart.vision.traits import EncoderTraits

TEXT = WordText(Vocabulary(tuple("abcdef")), PRESETS["mrnn"])
TRAITS = EncoderTraits(name="some", identity="none", shapes={"grid": (6, 4)})
WIDTH = 7
TOKENS = torch.tensor([[[1, 4, 7, 5, 9]]])
Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def build() -> Adaptive:
    torch.manual_seed(5)
    config = AdaptiveConfig(width=WIDTH, attention=3)
    return Adaptive(config, text=TEXT, traits=TRAITS).double().eval()


def see(grid: Tensor) -> Vision:
    return Vision(grid, grid.new_zeros(len(grid), 0), grid.new_zeros(len(grid), 0))


def some_grid() -> Tensor:
    return torch.rand(1, 6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def softmax(x: Array) -> Array:
    powers: Array = np.exp(x - x.max())
    normalised: Array = powers / powers.sum()
    return normalised


def test_equations_4_to_16() -> None:
    model, grid = build(), some_grid()
    weights = {name: value.numpy() for name, value in model.state_dict().items()}
    a = grid[0].numpy()
    places = np.maximum(
        0, a @ weights["remember.from_grid.weight"].T + weights["remember.from_grid.bias"]
    )  # 15
    whole = np.maximum(0, weights["from_mean.weight"] @ a.mean(0) + weights["from_mean.bias"])  # Eq. 14, 16
    hidden = cell = np.zeros(WIDTH)
    w_h = weights["score.weight"][0]
    prediction = model.predict(see(grid), TOKENS)
    for at, token in enumerate(TOKENS[0, 0].tolist()):
        gates = weights["gates_of_word.weight"] @ weights["embedding.weight"][token]
        gates = gates + weights["gates_of_picture.weight"] @ whole + weights["gates_of_picture.bias"]
        guard = sigmoid(gates[4 * WIDTH :] + weights["sentinel_recurrence.weight"] @ hidden)  # Eq. 9
        add, keep, candidate, show = np.split(gates[: 4 * WIDTH] + weights["recurrence.weight"] @ hidden, 4)
        cell = sigmoid(keep) * cell + sigmoid(add) * np.tanh(candidate)  # Eq. 4
        hidden = sigmoid(show) * np.tanh(cell)
        sentinel = guard * np.tanh(cell)  # Eq. 10
        from_hidden = weights["from_hidden.weight"] @ hidden
        z = np.tanh(places @ weights["from_place.weight"].T + from_hidden) @ w_h  # Eq. 6
        c = softmax(z) @ places  # Eq. 7 and 8
        alpha = softmax(np.append(z, np.tanh(weights["from_sentinel.weight"] @ sentinel + from_hidden) @ w_h))
        mixed = alpha[-1] * sentinel + (1 - alpha[-1]) * c  # Eq. 11, with β the last element of Eq. 12
        logits = weights["output.weight"] @ (mixed + hidden) + weights["output.bias"]  # Eq. 13
        given = (part[0, 0, ..., at, :].detach().numpy() for part in (prediction.logits, *prediction.hidden))
        for found, expected in zip(given, (logits, mixed + hidden), strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-12)
        np.testing.assert_allclose(prediction.attention[0][0, 0, 0, at].detach().numpy(), alpha, atol=1e-12)


def test_default_sizes_are_the_papers() -> None:
    traits = EncoderTraits(name="some", identity="none", shapes={"grid": (49, 2048)})
    model = Adaptive(AdaptiveConfig(), text=TEXT, traits=traits)
    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    assert shapes["remember.from_grid.weight"] == shapes["from_mean.weight"] == (512, 2048)
    assert (
        shapes["from_place.weight"]
        == shapes["from_hidden.weight"]
        == shapes["from_sentinel.weight"]
        == (49, 512)
    )
    assert shapes["recurrence.weight"] == (2048, 512)
    assert shapes["output.weight"] == (10, 512)
    assert AdaptiveConfig().dropout == 0.5


def test_a_closed_gate_leaves_the_sentinel_empty() -> None:
    model, vision = build(), see(some_grid())
    with torch.no_grad():
        model.gates_of_picture.bias[4 * WIDTH :] = -1e4
    seen = model.see(vision)
    prediction = model.predict(vision, TOKENS)
    weights = prediction.attention[0][0, 0, 0]  # (t, n + 1)
    assert (weights[:, -1] > 0).all()
    context = weights[:, :-1] @ seen.memory.values[0]
    state = model.begin(vision)
    for at, token in enumerate(TOKENS[0, 0]):
        _, state = model.step(token.view(1), state)
        torch.testing.assert_close(prediction.hidden[0][0, 0, at], context[at] + state.hidden[0])


def test_with_all_trust_in_the_sentinel_the_places_no_longer_matter() -> None:
    grid = some_grid()
    moved = grid.clone()
    moved[0, 0] += 0.5  # the mean of the places, which the LSTM reads, stays
    moved[0, 1] -= 0.5
    model = build()
    doubtful, elsewhere = (model.predict(see(some), TOKENS).logits for some in (grid, moved))
    assert not torch.allclose(doubtful, elsewhere)
    with torch.no_grad():
        model.gates_of_picture.bias.fill_(5.0)  # all gates open: the cell is positive in every place
        model.from_place.weight.zero_()
        model.from_hidden.weight.zero_()
        model.from_sentinel.weight.fill_(1.0)
        model.score.weight.fill_(1e3)
    trusting, same = (model.predict(see(some), TOKENS) for some in (grid, moved))
    torch.testing.assert_close(trusting.attention[0][..., -1], torch.ones(1, 1, 1, 5, dtype=torch.float64))
    torch.testing.assert_close(trusting.logits, same.logits)
