"""Mixtures: weights on schedules, every part in the log, and nothing computed in vain."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tests.objectives.material import context, doubled, learner
from torch import Tensor, nn

from tellapart.errors import TellapartError
from tellapart.objectives.compose import Mixture, add_up, token_objective
from tellapart.objectives.likelihood import squared_norm
from tellapart.objectives.mixing import build_mix
from tellapart.objectives.settings.mix import MixConfig
from tellapart.objectives.tokens import mle
from tellapart.recipe import load_recipe
from tellapart.run import Run
from tellapart.training import train
from tellapart.types import AnyCaptioner, Batch, Context, Loss
from tellapart.world import ALONE

RISING = {"kind": "linear", "start": 0.0, "end": 1.0}


def weights(captioner: AnyCaptioner, batch: Batch, context: Context) -> Loss:
    """An objective of a known gradient: half the squared norm."""
    share = len(batch.vision) / batch.totals().images
    return add_up({"norm": 0.5 * share * squared_norm(captioner)})


def refuses(captioner: AnyCaptioner, batch: Batch, context: Context) -> Loss:
    raise AssertionError("computed in vain")


class Counts(nn.Module):
    """An objective that remembers how often it was asked."""

    asked: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("asked", torch.zeros(()))

    def forward(self, captioner: AnyCaptioner, batch: Batch, context: Context) -> Loss:
        self.asked += 1
        return weights(captioner, batch, context)


def test_the_sum_is_weighed_and_the_log_holds_parts_and_weights() -> None:
    made = learner()
    batch = made.batch(0)
    network, likelihood = made.network.eval(), token_objective(mle, name="mle")
    mixture = Mixture([("mle", likelihood, lambda step: 0.1 * step), ("norm", weights, lambda step: 2.0)])
    loss = mixture(network, batch, context(3))
    alone, norm = likelihood(network, batch, context()).total, squared_norm(network) / 2
    torch.testing.assert_close(loss.total, 0.3 * alone + 2 * norm)
    assert loss.parts == pytest.approx(
        {
            "mle/weight": 0.3,
            "norm/weight": 2.0,
            "mle/mle": alone.item(),
            "norm/norm": norm.item(),
            "mle": 0.3 * alone.item(),
            "norm": 2 * norm.item(),
        }
    )
    torch.testing.assert_close(sum(loss.terms.values()), loss.total)


def test_the_gradient_is_the_weighed_sum_of_the_parts_gradients() -> None:
    made = learner()
    network, batch = made.network.double().eval(), doubled(made.batch(0))
    likelihood = token_objective(mle, name="mle")
    parameters = list(network.parameters())
    mixture = Mixture([("mle", likelihood, lambda step: 0.25), ("norm", weights, lambda step: 0.75)])
    found = torch.autograd.grad(mixture(network, batch, context()).total, parameters)
    one = torch.autograd.grad(likelihood(network, batch, context()).total, parameters)
    for gradient, part, weight in zip(found, one, parameters, strict=True):
        torch.testing.assert_close(gradient, 0.75 * weight + 0.25 * part, rtol=0, atol=1e-12)


def test_a_part_of_weight_0_is_not_computed() -> None:
    made = learner()
    mixture = Mixture([("no", refuses, lambda step: float(step > 5)), ("norm", weights, lambda step: 1.0)])
    loss = mixture(made.network, made.batch(0), context(5))
    assert loss.parts["no/weight"] == 0
    assert set(loss.terms) == {"norm"}
    with pytest.raises(AssertionError, match="in vain"):
        mixture(made.network, made.batch(0), context(6))


def test_where_all_weights_are_0_nothing_is_learnt() -> None:
    made = learner()
    loss = Mixture([("no", refuses, lambda step: 0.0)])(made.network, made.batch(0), context())
    assert loss.total.item() == 0
    loss.total.backward()
    assert all(weight.grad is None for weight in made.network.parameters())


def test_shares_of_a_batch_add_up_in_loss_log_and_gradient() -> None:
    whole, split = learner(), learner("training.portions=2")
    changes = [{"name": "mle", "weight": 0.3}, {"name": "mrnn-cost", "weight": 0.7, "l2": 0.1}]
    mixture = build_mix(MixConfig.model_validate({"parts": changes}), whole.supplies)
    network = whole.network.double().eval()
    (batch,), shares = whole.shares(0, ALONE), split.shares(0, ALONE)
    assert len(shares) == 2
    together = mixture(network, doubled(batch), context())
    apart = [mixture(network, doubled(share), context()) for share in shares]
    for name, value in together.parts.items():
        assert sum(loss.parts[name] for loss in apart) == pytest.approx(value, abs=1e-9), name
    parameters = list(network.parameters())
    one = torch.autograd.grad(together.total, parameters)
    many = torch.autograd.grad(torch.stack([loss.total for loss in apart]).sum(), parameters)
    torch.testing.assert_close(one, many, rtol=0, atol=1e-10)


def test_two_of_one_name_are_told_apart() -> None:
    made = learner()
    parts = [{"name": "mle", "weight": 0.5}, {"name": "mle", "weight": RISING}, {"name": "mrnn-cost"}]
    mixture = build_mix(MixConfig.model_validate({"parts": parts}), made.supplies)
    middle = made.supplies.pace.steps // 2
    loss = mixture(made.network, made.batch(0), context(middle))
    assert set(loss.terms) == {"mle", "mle-2", "mrnn-cost"}
    assert loss.parts["mle-2/weight"] == pytest.approx(0.5, abs=0.02)
    assert loss.parts["mrnn-cost/weight"] == 1


def test_what_a_part_remembers_goes_into_checkpoints() -> None:
    made = learner()
    mixture = Mixture([("counts", Counts(), lambda step: 1.0)])
    mixture(made.network, made.batch(0), context())
    (state,) = mixture.state_dict().items()
    assert state == ("counts.asked", torch.tensor(1.0))


def test_a_mixture_in_a_recipe_reads_back_as_the_same_and_logs_gradient_norms(tmp_path: Path) -> None:
    file = tmp_path / "mixed.toml"
    file.write_text(
        """
        [data]
        format = "shapes"
        scenes = 40
        min_count = 1
        [encoder]
        name = "patches"
        [captioner]
        name = "mrnn"
        preset = "tiny"
        [objective]
        name = "mix"
        parts = [
          { name = "mle", weight = { kind = "linear", start = 1.0, end = 0.5 } },
          { name = "mrnn-cost", weight = 0.5, l2 = 1e-3 },
        ]
        [training]
        epochs = 1
        images_per_batch = 8
        log_every = 1
        """
    )
    recipe = load_recipe(str(file))
    run = train(recipe, tmp_path / "run")
    assert load_recipe(str(run.recipe)) == recipe
    entries = [json.loads(line) for line in Run(run.folder).metrics.read_text().splitlines()]
    assert [entry["mle/weight"] for entry in entries] == pytest.approx([1.0, 0.875, 0.75, 0.625])
    for entry in entries:
        assert entry["loss"] == pytest.approx(entry["mle"] + entry["mrnn-cost"])
        assert entry["mle/gradient_norm"] > 0
        assert entry["mrnn-cost/gradient_norm"] > 0


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([], "at least 1 item"),
        ([{"weight": 1.0}], "part 1: needs a name"),
        ([{"name": "mle"}, {"name": "ml"}], "part 2: no objective is called 'ml'; did you mean 'mle'?"),
        ([{"name": "mrnn-cost", "l3": 1.0}], "part 1: l3"),
        ([{"name": "mle", "weight": -1.0}], "part 1: weight"),
        ([{"name": "mle", "weight": {"kind": "sine"}}], "part 1: weight"),
        ([{"name": "unkt", "weight": 1.0, "hidden": 3}], "part 1: hidden"),
    ],
)
def test_a_mistake_in_a_part_is_named(parts: list[dict[str, object]], said: str, tmp_path: Path) -> None:
    file = tmp_path / "mixed.toml"
    written = ", ".join(
        "{ " + ", ".join(f"{k} = {_toml(v)}" for k, v in part.items()) + " }" for part in parts
    )
    file.write_text(f'[data]\nformat = "shapes"\n[objective]\nname = "mix"\nparts = [{written}]\n')
    with pytest.raises(TellapartError) as caught:
        load_recipe(str(file))
    assert said in caught.value.problem
    assert f"{file}:5: objective.parts" in caught.value.problem


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items()) + " }"
    return json.dumps(value)
