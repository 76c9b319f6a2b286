"""One update of the weights: portions, terms, precision."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import pytest
import torch

from tellapart.captioner_learner import CaptionerLearner
from tellapart.recipe import Recipe, load_recipe
from tellapart.run import start_run
from tellapart.stepping import Moment, Taken, Tally, build_optimiser, take_step
from tellapart.training import prepare_learner, train_steps
from tellapart.types import Loss
from tellapart.world import ALONE, World

T = TypeVar("T")
SMALL = (
    "data.scenes=60",
    "captioner.name=transformer",
    "captioner.preset=tiny",
    "captioner.dropout=0.0",
    "training.images_per_batch=8",
    "training.epochs=1",
    "training.log_every=1",
)
MIXED = (
    "objective.name=mix",
    'objective.parts=[{ name = "mle" }, { name = "mrnn-cost", weight = 0.5, l2 = 0.01 }]',
)


def recipe(*changes: str) -> Recipe:
    return load_recipe("mrnn-shapes", changes=[*SMALL, *changes])


def ready(some: Recipe) -> CaptionerLearner:
    learner = prepare_learner(some, watch=lambda done, total: None)
    assert isinstance(learner, CaptionerLearner)
    learner.network.double()
    return learner


def doubled(learner: CaptionerLearner, world: World = ALONE) -> list[object]:
    from tests.objectives.material import doubled as in_double

    return [in_double(share) for share in learner.shares(0, world)]


def one_step(some: Recipe, *, by_term: bool = False) -> tuple[Taken, dict[str, torch.Tensor]]:
    learner = ready(some)
    optimiser = build_optimiser(some.optimiser, learner.step)
    taken = take_step(learner.step.train(), optimiser, doubled(learner), some, Moment(0, 10, by_term=by_term))  # type: ignore[arg-type]
    gradients = {name: weight.grad for name, weight in learner.network.named_parameters()}
    return taken, {name: gradient for name, gradient in gradients.items() if gradient is not None}


@pytest.mark.parametrize("portions", [2, 3, 8, 20])
@pytest.mark.parametrize("objective", [(), MIXED], ids=["mle", "mix"])
def test_a_batch_in_portions_gives_the_gradient_of_the_batch(
    portions: int, objective: tuple[str, ...]
) -> None:
    whole, expected = one_step(recipe("optimiser.clip_norm=0", *objective))
    parts, found = one_step(recipe("optimiser.clip_norm=0", *objective, f"training.portions={portions}"))
    assert parts.loss == pytest.approx(whole.loss, rel=1e-10)
    assert parts.parts == pytest.approx(dict(whole.parts), rel=1e-9)
    assert found.keys() == expected.keys()
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-9, atol=1e-12, msg=name)


def test_norms_of_terms_are_those_of_their_gradients_and_change_nothing() -> None:
    some = recipe("optimiser.clip_norm=0", *MIXED)
    plain, expected = one_step(some)
    by_term, found = one_step(some, by_term=True)
    assert not plain.norms
    assert set(by_term.norms) == {"mle", "mrnn-cost"}
    for name, gradient in found.items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-9, atol=1e-12)
    learner = ready(recipe())
    (share,) = doubled(learner)
    from tests.objectives.material import context

    learner.step(share, context()).total.backward()
    alone = torch.stack([w.grad.norm() for w in learner.network.parameters() if w.grad is not None]).norm()
    assert by_term.norms["mle"] == pytest.approx(alone.item(), rel=1e-9)


def test_the_log_tells_of_every_part_its_weight_and_its_gradient(tmp_path: Path) -> None:
    some = recipe(*MIXED)
    learner = prepare_learner(some, watch=lambda done, total: None)
    next(iter(train_steps(some, start_run(tmp_path / "run", some.to_toml()), learner)))
    entry = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[0])
    for key in (
        "mle",
        "mle/mle",
        "mle/weight",
        "mle/gradient_norm",
        "mrnn-cost/l2",
        "mrnn-cost/gradient_norm",
    ):
        assert key in entry, key
    assert entry["loss"] == pytest.approx(entry["mle"] + entry["mrnn-cost"])
    assert entry["mrnn-cost"] == pytest.approx(0.5 * (entry["mrnn-cost/bits"] + entry["mrnn-cost/l2"]))


def test_16_bits_train_too(tmp_path: Path) -> None:
    some = recipe("training.precision=bf16", "optimiser.learning_rate=0.003")
    learner = prepare_learner(some, watch=lambda done, total: None)
    reports = list(train_steps(some, start_run(tmp_path / "run", some.to_toml()), learner))
    single = recipe("optimiser.learning_rate=0.003")
    other = prepare_learner(single, watch=lambda done, total: None)
    first = next(iter(train_steps(single, start_run(tmp_path / "other", single.to_toml()), other)))
    # Eight bits of a number are kept: near the value in full precision, and not equal to it.
    assert reports[0].taken.loss == pytest.approx(first.taken.loss, rel=0.02)
    assert reports[0].taken.loss != first.taken.loss
    assert reports[-1].taken.loss < reports[0].taken.loss
    assert all(weight.dtype == torch.float32 for weight in learner.network.parameters())


@pytest.mark.parametrize(("wanted", "inside"), [("fast", "medium"), ("single", "highest")])
def test_products_are_coarse_in_both_passes_of_a_step_and_nowhere_else(wanted: str, inside: str) -> None:
    some = recipe(f"training.precision={wanted}")
    learner = prepare_learner(some, watch=lambda done, total: None)
    seen = []

    def note(*_: object) -> None:
        seen.append(torch.get_float32_matmul_precision())

    learner.step.register_forward_hook(note)
    next(learner.network.parameters()).register_hook(note)  # type: ignore[no-untyped-call]
    optimiser = build_optimiser(some.optimiser, learner.step)
    take_step(learner.step, optimiser, learner.shares(0, ALONE), some, Moment(0, 1))
    assert set(seen) == {inside}
    assert len(seen) >= 2
    assert torch.get_float32_matmul_precision() == "highest"


def test_coarse_products_change_little(tmp_path: Path) -> None:
    losses = {}
    for wanted in ("single", "fast"):
        some = recipe(f"training.precision={wanted}", "optimiser.learning_rate=0.003")
        learner = prepare_learner(some, watch=lambda done, total: None)
        run = start_run(tmp_path / wanted, some.to_toml())
        losses[wanted] = [report.taken.loss for report in train_steps(some, run, learner)]
    assert losses["fast"] == pytest.approx(losses["single"], rel=0.05)
    assert losses["fast"][-1] < losses["fast"][0]


def test_shares_of_processes_are_the_batch() -> None:
    learner = ready(recipe())
    whole = learner.batch(0)
    worlds = [World(rank, 3) for rank in range(3)]
    shares = [share for world in worlds for share in learner.shares(0, world)]
    assert sorted(name for share in shares for name in share.image_ids) == sorted(whole.image_ids)
    assert all(share.totals() == whole.totals() for share in shares)
    assert sum(int(share.mask[:, :, 1:].sum()) for share in shares) == whole.totals().tokens


class Doubled(World):
    """A process whose only companion finds the very same."""

    def add_up(self, tensors: Iterable[torch.Tensor]) -> None:
        for tensor in tensors:
            tensor.mul_(2)

    def agree(self, value: T) -> T:
        return value


def test_norms_and_missing_gradients_with_a_companion() -> None:
    weights = [torch.nn.Parameter(torch.ones(2)) for _ in range(3)]
    tally = Tally()
    terms = {"one": 3 * weights[0].sum(), "two": 5 * weights[1].sum()}
    total = torch.stack(list(terms.values())).sum()
    tally.take(Loss(total, {}, terms), weights, by_term=True)
    taken = tally.together(weights, Doubled(0, 2))
    assert taken.norms == pytest.approx({"one": 6 * 2**0.5, "two": 10 * 2**0.5})
    for weight, expected in zip(weights[:2], (6.0, 10.0), strict=True):
        assert weight.grad is not None
        assert torch.equal(weight.grad, torch.full((2,), expected))
    assert weights[2].grad is None  # Adam would move it by its momentum, and AdamW let it decay
