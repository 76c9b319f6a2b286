"""Contrastive learning against its paper's equations, and what it promises about references and negatives."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise
from math import log
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.objectives.material import context, doubled, learner, saved_copy
from tests.objectives.precise import Precise, likelihoods, move
from torch.nn.functional import pad as padded

from tellapart.errors import TellapartError
from tellapart.objectives.by_length import GROUP, best_cuts, log_probabilities_by_length
from tellapart.objectives.compose import log_probabilities
from tellapart.objectives.contrastive import (
    Contrastive,
    build_contrastive,
    difference_losses,
    ratio_losses,
)
from tellapart.objectives.settings.contrastive import ContrastiveConfig
from tellapart.types import Batch, Loss, Objective
from tellapart.world import ALONE


def contrast(*changes: str, captioner: str = "mrnn") -> tuple[Precise, Contrastive]:
    some = Precise(learner("objective.name=contrastive", *changes, captioner=captioner))
    objective = some.objective()
    assert isinstance(objective, Contrastive)
    return some, objective


def drawn_for(objective: Contrastive, batch: Batch, step: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    assert objective.negatives is not None
    return objective.negatives.draw(batch, context(step))


@pytest.mark.parametrize("captioner", ["mrnn", "transformer", "adaptive"])
@pytest.mark.parametrize("negatives", [1, 3])
def test_at_equal_models_h_is_a_half_and_the_gradient_pulls_both_ways(captioner: str, negatives: int) -> None:
    some, objective = contrast(f"objective.negatives={negatives}", captioner=captioner)
    batch = some.batch()
    loss: Loss = objective(some.network, batch, context())
    assert loss.total.item() == pytest.approx(2 * log(2), abs=1e-10)
    assert loss.parts["h_positive"] == pytest.approx(0.5, abs=1e-10)
    assert loss.parts["h_negative"] == pytest.approx(0.5, abs=1e-10)
    found = torch.autograd.grad(loss.total, some.weights(), materialize_grads=True)
    tokens, mask = drawn_for(objective, batch)
    there = batch.mask[:, :, 1:].any(-1)
    own = log_probabilities(some.network, batch.vision, batch.tokens, batch.mask)
    other = log_probabilities(some.network, batch.vision, tokens.flatten(1, 2), mask.flatten(1, 2))
    # Section 4.3: half the gradient of ln p on positives, minus half of it on the mean of the negatives.
    stated = -0.5 * own[there].mean() + 0.5 * other.view(tokens.shape[:3]).mean(2)[there].mean()
    expected = torch.autograd.grad(stated, some.weights(), materialize_grads=True)
    for one, two in zip(found, expected, strict=True):
        torch.testing.assert_close(one, two, rtol=1e-8, atol=1e-10)
    assert max(gradient.abs().max().item() for gradient in found) > 1e-4


@pytest.mark.parametrize("nu", [1.0, 3.0])
def test_the_loss_is_equation_10(nu: float) -> None:
    some, objective = contrast("objective.negatives=2", f"objective.nu={nu}")
    batch, pad = some.batch(1), some.network.text.pad
    move(some.network)
    tokens, _ = drawn_for(objective, batch)
    total, captions = 0.0, 0
    reference = objective.reference.captioner
    own, own_ref = (likelihoods(one, batch, batch.tokens, pad) for one in (some.network, reference))
    flat = tokens.flatten(1, 2)
    others, others_ref = (likelihoods(one, batch, flat, pad) for one in (some.network, reference))
    for image, places in enumerate(batch.places):
        for place in range(len(places)):
            captions += 1
            h = 1 / (1 + nu * np.exp(-(own - own_ref)[image, place].item()))
            total += log(h)
            for k in range(2):
                ratio = (others - others_ref)[image, place * 2 + k].item()
                total += log(1 - 1 / (1 + nu * np.exp(-ratio))) / 2
    loss = objective(some.network, batch, context())
    assert loss.total.item() == pytest.approx(-total / captions, abs=1e-9)
    assert loss.total.item() == pytest.approx(sum(term.item() for term in loss.terms.values()), abs=1e-12)


@settings(max_examples=30)
@given(st.integers(1, 4), st.floats(0.1, 10), st.integers(0, 10_000), st.sampled_from([1.0, 50.0, 1e5]))
def test_no_objective_above_0_and_negatives_are_averaged(k: int, nu: float, seed: int, scale: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    ratios = scale * torch.randn(2, 3, 2, generator=generator, dtype=torch.float64)
    once = ratio_losses(ratios, nu=nu)
    many = ratio_losses(torch.cat([ratios[:, :, :1], ratios[:, :, 1:].expand(-1, -1, k)], 2), nu=nu)
    for name in ("positive", "negative"):
        assert once[name].isfinite().all()
        assert (once[name] >= 0).all()
        torch.testing.assert_close(once[name], many[name])


def test_the_plain_difference_is_equations_5_and_6() -> None:
    own = torch.tensor([[[0.5, 0.25, 0.5]]], dtype=torch.float64).log()
    reference = torch.tensor([[[0.25, 0.125, 0.125]]], dtype=torch.float64).log()
    losses = difference_losses(own, reference)
    assert losses["positive"].item() == pytest.approx(-0.25)
    assert losses["negative"].item() == pytest.approx((0.125 + 0.375) / 2)
    some, objective = contrast("objective.loss=difference")
    loss = objective(some.network, some.batch(), context())
    assert loss.total.item() == pytest.approx(0, abs=1e-15)
    found = torch.autograd.grad(loss.total, some.weights(), materialize_grads=True)
    assert max(gradient.abs().max().item() for gradient in found) > 0


@pytest.mark.parametrize(("parts", "terms"), [("positive", {"positive"}), ("negative", {"negative"})])
def test_each_constraint_can_stand_alone(parts: str, terms: set[str]) -> None:
    some, objective = contrast(f"objective.parts={parts}")
    both = contrast()[1]
    move(some.network)
    loss = objective(some.network, some.batch(), context())
    assert set(loss.terms) == terms
    assert loss.terms[parts].item() == pytest.approx(both(some.network, some.batch(), context()).parts[parts])


def test_the_reference_stays_as_it_is() -> None:
    some = learner("objective.name=contrastive", "captioner.dropout=0.5")
    objective = some.step.objective
    assert isinstance(objective, Contrastive)
    reference = objective.reference.captioner
    before = {name: value.clone() for name, value in reference.state_dict().items()}
    optimiser = torch.optim.SGD(some.step.parameters(), lr=1.0)
    for number in range(3):
        optimiser.zero_grad()
        some.step.train()(some.batch(number), context(number)).total.backward()
        optimiser.step()
    assert not reference.training
    assert all(weight.grad is None and not weight.requires_grad for weight in reference.parameters())
    assert all(torch.equal(value, before[name]) for name, value in reference.state_dict().items())
    assert not any("reference" in name for name in some.step.state_dict())
    assert not all(torch.equal(value, before[name]) for name, value in some.network.state_dict().items())


def test_what_the_reference_says_is_known_whatever_asked_first() -> None:
    some, objective = contrast()
    again = contrast()[1].reference
    batches = [some.batch(number) for number in range(4)]
    first = [objective.reference.of_batch(batch) for batch in batches]
    for batch, known in zip(reversed(batches), reversed(first), strict=True):
        assert torch.equal(again.of_batch(batch), known)  # to the last bit, as a resumed run needs it
        anew = log_probabilities(again.captioner, batch.vision, batch.tokens, batch.mask)
        torch.testing.assert_close(known, anew, rtol=1e-10, atol=1e-10)
        assert not known.requires_grad


@pytest.mark.parametrize("compat", ["paper", "authors"])
def test_negatives_that_are_kept_belong_to_their_caption_and_are_scored_once(
    compat: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    some, objective = contrast("objective.redraw=false", f"objective.compat={compat}")
    fresh = contrast(f"objective.compat={compat}")[1]
    batch = some.batch()
    one, other = (drawn_for(objective, batch, step)[0] for step in (0, 7))
    assert torch.equal(one, other)
    assert not torch.equal(drawn_for(fresh, batch, 0)[0], drawn_for(fresh, batch, 7)[0])
    turned = replace(batch, places=tuple(places[::-1] for places in batch.places))
    assert torch.equal(drawn_for(objective, turned)[0], one.flip(1))
    move(some.network)
    first = objective(some.network, batch, context())
    reference = objective.reference

    def ask(*given: object) -> None:
        raise LookupError

    with monkeypatch.context() as patch:
        patch.setattr(reference.captioner, "predict", ask)
        again = objective(some.network, batch, context(7))  # all is known
        with pytest.raises(LookupError):
            objective(some.network, some.batch(1), context())
    assert again.total.item() == first.total.item()
    tokens, mask = drawn_for(objective, batch)
    anew = reference.of(batch.vision, tokens.flatten(1, 2), mask.flatten(1, 2)).view(tokens.shape[:3])
    told = first.parts["log_ratio_negative"]
    own = log_probabilities(some.network, batch.vision, tokens.flatten(1, 2), mask.flatten(1, 2))
    expected = (own.view(tokens.shape[:3]) - anew).mean(2)[batch.mask[:, :, 1:].any(-1)].mean()
    assert told == pytest.approx(expected.item(), abs=1e-10)


def test_a_reference_that_changed_forgets_its_scores() -> None:
    some, objective = contrast()
    before = objective.reference.of_batch(some.batch())
    move(some.network)
    objective.reference.use(some.network, 1)
    after = objective.reference.of_batch(some.batch())
    assert (before - after).abs().min() > 1e-6


def test_padding_and_shares_change_nothing() -> None:
    some, objective = contrast()
    move(some.network)
    batch, sign = some.batch(), some.network.text.pad
    whole = objective(some.network, batch, context())
    longer = replace(batch, tokens=padded(batch.tokens, (0, 4), value=sign), mask=padded(batch.mask, (0, 4)))
    assert objective(some.network, longer, context()).total.item() == pytest.approx(
        whole.total.item(), abs=1e-12
    )
    shares = [doubled(share) for share in learner("training.portions=3").shares(0, ALONE)]
    assert len(shares) > 1
    losses = [objective(some.network, share, context()) for share in shares]
    assert sum(loss.total.item() for loss in losses) == pytest.approx(whole.total.item(), abs=1e-12)
    for name, value in whole.parts.items():
        assert sum(loss.parts[name] for loss in losses) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("scale", [1e4, -1e4])
@pytest.mark.parametrize("loss", ["ratio", "difference"])
def test_finite_for_extreme_logits_one_word_and_one_image(scale: float, loss: str) -> None:
    changes = ("data.max_words=1", "training.images_per_batch=1", "objective.compat=authors")
    some = learner("objective.name=contrastive", f"objective.loss={loss}", *changes)
    with torch.no_grad():
        next(reversed(list(some.network.parameters()))).view(-1)[::2] += scale  # the bias of the softmax
    batch = some.batch(0)
    assert len(batch.rows) == 1
    assert batch.tokens.size(2) == 3
    found = some.step(batch, context())
    found.total.backward()
    assert found.total.isfinite()
    assert found.total >= 0 or loss == "difference"
    assert all(
        weight.grad.isfinite().all() for weight in some.network.parameters() if weight.grad is not None
    )


def test_photographs_without_captions_are_no_trouble() -> None:
    made = learner("objective.name=contrastive")
    corpus = made.ready.train_set
    rows = made.batch(0).rows
    few = replace(
        corpus, captions=[[] if row == rows[0] else group for row, group in enumerate(corpus.captions)]
    )
    bare = replace(made, ready=replace(made.ready, train_set=few))
    for number in range(made.steps_per_epoch):
        loss = bare.step(bare.batch(number), context(number))
        assert loss.total.isfinite()
    none = replace(
        corpus, captions=[[] if row in rows else group for row, group in enumerate(corpus.captions)]
    )
    bare = replace(made, ready=replace(made.ready, train_set=none))
    (share,) = none.shares(rows, [rows], made._draw(0))
    loss = bare.step(share, context())
    loss.total.backward()
    assert loss.total.item() == 0


def build(**settings: object) -> Objective:
    return build_contrastive(ContrastiveConfig.model_validate(settings), learner().supplies)


@pytest.mark.parametrize("compat", ["paper", "authors"])
def test_a_pool_smaller_than_k_is_refused(compat: str) -> None:
    with pytest.raises(TellapartError, match="contrastive: negatives is 1000") as caught:
        build(negatives=1000, compat=compat)
    assert "fewer negatives" in caught.value.hint
    build(negatives=1000, compat=compat, parts="positive")  # which needs none


def test_a_pool_that_is_just_large_enough_is_taken() -> None:
    some = learner()
    others = len(some.ready.train_set.captions) - 1
    objective = build(negatives=others, compat="authors")
    assert objective(some.network, some.batch(0), context()).total.isfinite()
    with pytest.raises(TellapartError, match=f"one has {others} other images"):
        build(negatives=others + 1, compat="authors")


def test_any_captioner_with_the_same_words_is_a_reference(tmp_path: Path) -> None:
    folder = saved_copy(learner(captioner="adaptive"), tmp_path / "adaptive")
    some, objective = contrast(
        f"objective.reference={folder}", "objective.negatives=2", captioner="neuraltalk"
    )
    assert type(objective.reference.captioner) is not type(some.network)
    batch, sign = some.batch(), some.network.text.pad
    loss = objective(some.network, batch, context())
    ratios = likelihoods(some.network, batch, batch.tokens, sign) - likelihoods(
        objective.reference.captioner, batch, batch.tokens, sign
    )
    there = batch.mask[:, :, 1:].any(-1)
    assert loss.parts["log_ratio_positive"] == pytest.approx(ratios[there].mean().item(), rel=1e-6)
    assert loss.parts["positive"] == pytest.approx(-ratios.sigmoid().log()[there].mean().item(), rel=1e-6)


def test_a_reference_with_other_words_is_refused_by_name(tmp_path: Path) -> None:
    folder = saved_copy(learner("data.min_count=40"), tmp_path / "few-words")
    with pytest.raises(TellapartError, match="few-words: this captioner has another vocabulary"):
        learner("objective.name=contrastive", f"objective.reference={folder}")


@settings(max_examples=20)
@given(st.lists(st.integers(2, 30), min_size=1, max_size=8), st.integers(0, 40))
def test_cuts_are_the_best_there_are(lengths: list[int], look: int) -> None:
    rising = sorted(lengths)

    def cost(cuts: list[int]) -> int:
        return sum((last - first) * rising[last - 1] + look for first, last in pairwise([0, *cuts]))

    inner = range(1, len(rising))
    every = [[*some, len(rising)] for size in range(len(rising)) for some in combinations(inner, size)]
    assert cost(best_cuts(rising, look=look)) == min(map(cost, every))


@pytest.mark.parametrize("captioner", ["mrnn", "transformer"])
def test_cutting_by_length_changes_no_value(captioner: str) -> None:
    some, objective = contrast(captioner=captioner)
    tokens, mask = (part.flatten(1, 2) for part in drawn_for(objective, some.batch()))
    mask[0, 0] = False
    found = log_probabilities_by_length(some.network, some.batch().vision, tokens, mask)
    expected = log_probabilities(some.network, some.batch().vision, tokens, mask)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)
    assert found[0, 0] == 0


@pytest.mark.parametrize(
    ("captioner", "part"), [("transformer", "encoder"), ("topdown", "remember"), ("adaptive", "remember")]
)
def test_an_image_is_looked_at_once_for_captions_of_all_lengths(captioner: str, part: str) -> None:
    some, objective = contrast(captioner=captioner)
    tokens, mask = (part.flatten(1, 2) for part in drawn_for(objective, some.batch()))
    assert len(best_cuts(sorted(mask.sum(-1).amax(0).tolist()), look=GROUP)) > 1
    looks: list[object] = []
    some.network.get_submodule(part).register_forward_hook(lambda *call: looks.append(call))
    log_probabilities_by_length(some.network, some.batch().vision, tokens, mask)
    assert len(looks) == 1
