"""Likelihood objectives against what a person computes by hand."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tellapart.captioners.mrnn import MRNN
from tellapart.captioners.settings.mrnn import MRNNConfig
from tellapart.data.text import PRESETS
from tellapart.data.vocabulary import Vocabulary
from tellapart.data.word_text import WordText
from tellapart.objectives.compose import masked_mean, token_objective
from tellapart.objectives.likelihood import build_mle, build_mrnn_cost
from tellapart.objectives.parts import OBJECTIVES, MLEConfig, MRNNCostConfig
from tellapart.objectives.tokens import mle
from tellapart.types import Batch, Context, Loss, Vision

VOCABULARY = Vocabulary(("a", "b", "c"))
CONTEXT = Context(0, torch.Generator())


def captioner() -> MRNN:
    torch.manual_seed(0)
    config = MRNNConfig(embedding_one=4, embedding_two=5, multimodal=6)
    return MRNN(config, text=WordText(VOCABULARY, PRESETS["mrnn"]), image_width=3).double().eval()


def batch(*, padding: int = 0) -> Batch:
    """Two images; the second has one caption only."""
    captions = [[["a", "b"], ["c"]], [["b", "b", "a"]]]
    tokens = torch.full((2, 2, 5 + padding), VOCABULARY.pad)
    mask = torch.zeros(2, 2, 5 + padding, dtype=torch.bool)
    for image, group in enumerate(captions):
        for place, words in enumerate(group):
            ids = VOCABULARY.encode(words)
            tokens[image, place, : len(ids)] = torch.tensor(ids)
            mask[image, place, : len(ids)] = True
    pooled = torch.rand(2, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return Batch(("x", "y"), Vision(pooled.new_zeros(2, 0, 1), pooled, pooled.new_zeros(2, 0)), tokens, mask)


def bits_by_hand(model: MRNN, some: Batch) -> list[float]:
    """-log2 P(w_n | w_1..n-1, I) of every word and end sign, one step at a time."""
    bits = []
    for image in range(2):
        vision = some.vision.select(torch.tensor([image]))
        for caption, there in zip(some.tokens[image], some.mask[image], strict=True):
            state = model.begin(vision)
            ids = caption[there].tolist()
            for given_token, label in pairwise(ids):
                logits, state = model.step(torch.tensor([given_token]), state)
                exps = np.exp(logits[0].detach().numpy())
                bits.append(-math.log2(exps[label] / exps.sum()))
    return bits


def test_mrnn_cost_is_equation_6() -> None:
    model, some = captioner(), batch()
    bits = bits_by_hand(model, some)
    assert len(bits) == 3 + 2 + 4  # words and end signs
    norm = sum(float((weight.detach() ** 2).sum()) for weight in model.parameters())
    loss = build_mrnn_cost(MRNNCostConfig(l2=0.01))(model, some, CONTEXT)
    assert loss.total.item() == pytest.approx(sum(bits) / len(bits) + 0.01 * norm, abs=1e-12)
    assert loss.parts == pytest.approx({"bits": sum(bits) / len(bits), "l2": 0.01 * norm})


def test_mle_is_the_same_in_nats_without_the_norm() -> None:
    model, some = captioner(), batch()
    nats = [value * math.log(2) for value in bits_by_hand(model, some)]
    loss = build_mle(MLEConfig())(model, some, CONTEXT)
    assert loss.total.item() == pytest.approx(sum(nats) / len(nats), abs=1e-12)


@pytest.mark.parametrize("name", OBJECTIVES.names())
def test_every_objective_ignores_padding_and_gives_finite_gradients(name: str) -> None:
    part = OBJECTIVES.get(name)
    objective = part.builder()(part.config())

    def lossy(some: Batch) -> Loss:
        loss: Loss = objective(captioner(), some, CONTEXT)
        return loss

    assert lossy(batch()).total.item() == pytest.approx(lossy(batch(padding=3)).total.item(), abs=1e-12)
    model = captioner()
    objective(model, batch(), CONTEXT).total.backward()
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in model.parameters())


@given(st.integers(1, 3), st.integers(1, 4), st.integers(0, 10_000))
def test_mle_is_cross_entropy_where_there_is_a_label(captions: int, length: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(2, captions, length, 6, generator=generator, dtype=torch.float64) * 10
    labels = torch.randint(6, (2, captions, length), generator=generator)
    mask = torch.rand(2, captions, length, generator=generator) < 0.6
    losses = mle(logits, labels, mask)
    expected = -logits.log_softmax(-1).gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(losses[mask], expected[mask])
    assert (losses[~mask] == 0).all()
    assert masked_mean(losses, mask).isfinite()


@pytest.mark.parametrize("scale", [1e4, -1e4])
def test_mle_is_finite_for_extreme_logits(scale: float) -> None:
    logits = torch.zeros(1, 1, 2, 3)
    logits[..., 0] = scale
    assert mle(logits, torch.tensor([[[0, 1]]]), torch.ones(1, 1, 2, dtype=torch.bool)).isfinite().all()


def test_the_shift_pairs_each_word_with_the_one_before() -> None:
    seen: list[tuple[list[int], list[bool]]] = []

    def spy(logits: torch.Tensor, labels: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        seen.append((labels[0, 0].tolist(), mask[0, 0].tolist()))
        return logits.sum(-1) * 0

    token_objective(spy, name="spy")(captioner(), batch(), CONTEXT)
    a, b = VOCABULARY.id("a"), VOCABULARY.id("b")
    assert seen == [([a, b, VOCABULARY.end, VOCABULARY.pad], [True, True, True, False])]
