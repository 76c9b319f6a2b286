"""Laws that hold for every objective that is registered, whoever wrote it."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.objectives.material import SMALL, context, learner, objective_changes
from torch.nn.functional import pad

from tellapart.captioner_learner import CaptionerLearner
from tellapart.objectives.parts import OBJECTIVES
from tellapart.recipe import load_recipe
from tellapart.run import Run, resume_run, start_run
from tellapart.training import prepare_learner, train_steps
from tellapart.types import Batch, Loss
from tellapart.world import ALONE

NAMES = OBJECTIVES.names()
STILL = "captioner.dropout=0.0"


@pytest.fixture(scope="module")
def needed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for what objectives need."""
    return tmp_path_factory.mktemp("needed")


def made(name: str, needed: Path, *changes: str) -> CaptionerLearner:
    """A Transformer without dropout, for it gives all that an objective may ask for."""
    return learner(STILL, *objective_changes(name, needed), *changes, captioner="transformer")


def loss_of(some: CaptionerLearner, batch: Batch) -> tuple[Loss, dict[str, torch.Tensor]]:
    """The loss of a batch, and the gradient of everything that is trained."""
    some.step.zero_grad(set_to_none=True)
    loss: Loss = some.step.train()(batch, context())
    loss.total.backward()  # type: ignore[no-untyped-call]
    weights = some.step.named_parameters()
    return loss, {name: weight.grad.clone() for name, weight in weights if weight.grad is not None}


def close(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-3, atol=2e-5, msg=name)


@pytest.mark.parametrize("name", NAMES)
def test_the_gradient_reaches_the_captioner_and_terms_add_up(name: str, needed: Path) -> None:
    some = made(name, needed)
    loss, gradients = loss_of(some, some.batch(0))
    assert loss.total.isfinite()
    assert sum(term.item() for term in loss.terms.values()) == pytest.approx(loss.total.item(), rel=1e-5)
    assert all(gradient.isfinite().all() for gradient in gradients.values())
    assert sum(gradient.norm() for key, gradient in gradients.items() if key.startswith("captioner.")) > 1e-6


@pytest.mark.parametrize("name", NAMES)
def test_padding_changes_nothing(name: str, needed: Path) -> None:
    some = made(name, needed)
    batch = some.batch(0)
    longer = replace(
        batch, tokens=pad(batch.tokens, (0, 3), value=some.network.text.pad), mask=pad(batch.mask, (0, 3))
    )
    loss, gradients = loss_of(some, batch)
    again, found = loss_of(some, longer)
    assert again.total.item() == pytest.approx(loss.total.item(), rel=1e-5, abs=1e-6)
    close(found, gradients)


@pytest.mark.parametrize("name", NAMES)
def test_the_losses_of_shares_add_up_to_that_of_the_batch(name: str, needed: Path) -> None:
    some, divided = made(name, needed), made(name, needed, "training.portions=3")
    (batch,) = some.shares(0, ALONE)
    loss, gradients = loss_of(some, batch)
    shares = [loss_of(divided, share) for share in divided.shares(0, ALONE)]
    assert len(shares) == 2  # of four images, portions of two
    assert sum(share.total.item() for share, _ in shares) == pytest.approx(
        loss.total.item(), rel=1e-4, abs=1e-6
    )
    for part, value in loss.parts.items():
        assert sum(share.parts[part] for share, _ in shares) == pytest.approx(value, rel=1e-3, abs=1e-5), part
    added: dict[str, torch.Tensor] = {}
    for _, found in shares:
        added = {key: added.get(key, 0) + gradient for key, gradient in found.items()}
    close(added, gradients)


def one_word(batch: Batch, end: int) -> Batch:
    """One image, whose only caption has one word."""
    tokens, mask = batch.tokens[:1, :1, :3].clone(), torch.ones(1, 1, 3, dtype=torch.bool)
    tokens[0, 0, 2] = end
    vision = batch.vision.select(torch.tensor([0]))
    return Batch(batch.image_ids[:1], vision, tokens, mask, batch.rows[:1], ((batch.places[0][0],),))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [0.0, 1e4])
def test_one_image_with_one_word_and_extreme_logits_is_finite(name: str, scale: float, needed: Path) -> None:
    some = made(name, needed)
    bias = some.network.get_parameter("words.bias")
    order = torch.randperm(len(bias), generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        bias.add_(scale * torch.linspace(-1, 1, len(bias))[order])
    loss, gradients = loss_of(some, one_word(some.batch(0), some.network.text.end))
    assert loss.total.isfinite()
    assert all(gradient.isfinite().all() for gradient in gradients.values())


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_without_a_caption_does_no_harm(name: str, needed: Path) -> None:
    some = made(name, needed)
    batch = some.batch(0)
    mask, tokens = batch.mask.clone(), batch.tokens.clone()
    mask[1], tokens[1] = False, some.network.text.pad
    places = tuple(() if row == 1 else places for row, places in enumerate(batch.places))
    loss, gradients = loss_of(some, replace(batch, mask=mask, tokens=tokens, places=places, whole=None))
    assert loss.total.isfinite()
    assert all(gradient.isfinite().all() for gradient in gradients.values())


def states(run: Run) -> Any:
    path = run.latest_checkpoint()
    assert path is not None
    state = torch.load(path, weights_only=True)
    return {
        **state["step"],
        **{f"moment {k} {n}": v for k, s in state["optimiser"]["state"].items() for n, v in s.items()},
    }


@pytest.mark.parametrize("name", NAMES)
def test_resumed_in_the_middle_of_an_epoch_equals_uninterrupted(
    name: str, needed: Path, tmp_path: Path
) -> None:
    changes = [*SMALL, "captioner.name=transformer", *objective_changes(name, needed)]
    changes += [
        "captioner.dropout=0.1",
        "training.images_per_batch=12",
        "training.epochs=2",
        "training.log_every=1",
    ]
    recipe = load_recipe(
        "mrnn-shapes", changes=[*changes, "training.evaluate_every=3", "training.patience=0"]
    )

    def steps(run: Run, stop_after: int = -1) -> Sequence[int]:
        made_ready = prepare_learner(recipe, watch=lambda done, total: None)
        taken = []
        for report in train_steps(recipe, run, made_ready):
            taken.append(report.step)
            if report.step == stop_after:
                os.kill(os.getpid(), signal.SIGINT)
        return taken

    whole = start_run(tmp_path / "whole", recipe.to_toml())
    assert steps(whole) == list(range(1, 9))
    stopped = start_run(tmp_path / "stopped", recipe.to_toml())
    assert steps(stopped, stop_after=4) == [1, 2, 3, 4, 5]
    assert steps(resume_run(tmp_path / "stopped", recipe.to_toml())) == [6, 7, 8]
    expected, found = states(whole), states(stopped)
    assert found.keys() == expected.keys()
    for key, tensor in found.items():
        assert torch.equal(torch.as_tensor(tensor), torch.as_tensor(expected[key])), key
