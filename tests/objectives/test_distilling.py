"""Distillation from one captioner, from several, and from oneself."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import torch
from tests.objectives.material import context, doubled, learner, saved_copy

from tellapart.captioner_learner import CaptionerLearner
from tellapart.errors import TellapartError
from tellapart.objectives.distilling import build_distillation
from tellapart.objectives.settings.likelihood import DistillationConfig
from tellapart.objectives.tokens import mle
from tellapart.types import AnyCaptioner, Batch


@cache
def made() -> CaptionerLearner:
    some = learner("captioner.dropout=0.0")
    some.network.double()
    return some


def distil(network: AnyCaptioner, batch: Batch, **chosen: object) -> tuple[dict[str, float], torch.Tensor]:
    """Parts of the loss, and the gradient of all weights as one row."""
    objective = build_distillation(DistillationConfig.model_validate(chosen), made().supplies)
    loss = objective(network, batch, context())
    gradients = torch.autograd.grad(loss.total, list(network.parameters()))
    return dict(loss.parts), torch.cat([gradient.flatten() for gradient in gradients])


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_nothing_is_learnt_from_oneself(temperature: float) -> None:
    parts, gradient = distil(made().network, doubled(made().batch(0)), mle_share=0.0, temperature=temperature)
    assert list(parts) == ["distillation"]
    assert parts["distillation"] > 0.1
    assert gradient.abs().max() < 1e-12
    _, mixed = distil(made().network, doubled(made().batch(0)), mle_share=0.5, temperature=temperature)
    assert mixed.abs().max() > 1e-3


def another(folder: Path, seed: int) -> AnyCaptioner:
    """A captioner like the learner's with other weights, saved in a folder."""
    other = learner()
    torch.manual_seed(seed)
    with torch.no_grad():
        for weight in other.network.parameters():
            weight.add_(torch.randn_like(weight))
    saved_copy(other, folder)
    return other.network.eval().requires_grad_(requires_grad=False)


def test_teachers_are_averaged_and_the_two_terms_share_a_weight_of_one(tmp_path: Path) -> None:
    some = learner("captioner.dropout=0.0")
    batch, network = some.batch(0), some.network
    names = [str(tmp_path / "one"), str(tmp_path / "two")]
    teachers = [another(tmp_path / "one", 1), another(tmp_path / "two", 2)]
    given, labels, mask = batch.tokens[:, :, :-1], batch.tokens[:, :, 1:], batch.mask[:, :, 1:]
    logits = network.predict(batch.vision, given).logits
    one, two = [(teacher.predict(batch.vision, given).logits / 2).softmax(-1) for teacher in teachers]
    assert (one - two).abs().max() > 0.1
    each = -4 * ((one + two) / 2 * (logits / 2).log_softmax(-1)).sum(-1)  # T² = 4
    config = DistillationConfig(teachers=names, temperature=2.0, mle_share=0.3)
    parts = build_distillation(config, some.supplies)(network, batch, context()).parts
    assert parts["distillation"] == pytest.approx(0.7 * each[mask].mean().item(), rel=1e-4)
    assert parts["mle"] == pytest.approx(0.3 * mle(logits, labels, mask)[mask].mean().item(), rel=1e-4)
    alone = build_distillation(DistillationConfig(mle_share=1.0), some.supplies)(network, batch, context())
    assert list(alone.parts) == ["mle"]


def test_teachers_stay_as_they_are_and_are_neither_trained_nor_saved() -> None:
    some = learner("objective.name=distillation", "objective.mle_share=0.0", "captioner.dropout=0.0")
    assert {name.split(".")[0] for name in some.step.state_dict()} == {"captioner"}
    batch = some.batch(0)
    given, mask = batch.tokens[:, :, :-1], batch.mask[:, :, 1:]
    teacher = some.network.predict(batch.vision, given).logits.detach().softmax(-1)
    with torch.no_grad():
        for weight in some.network.parameters():
            weight.mul_(2)
    student = some.network.predict(batch.vision, given).logits.log_softmax(-1)
    found = some.step.train()(batch, context()).total
    torch.testing.assert_close(found, -(teacher * student).sum(-1)[mask].mean())
    assert found > -(student.exp() * student).sum(-1)[mask].mean() + 0.01, "a teacher that follows"


def test_a_teacher_with_other_words_is_refused_by_name(tmp_path: Path) -> None:
    other = learner("data.scenes=20", "data.min_count=4")
    saved_copy(other, tmp_path / "other")
    with pytest.raises(TellapartError, match="another vocabulary") as caught:
        learner("objective.name=distillation", f'objective.teachers=["{tmp_path / "other"}"]').step  # noqa: B018
    assert str(tmp_path / "other") in caught.value.problem
    assert caught.value.hint
