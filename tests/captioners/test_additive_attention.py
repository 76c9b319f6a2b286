"""Additive attention in blocks against the formula, whatever the blocks."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tellapart.captioners import additive_attention
from tellapart.captioners.additive_attention import additive_scores

sizes = st.integers(1, 5)


def drawn(*shape: int, seed: int, scale: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(*shape, generator=generator, dtype=torch.float64) * scale
    return values.requires_grad_()


@given(sizes, sizes, sizes, sizes, st.sampled_from([1, 7, 20, 60, 2**17]), st.floats(0.1, 30))
def test_scores_and_gradients_are_those_of_the_formula(
    images: int, queries: int, places: int, space: int, block: int, scale: float
) -> None:
    keys = drawn(images, places, space, seed=1, scale=scale)
    asked = drawn(images, queries, space, seed=2, scale=scale)
    weight, upstream = drawn(space, seed=3), drawn(images, queries, places, seed=4).detach()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(additive_attention, "BLOCK", block)
        found = additive_scores(keys, asked, weight)
        gradients = torch.autograd.grad(found, (keys, asked, weight), upstream)
    expected = torch.tanh(keys.unsqueeze(1) + asked.unsqueeze(2)) @ weight
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)
    by_formula = torch.autograd.grad(expected, (keys, asked, weight), upstream)
    for gradient, other in zip(gradients, by_formula, strict=True):
        torch.testing.assert_close(gradient, other, rtol=1e-10, atol=1e-12)


def test_far_from_zero_nothing_overflows() -> None:
    keys = torch.tensor([[[500.0], [-500.0]]], requires_grad=True)
    scores = additive_scores(keys, torch.tensor([[[0.0], [499.0]]]), torch.tensor([2.0]))
    assert scores.tolist() == [[[2.0, -2.0], [2.0, pytest.approx(-1.5231884)]]]
    (gradient,) = torch.autograd.grad(scores.sum(), keys)
    assert gradient.isfinite().all()
