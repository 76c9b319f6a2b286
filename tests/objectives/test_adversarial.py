"""The conditional GAN: two that learn from one batch, and not from each other's gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.objectives.material import context, doubled, learner
from tests.objectives.precise import Precise
from tests.objectives.three_words import (
    EVERY,
    MAX_WORDS,
    VOCABULARY,
    Fixed,
    assert_gradient_of_expected_reward,
    captioner,
    gradients,
    one_image,
    probability,
)
from torch import Tensor
from torch.nn.functional import pad as padded

from tellapart.captioner_learner import CaptionerLearner
from tellapart.errors import TellapartError
from tellapart.objectives.adversarial import ConditionalGAN, advantages, build_gan
from tellapart.objectives.drawn import Drawing
from tellapart.objectives.evaluator import Evaluator
from tellapart.objectives.negatives import Negatives
from tellapart.objectives.settings.contrastive import GANConfig
from tellapart.types import Batch, Context
from tellapart.world import ALONE


def gan(*changes: str, captioner: str = "mrnn") -> tuple[CaptionerLearner, ConditionalGAN]:
    made = learner("objective.name=gan", "objective.width=8", *changes, captioner=captioner)
    assert isinstance(made.step.objective, ConditionalGAN)
    return made, made.step.objective


@pytest.mark.parametrize("captioner", ["mrnn", "transformer"])  # with a pooled feature, and with a grid
def test_neither_sends_a_gradient_to_the_other(captioner: str) -> None:
    made, objective = gan("objective.mle_weight=0.5", captioner=captioner)
    loss = made.step.train()(made.batch(0), context())
    of_captioner = list(made.network.parameters())
    of_evaluator = list(objective.evaluator.parameters())
    assert {name for name in loss.terms if not name.startswith("evaluator/")} == {"policy", "mle"}
    for name, term in loss.terms.items():
        judged = name.startswith("evaluator/")
        asked, other = (of_evaluator, of_captioner) if judged else (of_captioner, of_evaluator)
        found = torch.autograd.grad(term, asked, retain_graph=True, materialize_grads=True)
        assert max(gradient.abs().max() for gradient in found) > 0, name
        crossed = torch.autograd.grad(term, other, retain_graph=True, allow_unused=True)
        assert all(gradient is None for gradient in crossed), name


def test_the_evaluator_is_trained_and_kept_and_learns() -> None:
    made, objective = gan("objective.policy=0.0", "objective.width=32")
    assert any(name.startswith("objective.evaluator.") for name in made.step.state_dict())
    trained = {name for name, weight in made.step.named_parameters() if weight.requires_grad}
    assert any(name.startswith("objective.evaluator.") for name in trained)
    optimiser = torch.optim.Adam(made.step.parameters(), lr=1e-2)
    losses = []
    for number in range(36):
        optimiser.zero_grad()
        loss = made.step(made.batch(number % 12), context(number))
        loss.total.backward()
        optimiser.step()
        losses.append(loss.total.item())
    assert sum(losses[-12:]) < 0.8 * sum(losses[:12])
    assert loss.parts["taken_for_real/real"] > loss.parts["taken_for_real/drawn"] + 0.3
    assert objective.evaluator.bias.grad is not None


def test_processes_begin_with_the_same_evaluator() -> None:
    made = learner()
    first = build_gan(GANConfig(width=8), made.supplies)
    torch.rand(100)  # whatever else a process may draw
    state = torch.get_rng_state()
    second = build_gan(GANConfig(width=8), made.supplies)
    assert torch.equal(state, torch.get_rng_state())
    for one, two in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, two)


@given(st.integers(2, 6), st.integers(0, 1000))
def test_an_advantage_is_over_the_other_samples(count: int, seed: int) -> None:
    rewards = torch.rand(3, count, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    found = advantages(rewards)
    for image in range(3):
        for place in range(count):
            others = [rewards[image, other].item() for other in range(count) if other != place]
            assert found[image, place].item() == pytest.approx(
                rewards[image, place].item() - sum(others) / len(others)
            )


def test_the_policy_term_is_reinforce() -> None:
    made, objective = gan("captioner.dropout=0.0")
    batch = made.batch(0)
    loss = made.step(batch, context())
    drawn = objective._drawing(made.network, batch.vision, [context().of_image(row) for row in batch.rows])
    likely = objective._drawing.log_probabilities(made.network, batch.vision, drawn)
    rewards = objective.evaluator(batch.vision, drawn.tokens, drawn.mask).sigmoid().detach()
    assert loss.parts["policy"] == pytest.approx(-(advantages(rewards) * likely).mean().item(), abs=1e-5)
    assert loss.parts["taken_for_real/drawn"] == pytest.approx(rewards.mean().item(), abs=1e-5)
    text = made.network.text
    assert (drawn.tokens[:, :, 0] == text.start).all()
    ends = (drawn.tokens == text.end) & drawn.mask
    assert (ends.sum(-1) == 1).all()
    assert (drawn.mask.sum(-1) - 1 == ends.long().argmax(-1)).all()


def test_the_expected_policy_gradient_is_that_of_the_expected_reward() -> None:
    """Every pair of captions weighed by its probability: also where some words may not be written."""
    model, batch = captioner(2), one_image()
    torch.manual_seed(0)
    evaluator = Evaluator(words=len(model.text), picture=2, width=4).double()
    _, other = gan()
    chances = {caption: probability(model, caption, 1.0) for caption in EVERY}
    value = torch.zeros((), dtype=torch.float64)
    for pair in product(EVERY, repeat=2):
        drawing = Drawing(Fixed(pair).sample, 2, MAX_WORDS)
        objective = ConditionalGAN(GANConfig(), evaluator, drawing, other._negatives, other._weights)
        drawn = drawing(model, batch.vision, [torch.Generator()])
        rewards = evaluator(batch.vision, drawn.tokens, drawn.mask).detach().sigmoid()
        loss = objective._policy(model, batch, drawn, rewards)
        value = value - chances[pair[0]] * chances[pair[1]] * loss

    def worth(caption: Sequence[int]) -> float:
        tokens = torch.tensor([[[VOCABULARY.start, *caption]]])
        whole = torch.ones_like(tokens, dtype=torch.bool)
        return float(evaluator(batch.vision, tokens, whole).sigmoid())

    assert_gradient_of_expected_reward(model, gradients(model, value), worth)


def test_words_and_negatives_are_drawn_from_sources_of_their_own() -> None:
    made, objective = gan()
    batch, asked = made.batch(0), list[Context]()

    @dataclass(frozen=True)
    class Watched(Negatives):
        def draw(self, batch: Batch, context: Context) -> tuple[Tensor, Tensor]:
            asked.append(context)
            return super().draw(batch, context)

    inner = objective._negatives
    objective._negatives = Watched(*(getattr(inner, one.name) for one in fields(inner)))
    made.step(batch, context())
    (of_negatives,) = asked
    for row in batch.rows:
        words = torch.rand(100, generator=context().of_image(row))
        others = torch.rand(100, generator=of_negatives.of_image(row))
        assert not torch.isin(words, others).any()
    assert of_negatives.step == context().step
    again = torch.rand(9, generator=context().apart("negatives").of_image(3))
    assert torch.equal(again, torch.rand(9, generator=of_negatives.of_image(3))), "the same when resumed"


def test_drawing_leaves_the_mode_and_ignores_dropout_and_batch() -> None:
    made, objective = gan("captioner.dropout=0.5")
    batch = made.batch(0)
    generators = [context().of_image(row) for row in batch.rows]
    made.network.train()
    all_drawn = objective._drawing(made.network, batch.vision, generators)
    assert made.network.training
    alone = objective._drawing(
        made.network, batch.vision.select(torch.tensor([2])), [context().of_image(batch.rows[2])]
    )
    length = alone.tokens.size(2)
    assert torch.equal(all_drawn.tokens[2, :, :length], alone.tokens[0])
    assert not all_drawn.mask[2, :, length:].any()


def test_padding_and_shares_change_nothing() -> None:
    some = Precise(learner("objective.name=gan", "objective.width=8", "objective.mle_weight=0.3"))
    objective = some.objective()
    assert isinstance(objective, ConditionalGAN)
    objective.double()
    batch, sign = some.batch(), some.network.text.pad
    whole = objective(some.network, batch, context())
    longer = replace(batch, tokens=padded(batch.tokens, (0, 4), value=sign), mask=padded(batch.mask, (0, 4)))
    assert objective(some.network, longer, context()).total.item() == pytest.approx(
        whole.total.item(), abs=1e-12
    )
    shares = [doubled(share) for share in learner("training.portions=3").shares(0, ALONE)]
    losses = [objective(some.network, share, context()) for share in shares]
    for name, value in whole.parts.items():
        assert sum(loss.parts[name] for loss in losses) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("scale", [1e4, -1e4])
def test_finite_for_extreme_logits_and_a_batch_of_one(scale: float) -> None:
    made, _ = gan("training.images_per_batch=1", "decoding.max_words=1")
    with torch.no_grad():
        made.network.get_parameter("output.bias")[::2] += scale
    loss = made.step(made.batch(0), context())
    loss.total.backward()
    assert loss.total.isfinite()
    assert all(weight.grad.isfinite().all() for weight in made.step.parameters() if weight.grad is not None)


def test_a_captioner_that_sees_nothing_is_refused() -> None:
    blind = learner(captioner="rnn-base")
    with pytest.raises(TellapartError, match="gan: the captioner sees nothing"):
        build_gan(GANConfig(), blind.supplies)
