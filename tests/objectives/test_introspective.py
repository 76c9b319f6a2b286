"""Introspective learning: the captioner compared with itself before another image."""

from __future__ import annotations

from dataclasses import replace
from math import log

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.objectives.material import context, doubled, learner
from tests.objectives.precise import Precise, likelihoods, move

from tellapart.errors import TellapartError
from tellapart.objectives.introspective import Introspective, build_introspective
from tellapart.objectives.settings.contrastive import IntrospectiveConfig
from tellapart.world import ALONE


def introspective(*changes: str) -> tuple[Precise, Introspective]:
    some = Precise(learner("objective.name=introspective", *changes))
    objective = some.objective()
    assert isinstance(objective, Introspective)
    return some, objective


@pytest.mark.parametrize("form", ["logistic", "margin"])
def test_the_loss_compares_the_caption_before_both_images(form: str) -> None:
    some, objective = introspective(
        f"objective.form={form}", "objective.margin=0.7", "objective.mle_weight=0.5"
    )
    move(some.network)
    batch, sign = some.batch(), some.network.text.pad
    others = replace(batch, vision=some.supplies.training_set.vision(objective.others(batch.rows, context())))
    own = likelihoods(some.network, batch, batch.tokens, sign)
    there = batch.mask[:, :, 1:].any(-1)
    ratios = (own - likelihoods(some.network, others, batch.tokens, sign))[there]
    expected = -ratios.sigmoid().log() if form == "logistic" else (0.7 - ratios).clamp_min(0)
    loss = objective(some.network, batch, context())
    assert loss.parts["introspective"] == pytest.approx(expected.mean().item(), abs=1e-9)
    assert loss.parts["log_ratio"] == pytest.approx(ratios.mean().item(), abs=1e-9)
    tokens = batch.mask[:, :, 1:].sum().item()
    assert loss.parts["mle"] == pytest.approx(-0.5 * own.sum().item() / tokens, abs=1e-9)
    assert loss.total.item() == pytest.approx(loss.parts["introspective"] + loss.parts["mle"], abs=1e-12)


def test_a_captioner_that_sees_no_difference_pays_log_2() -> None:
    some, objective = introspective("objective.mle_weight=0.0")
    with torch.no_grad():
        some.network.get_parameter("from_image.weight").zero_()
    loss = objective(some.network, some.batch(), context())
    assert loss.total.item() == pytest.approx(log(2), abs=1e-12)
    assert set(loss.terms) == {"introspective"}
    (gradient,) = torch.autograd.grad(loss.total, [some.network.get_parameter("from_image.weight")])
    assert gradient.abs().max() > 1e-6


@settings(max_examples=20)
@given(st.integers(0, 47), st.integers(0, 500), st.booleans(), st.sampled_from([0, 3]))
def test_the_other_image_is_another_one_and_stays(row: int, step: int, redraw: bool, neighbours: int) -> None:
    changes = (f"objective.redraw={str(redraw).lower()}", f"objective.neighbours={neighbours}")
    some, objective = introspective(*changes)
    (other,) = objective.others([row], context(step))
    assert other != row
    assert 0 <= other < 48
    assert objective.others([5, row], context(step))[1] == other
    if neighbours:
        assert other in some.supplies.training_set.nearest(neighbours)[row]
    visits = {objective.others([row], context(number))[0] for number in range(30)}
    assert (len(visits) == 1) != redraw


def test_any_other_image_may_come() -> None:
    _, objective = introspective("objective.redraw=true")
    drawn = {objective.others([7], context(step))[0] for step in range(600)}
    assert drawn == set(range(48)) - {7}


def test_shares_add_up_and_extremes_are_finite() -> None:
    some, objective = introspective()
    whole = objective(some.network, some.batch(), context())
    shares = [doubled(share) for share in learner("training.portions=3").shares(0, ALONE)]
    losses = [objective(some.network, share, context()) for share in shares]
    assert len(losses) > 1
    assert sum(loss.total.item() for loss in losses) == pytest.approx(whole.total.item(), abs=1e-12)
    with torch.no_grad():
        some.network.get_parameter("output.weight").mul_(1e5)
    assert objective(some.network, some.batch(), context()).total.isfinite()


def test_one_image_is_refused() -> None:
    made = learner()
    alone = replace(made, ready=replace(made.ready, train_set=made.ready.train_set.rows(0, 1)))
    with pytest.raises(TellapartError, match="introspective: there is one training image"):
        build_introspective(IntrospectiveConfig(), alone.supplies)
