"""NeuralTalk2 against a NumPy transcription, and the law of its first input."""

from __future__ import annotations

import numpy as np
import torch

from tellapart.captioners.neuraltalk import NeuralTalk, NeuralTalkState
from tellapart.captioners.settings.recurrent import NeuralTalkConfig
from tellapart.data.text import PRESETS
from tellapart.data.vocabulary import Vocabulary
from tellapart.data.word_text import WordText
from tellapart.types import Vision

TEXT = WordText(Vocabulary(tuple("abcdef")), PRESETS["mrnn"])
Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def build(dropout: float = 0.0) -> NeuralTalk:
    torch.manual_seed(5)
    config = NeuralTalkConfig(embedding=5, hidden=7, dropout=dropout)
    return NeuralTalk(config, text=TEXT, image_width=4).double()


def see(pooled: torch.Tensor) -> Vision:
    return Vision(pooled.new_zeros(len(pooled), 0, 4), pooled, pooled.new_zeros(len(pooled), 0))


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def test_the_picture_then_the_words_by_hand() -> None:
    model = build().eval()
    image, tokens = torch.rand(1, 4, dtype=torch.float64), [1, 4, 7, 5, 9]
    weights = {name: value.numpy() for name, value in model.state_dict().items()}
    feature = image[0].numpy() - image[0].numpy().mean()
    feature = feature / np.sqrt(np.square(feature).mean() + 1e-5)
    picture = np.maximum(0, weights["from_picture.weight"] @ feature + weights["from_picture.bias"])
    inputs = [picture, *(weights["embedding.weight"][token] for token in tokens)]
    hidden = cell = np.zeros(7)
    expected = []
    for given in inputs:
        gates = weights["lstm.weight_ih_l0"] @ given + weights["lstm.weight_hh_l0"] @ hidden
        gates = gates + weights["lstm.bias_ih_l0"] + weights["lstm.bias_hh_l0"]
        add, keep, candidate, show = np.split(gates, 4)
        cell = sigmoid(keep) * cell + sigmoid(add) * np.tanh(candidate)
        hidden = sigmoid(show) * np.tanh(cell)
        expected.append(weights["output.weight"] @ hidden + weights["output.bias"])
    prediction = model.predict(see(image), torch.tensor([[tokens]]))
    # Nothing is expected after the picture: the first logits are those after the start sign.
    np.testing.assert_allclose(prediction.logits[0, 0].detach().numpy(), np.stack(expected[1:]), atol=1e-12)
    np.testing.assert_allclose(prediction.hidden[0][0, 0, -1].detach().numpy(), hidden, atol=1e-12)


def test_a_picture_that_looks_like_a_word_is_that_word_said_first() -> None:
    model = build().eval()
    with torch.no_grad():
        model.embedding.weight.abs_()  # a picture's layer ends in a ReLU
        model.from_picture.weight.zero_()
        model.from_picture.bias.copy_(model.embedding.weight[6])
    nothing = torch.zeros(1, 7, dtype=torch.float64)
    _, state = model.step(torch.tensor([6]), NeuralTalkState(nothing, nothing))
    after_word, _ = model.step(torch.tensor([TEXT.start]), state)
    picture = see(torch.rand(1, 4, dtype=torch.float64))
    after_picture, _ = model.step(torch.tensor([TEXT.start]), model.begin(picture))
    torch.testing.assert_close(after_picture, after_word)


def test_default_sizes_are_those_of_its_code() -> None:
    model = NeuralTalk(NeuralTalkConfig(), text=TEXT, image_width=4096)
    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    assert shapes == {
        "embedding.weight": (10, 512),
        "from_picture.weight": (512, 4096),
        "from_picture.bias": (512,),
        "lstm.weight_ih_l0": (2048, 512),
        "lstm.weight_hh_l0": (2048, 512),
        "lstm.bias_ih_l0": (2048,),
        "lstm.bias_hh_l0": (2048,),
        "output.weight": (10, 512),
        "output.bias": (10,),
    }
    assert NeuralTalkConfig().dropout == 0.5


def test_dropout_acts_in_training_only_and_only_before_the_last_layer() -> None:
    model = build(dropout=0.5)
    vision, tokens = see(torch.rand(1, 4, dtype=torch.float64)), torch.tensor([[[1, 4, 5]]])
    noisy = model.train().predict(vision, tokens)
    calm = model.eval().predict(vision, tokens)
    assert not torch.equal(noisy.logits, calm.logits)
    assert torch.equal(noisy.hidden[0], calm.hidden[0])
    assert torch.equal(calm.logits, model.predict(vision, tokens).logits)
