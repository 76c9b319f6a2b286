"""The m-RNN against a NumPy transcription of its paper's equations."""

from __future__ import annotations

import numpy as np
import torch

from tellapart.captioners.mrnn import MRNN
from tellapart.captioners.parts import MRNNConfig
from tellapart.data.vocabulary import Vocabulary
from tellapart.types import Vision

VOCABULARY = Vocabulary(tuple("abcdef"))


def build(dropout: float = 0.0) -> MRNN:
    torch.manual_seed(5)
    config = MRNNConfig(embedding_one=5, embedding_two=7, multimodal=9, dropout=dropout)
    return MRNN(config, vocabulary=VOCABULARY, image_width=4).double()


def see(pooled: torch.Tensor) -> Vision:
    return Vision(pooled.new_zeros(len(pooled), 0, 4), pooled, pooled.new_zeros(len(pooled), 0))


def test_equations_2_to_4() -> None:
    model = build().eval()
    image = torch.rand(1, 4, dtype=torch.float64)
    tokens = [1, 4, 7, 5, 9]
    weights = {name: value.numpy() for name, value in model.state_dict().items()}
    recurrent = np.zeros(7)
    expected = []
    for token in tokens:
        word = weights["embedding_two.weight"] @ weights["embedding_one.weight"][token]
        recurrent = np.maximum(0, weights["recurrence.weight"] @ recurrent + word)  # Eq. 2
        added = (
            weights["from_word.weight"] @ word
            + weights["from_recurrent.weight"] @ recurrent
            + weights["from_image.weight"] @ image[0].numpy()
        )
        multimodal = 1.7159 * np.tanh(2 / 3 * added)  # Eq. 3 and 4
        expected.append(weights["output.weight"] @ multimodal + weights["output.bias"])
    logits = model.predict(see(image), torch.tensor([[tokens]])).logits[0, 0]
    np.testing.assert_allclose(logits.detach().numpy(), np.stack(expected), atol=1e-12)


def test_default_sizes_are_the_papers() -> None:
    model = MRNN(MRNNConfig(), vocabulary=VOCABULARY, image_width=4096)
    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    assert shapes == {
        "embedding_one.weight": (10, 128),
        "embedding_two.weight": (256, 128),
        "recurrence.weight": (256, 256),
        "from_word.weight": (512, 256),
        "from_recurrent.weight": (512, 256),
        "from_image.weight": (512, 4096),
        "output.weight": (10, 512),
        "output.bias": (10,),
    }


def test_the_recurrent_state_does_not_depend_on_the_image() -> None:
    model = build().eval()
    state = model.begin(see(torch.rand(2, 4, dtype=torch.float64)))
    _, after = model.step(torch.tensor([5, 5]), state)
    assert torch.equal(after.recurrent[0], after.recurrent[1])


def test_dropout_acts_in_training_only() -> None:
    model = build(dropout=0.5)
    vision, tokens = see(torch.rand(1, 4, dtype=torch.float64)), torch.tensor([[[1, 4, 5]]])
    noisy = model.train().predict(vision, tokens).logits
    assert not torch.equal(noisy, model.predict(vision, tokens).logits)
    assert torch.equal(model.eval().predict(vision, tokens).logits, model.predict(vision, tokens).logits)
