"""Losses of single tokens against torch, against values by hand, and at the edges of what floats hold."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from tellapart.objectives.tokens import distillation, first_seen, mle, previous_words, unlikelihood

SIZE = 6
SEEDS = st.integers(0, 10_000)


def material(seed: int, *, scale: float = 3.0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Logits, labels and mask; captions of any length, 0 included."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(2, 3, 5, SIZE, generator=generator, dtype=torch.float64) * scale
    labels = torch.randint(SIZE, (2, 3, 5), generator=generator)
    lengths = torch.randint(6, (2, 3, 1), generator=generator)
    return logits.requires_grad_(), labels, torch.arange(5) < lengths


@given(SEEDS, st.sampled_from([0.0, 0.1, 0.9]))
@settings(max_examples=25)
def test_mle_is_torchs_cross_entropy_with_its_label_smoothing(seed: int, smoothing: float) -> None:
    logits, labels, mask = material(seed)
    found = mle(logits, labels, mask, label_smoothing=smoothing)
    each = cross_entropy(logits[mask], labels[mask], reduction="none", label_smoothing=smoothing)
    torch.testing.assert_close(found[mask], each)
    # The same by its definition: a label keeps 1 - ε of its weight and shares ε with all words.
    log_p = logits.log_softmax(-1)
    own = log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(each, -((1 - smoothing) * own + smoothing * log_p.mean(-1))[mask])
    assert (found[~mask] == 0).all()


def test_mle_takes_rows_with_and_without_groups() -> None:
    logits, labels, mask = material(3)
    torch.testing.assert_close(mle(logits[0], labels[0], mask[0]), mle(logits, labels, mask)[0])


def test_first_seen_by_hand() -> None:
    tokens = torch.tensor([[4, 2, 4, 2, 3], [2, 2, 2, 2, 2]])
    mask = torch.tensor([[True, False, True, True, True], [False] * 5])
    assert first_seen(tokens, mask).tolist() == [[True, False, False, True, True], [False] * 5]


def test_words_said_before_count_once_and_never_the_label() -> None:
    labels = torch.tensor([3, 4, 3, 4, 5, 3])
    mask = torch.tensor([True] * 5 + [False])
    words, counted = previous_words(labels, mask)
    found = [sorted(row[flags].tolist()) for row, flags in zip(words, counted, strict=True)]
    assert found[:5] == [[], [3], [4], [3], [3, 4]]


def test_unlikelihood_by_hand() -> None:
    p = torch.tensor([[0.5, 0.3, 0.2], [0.7, 0.2, 0.1]], dtype=torch.float64)
    words = torch.tensor([[0, 1], [0, 2]])
    counted = torch.tensor([[True, True], [True, False]])
    found = unlikelihood(p.log() + 7, torch.tensor([True, True]), words, counted)
    assert found.tolist() == pytest.approx([-math.log(0.5) - math.log(0.7), -math.log(0.3)])


@given(SEEDS)
@settings(max_examples=25)
def test_unlikelihood_is_equation_2_and_never_negative(seed: int) -> None:
    logits, labels, mask = material(seed)
    words, counted = previous_words(labels, mask)
    found = unlikelihood(logits, mask, words, counted)
    p = logits.softmax(-1)
    for place in mask.nonzero().tolist():
        image, caption, at = place
        said = set(labels[image, caption, :at].tolist()) - {int(labels[image, caption, at])}
        expected = -sum(math.log1p(-p[image, caption, at, word].item()) for word in said)
        assert found[image, caption, at].item() == pytest.approx(expected, rel=1e-9)
    assert (found >= 0).all()
    assert (found[~mask] == 0).all()
    (gradient,) = torch.autograd.grad(found.sum(), logits)
    direct = -torch.log1p(-p.gather(-1, words)).masked_fill(~counted, 0).sum(-1).masked_fill(~mask, 0)
    torch.testing.assert_close(gradient, torch.autograd.grad(direct.sum(), logits)[0])


@pytest.mark.parametrize("scale", [1e4, -1e4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_certain_word_costs_as_much_as_it_is_certain(scale: float, dtype: torch.dtype) -> None:
    logits = torch.zeros(2, 3, dtype=dtype)
    logits[:, 1] = scale
    logits.requires_grad_()
    words = torch.tensor([[1, 2], [1, 2]])
    found = unlikelihood(
        logits, torch.tensor([True, True]), words, torch.tensor([[True, True], [False, True]])
    )
    (gradient,) = torch.autograd.grad(found.sum(), logits)
    assert gradient.isfinite().all()
    certain = scale - math.log(2) if scale > 0 else 0.0  # 1 - p = 2·exp(-scale)
    other = 0.0 if scale > 0 else math.log(2)
    assert found.tolist() == pytest.approx([certain + other, other], abs=1e-3)
    if scale > 0:
        assert gradient[0, 1] == pytest.approx(1), "a clamp would let go of the worst word"


@given(SEEDS, st.sampled_from([0.5, 1.0, 4.0]))
@settings(max_examples=15)
def test_distillation_is_least_and_flat_at_the_teacher(seed: int, temperature: float) -> None:
    logits, _, mask = material(seed)
    teacher = (logits.detach() / temperature).softmax(-1)
    same = distillation(logits, teacher, mask, temperature=temperature)
    (gradient,) = torch.autograd.grad(same.sum(), logits)
    assert gradient.abs().max() < 1e-12 * max(1, temperature)
    entropy = -(teacher * teacher.clamp(min=1e-300).log()).sum(-1)
    torch.testing.assert_close(same[mask], temperature**2 * entropy[mask])
    other = distillation(logits.detach().flip(-1), teacher, mask, temperature=temperature)
    assert (other >= same - 1e-9).all()
    assert (other[~mask] == 0).all()


@pytest.mark.parametrize("scale", [1e4, -1e4])
def test_likelihood_and_distillation_are_finite_for_extreme_logits(scale: float) -> None:
    logits = torch.zeros(1, 1, 2, 3)
    logits[..., 0] = scale
    logits.requires_grad_()
    there = torch.ones(1, 1, 2, dtype=torch.bool)
    teacher = logits.detach().flip(-1).softmax(-1)
    labels = torch.tensor([[[0, 1]]])
    for losses in (
        mle(logits, labels, there),
        mle(logits, labels, there, label_smoothing=0.1),
        distillation(logits, teacher, there),
    ):
        assert losses.isfinite().all()
        assert torch.autograd.grad(losses.sum(), logits)[0].isfinite().all()
