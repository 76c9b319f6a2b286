"""Top-down attention against a NumPy transcription of its paper's equations, with concept words too."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tellapart.captioners.settings.recurrent import TopDownConfig
from tellapart.captioners.topdown import TopDown
from tellapart.data.text import PRESETS
from tellapart.data.vocabulary import Vocabulary
from tellapart.data.word_text import WordText
from tellapart.types import Vision
from tellapart.vision.traits import EncoderTraits

TEXT = WordText(Vocabulary(tuple("abcdef")), PRESETS["mrnn"])
TRAITS = EncoderTraits(
    name="some", identity="none", shapes={"grid": (6, 4), "classes": (3,)}, nouns=("b", "d", "e")
)
WIDTH = 7
Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def softmax(x: Array) -> Array:
    powers: Array = np.exp(x - x.max())
    normalised: Array = powers / powers.sum()
    return normalised


def lstm(gates: Array, cell: Array) -> tuple[Array, Array]:
    add, keep, candidate, show = np.split(gates, 4)
    cell = sigmoid(keep) * cell + sigmoid(add) * np.tanh(candidate)
    return sigmoid(show) * np.tanh(cell), cell


@pytest.mark.parametrize("concepts", [[], ["d"], ["d", "b"]], ids=len)
def test_equations_1_to_7(concepts: list[str]) -> None:
    torch.manual_seed(5)
    config = TopDownConfig(width=WIDTH, attention=3, concepts=len(concepts))
    model = TopDown(config, text=TEXT, traits=TRAITS).double().eval()
    weights = {name: value.numpy() for name, value in model.state_dict().items()}
    grid, tokens = torch.rand(1, 6, 4, dtype=torch.float64), [1, 4, 7, 5, 9]
    vision = Vision(grid, grid.new_zeros(1, 0), grid.new_tensor([[0.2, 0.7, 0.1]]))
    prediction = model.predict(vision, torch.tensor([[tokens]]))
    places = np.maximum(
        0, grid[0].numpy() @ weights["remember.from_grid.weight"].T + weights["remember.from_grid.bias"]
    )
    words = weights["embedding.weight"][[TEXT.vocabulary.id(word) for word in concepts]]
    v, bias = np.vstack([places, words]), np.log([1.0] * 6 + [0.7, 0.2][: len(concepts)])
    # One matrix for all that the attention LSTM reads, in the order of Eq. 2, and its own state behind.
    of_both = weights["look_recurrence.weight"]
    of_input = np.hstack(
        [
            of_both[:, :WIDTH],
            weights["gates_of_mean.weight"],
            weights["gates_of_word.weight"],
            of_both[:, WIDTH:],
        ]
    )
    nil: Array = np.zeros(WIDTH)
    h1, c1, h2, c2 = nil, nil, nil, nil
    for at, token in enumerate(tokens):
        x1 = np.concatenate([h2, places.mean(0), weights["embedding.weight"][token]])  # Eq. 2
        h1, c1 = lstm(of_input @ np.append(x1, h1) + weights["gates_of_mean.bias"], c1)  # Eq. 1
        a = np.tanh(v @ weights["from_place.weight"].T + weights["from_hidden.weight"] @ h1)
        alpha = softmax(a @ weights["score.weight"][0] + bias)  # Eq. 3 and 4
        x2 = np.append(alpha @ v, h1)  # Eq. 5 and 6
        h2, c2 = lstm(weights["write_gates.weight"] @ np.append(x2, h2) + weights["write_gates.bias"], c2)
        logits = weights["output.weight"] @ h2 + weights["output.bias"]  # Eq. 7
        np.testing.assert_allclose(prediction.logits[0, 0, at].detach().numpy(), logits, atol=1e-12)
        np.testing.assert_allclose(prediction.hidden[0][0, 0, at].detach().numpy(), h2, atol=1e-12)
        np.testing.assert_allclose(prediction.attention[0][0, 0, 0, at].detach().numpy(), alpha, atol=1e-12)


def test_default_sizes_are_the_papers() -> None:
    traits = EncoderTraits(name="some", identity="none", shapes={"grid": (196, 2048)})
    model = TopDown(TopDownConfig(), text=TEXT, traits=traits)
    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    assert shapes["embedding.weight"] == shapes["output.weight"] == (10, 1000)
    assert shapes["look_recurrence.weight"] == (4000, 2000)
    assert shapes["write_gates.weight"] == (4000, 3000)
    assert shapes["from_place.weight"] == shapes["from_hidden.weight"] == (512, 1000)
    assert TopDownConfig().dropout == 0.5
