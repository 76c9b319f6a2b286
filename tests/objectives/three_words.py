"""A captioner of three words, all of whose captions can be counted up, and its one image.

Expectations over what it draws are then sums, and their slopes finite differences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
import torch
from torch import Tensor

from tellapart.captioners.mrnn import MRNN
from tellapart.captioners.settings.mrnn import MRNNConfig
from tellapart.data.text import PRESETS
from tellapart.data.vocabulary import Vocabulary
from tellapart.data.word_text import WordText
from tellapart.decoding.sampling import Sampling, sample
from tellapart.decoding.search import greedy
from tellapart.types import AnyCaptioner, Batch, Decoded, Vision

VOCABULARY = Vocabulary(("a", "b", "c"))
WORDS = [VOCABULARY.id(word) for word in "abc"]
MAX_WORDS = 2
EVERY = [  # all captions that can be written
    *((word, VOCABULARY.end) for word in WORDS),
    *((*pair, VOCABULARY.end) for pair in product(WORDS, WORDS)),
]


def captioner(seed: int = 0) -> MRNN:
    torch.manual_seed(seed)
    config = MRNNConfig(embedding_one=2, embedding_two=3, multimodal=2)
    model = MRNN(config, text=WordText(VOCABULARY, PRESETS["mrnn"]), image_width=2).double().eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight)
    return model


def one_image() -> Batch:
    pooled = torch.tensor([[0.3, -0.8]], dtype=torch.float64)
    tokens = torch.tensor([[[VOCABULARY.start, WORDS[0], VOCABULARY.end]]])
    vision = Vision(pooled.new_zeros(1, 0, 1), pooled, pooled.new_zeros(1, 0))
    return Batch(("x",), vision, tokens, torch.ones_like(tokens, dtype=torch.bool), (0,), ((0,),))


def decoded(captions: Sequence[Sequence[int]]) -> Decoded:
    """Captions of one image, as a decoder gives them."""
    longest = max(map(len, captions))
    tokens = torch.full((1, len(captions), longest), VOCABULARY.pad)
    for place, caption in enumerate(captions):
        tokens[0, place, : len(caption)] = torch.tensor(caption)
    mask = torch.tensor([[[place < len(caption) for place in range(longest)] for caption in captions]])
    return Decoded(tokens, mask, torch.zeros(1, len(captions)))


@dataclass
class Fixed:
    """Draws what it is told to."""

    drawn: Sequence[Sequence[int]]

    def sample(
        self,
        captioner: AnyCaptioner,
        vision: Vision,
        *,
        count: int,
        temperature: float,
        generators: Sequence[torch.Generator],
    ) -> Decoded:
        assert (count, len(generators)) == (len(self.drawn), 1)
        return decoded(self.drawn)

    def greedy(self, captioner: AnyCaptioner, vision: Vision) -> Decoded:
        return greedy(captioner, vision, max_words=MAX_WORDS)


def draw(
    captioner: AnyCaptioner,
    vision: Vision,
    *,
    count: int,
    temperature: float,
    generators: Sequence[torch.Generator],
) -> Decoded:
    """Captions drawn by chance, as training draws them."""
    wanted = Sampling(count, temperature)
    return sample(captioner, vision, wanted, generators=generators, max_words=MAX_WORDS)


def gradients(model: torch.nn.Module, value: Tensor) -> list[Tensor]:
    """Of all weights."""
    return list(torch.autograd.grad(value, list(model.parameters()), materialize_grads=True))


def probability(model: MRNN, caption: Sequence[int], temperature: float) -> float:
    """Of a caption, one step at a time: words that may not stand there have none, and the last is sure."""
    state, token, found = model.begin(one_image().vision), VOCABULARY.start, 1.0
    for place, chosen in enumerate(caption):
        logits, state = model.step(torch.tensor([token]), state)
        may = [*WORDS, *([VOCABULARY.end] if place else [])] if place < MAX_WORDS else [VOCABULARY.end]
        weights = {word: float(np.exp(logits[0, word].item() / temperature)) for word in may}
        found *= weights[chosen] / sum(weights.values())
        token = chosen
    return found


def assert_gradient_of_expected_reward(
    model: MRNN, found: Sequence[Tensor], worth: Callable[[Sequence[int]], float], temperature: float = 1.0
) -> None:
    """Gradients of the weights against finite differences of Σ p(c) r(c), in three directions."""
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        direction = [
            torch.randn(weight.shape, generator=generator, dtype=torch.float64)
            for weight in model.parameters()
        ]
        ahead, behind = (_expected(_moved(model, direction, by), worth, temperature) for by in (1e-5, -1e-5))
        ours = sum(float((one * other).sum()) for one, other in zip(found, direction, strict=True))
        assert ours == pytest.approx((ahead - behind) / 2e-5, rel=1e-6, abs=1e-7)


def _expected(model: MRNN, worth: Callable[[Sequence[int]], float], temperature: float) -> float:
    with torch.no_grad():
        return sum(probability(model, caption, temperature) * worth(caption) for caption in EVERY)


def _moved(model: MRNN, direction: Sequence[Tensor], by: float) -> MRNN:
    other = captioner()
    other.load_state_dict(model.state_dict())
    with torch.no_grad():
        for weight, along in zip(other.parameters(), direction, strict=True):
            weight.add_(along, alpha=by)
    return other
