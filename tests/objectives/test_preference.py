"""Direct preference optimisation on pairs that self-retrieval makes."""

from __future__ import annotations

from dataclasses import replace
from math import log
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.objectives.material import context, doubled, learner, objective_changes, saved_copy
from tests.objectives.precise import Precise, likelihoods, move
from torch.nn.functional import normalize
from torch.nn.functional import pad as padded

from tellapart.errors import TellapartError
from tellapart.objectives.drawn import Drawn
from tellapart.objectives.preference import Preference, build_dpo, choose_pairs, preference_loss
from tellapart.objectives.settings.preference import DPOConfig
from tellapart.world import ALONE


@pytest.fixture(scope="module")
def needed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("needed")


def dpo(needed: Path, *changes: str) -> tuple[Precise, Preference]:
    some = Precise(learner(*objective_changes("dpo", needed), "objective.samples=4", *changes))
    objective = some.objective()
    assert isinstance(objective, Preference)
    return some, objective


def test_at_equal_models_each_pair_costs_log_2(needed: Path) -> None:
    some, objective = dpo(needed)
    loss = objective(some.network, some.batch(), context())
    assert loss.parts["pairs"] > 0
    assert loss.total.item() == pytest.approx(log(2) * loss.parts["pairs"], abs=1e-12)
    found = torch.autograd.grad(loss.total, some.weights(), materialize_grads=True)
    assert max(gradient.abs().max() for gradient in found) > 1e-6


@given(st.floats(-1e4, 1e4), st.floats(-1e4, 1e4), st.floats(0.01, 5))
def test_the_loss_falls_as_the_winner_gains(winner: float, loser: float, beta: float) -> None:
    one, two = torch.tensor([winner], dtype=torch.float64), torch.tensor([loser], dtype=torch.float64)
    value = preference_loss(one, two, beta=beta)
    assert value.isfinite()
    assert value >= 0
    assert preference_loss(one, one, beta=beta).item() == pytest.approx(log(2))
    assert preference_loss(one + 1, two, beta=beta) <= value
    assert value.item() == pytest.approx(np.logaddexp(0, -beta * (winner - loser)), abs=1e-12)


def test_the_objective_is_equation_7_on_the_pairs_it_chose(needed: Path) -> None:
    some, objective = dpo(needed, "objective.beta=0.5", "objective.mle_weight=0.25")
    move(some.network)
    batch, sign = some.batch(), some.network.text.pad
    generators = [context().of_image(row) for row in batch.rows]
    drawn = objective.drawing(some.network, batch.vision, generators)
    ranks, margins = map(torch.from_numpy, objective.finder(batch.rows, drawn.written()))
    pairs, paired = choose_pairs(drawn, ranks, margins, prefer="rank")
    tokens = pairs.tokens.masked_fill(~pairs.mask, sign)
    ratios = likelihoods(some.network, batch, tokens, sign) - likelihoods(
        objective.reference.captioner, batch, tokens, sign
    )
    each = np.logaddexp(0, -0.5 * (ratios[:, 0] - ratios[:, 1]).detach().numpy()) * paired.numpy()
    loss = objective(some.network, batch, context())
    assert loss.parts["dpo"] == pytest.approx(each.mean(), abs=1e-9)
    own = likelihoods(some.network, batch, batch.tokens, sign)
    tokens_there = batch.mask[:, :, 1:].sum().item()
    assert loss.parts["mle"] == pytest.approx(-0.25 * own.sum().item() / tokens_there, abs=1e-9)


def test_ranks_and_margins_are_those_among_the_neighbours(needed: Path) -> None:
    some, objective = dpo(needed, "objective.neighbours=5")
    batch, text = some.batch(), some.network.text
    drawn = objective.drawing(some.network, batch.vision, [context().of_image(row) for row in batch.rows])
    ranks, margins = objective.finder(batch.rows, drawn.written())
    retriever = some.supplies.retriever(objective.config.retriever)
    nearest = some.supplies.training_set.nearest(5)
    for image, row in enumerate(batch.rows):
        pictures = normalize(retriever.picture_vectors([row, *nearest[row].tolist()]), dim=-1)
        for place in range(4):
            words = [
                t for t in drawn.tokens[image, place].tolist() if t not in (text.start, text.end, text.pad)
            ]
            one_hot = torch.eye(len(text))[words].unsqueeze(0)
            vector = normalize(
                retriever.word_vectors(one_hot, torch.ones(1, len(words), dtype=torch.bool)), dim=-1
            )
            cosines = (pictures @ vector[0]).tolist()
            margin = cosines[0] - max(cosines[1:])
            assert margins[image, place].item() == pytest.approx(margin, abs=1e-5)
            if min(abs(cosines[0] - other) for other in cosines[1:]) > 1e-5:
                assert ranks[image, place] == sum(other >= cosines[0] for other in cosines[1:])


def captions_of(tokens: list[list[int]]) -> Drawn:
    whole = torch.tensor([tokens])
    return Drawn(whole, torch.ones_like(whole, dtype=torch.bool))


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 5), st.floats(-2, 2)), min_size=2, max_size=6), st.booleans())
def test_the_best_wins_the_worst_loses_and_ties_make_no_pair(
    found: list[tuple[int, float]], by_rank: bool
) -> None:
    drawn = captions_of([[1, 3 + place, 2] for place in range(len(found))])
    ranks = torch.tensor([[rank for rank, _ in found]])
    margins = torch.tensor([[margin for _, margin in found]], dtype=torch.float64)
    pairs, paired = choose_pairs(drawn, ranks, margins, prefer="rank" if by_rank else "margin")
    winner, loser = (found[int(pairs.tokens[0, end, 1]) - 3] for end in (0, 1))
    merits = [-rank if by_rank else margin for rank, margin in found]
    chosen = [-rank if by_rank else margin for rank, margin in (winner, loser)]
    assert chosen == [max(merits), min(merits)]
    assert bool(paired) == (max(merits) > min(merits))


def test_the_same_words_twice_make_no_pair() -> None:
    drawn = captions_of([[1, 5, 2], [1, 5, 2]])
    margins = torch.tensor([[0.1, 0.1 + 1e-7]])
    _, paired = choose_pairs(drawn, torch.zeros(1, 2, dtype=torch.long), margins, prefer="margin")
    assert not paired


def test_neither_reference_nor_retriever_moves(needed: Path) -> None:
    made = learner(*objective_changes("dpo", needed), "objective.samples=3")
    objective = made.step.objective
    assert isinstance(objective, Preference)
    frozen = list(objective.reference.captioner.parameters())
    pictures = objective.finder.places.pictures.copy()
    before = [weight.clone() for weight in frozen]
    optimiser = torch.optim.SGD(made.step.parameters(), lr=1.0)
    for number in range(3):
        optimiser.zero_grad()
        made.step.train()(made.batch(number), context(number)).total.backward()
        optimiser.step()
    assert all(
        torch.equal(weight, old) and weight.grad is None for weight, old in zip(frozen, before, strict=True)
    )
    assert np.array_equal(objective.finder.places.pictures, pictures)
    assert all(name.startswith("captioner.") for name in made.step.state_dict())


def test_padding_and_shares_change_nothing(needed: Path) -> None:
    some, objective = dpo(needed, "objective.mle_weight=0.5")
    move(some.network)
    batch, sign = some.batch(), some.network.text.pad
    whole = objective(some.network, batch, context())
    longer = replace(batch, tokens=padded(batch.tokens, (0, 4), value=sign), mask=padded(batch.mask, (0, 4)))
    assert objective(some.network, longer, context()).total.item() == pytest.approx(
        whole.total.item(), abs=1e-12
    )
    shares = [doubled(share) for share in learner("training.portions=3").shares(0, ALONE)]
    losses = [objective(some.network, share, context()) for share in shares]
    assert sum(loss.total.item() for loss in losses) == pytest.approx(whole.total.item(), abs=1e-10)


@pytest.mark.parametrize("scale", [1e4, -1e4])
def test_finite_for_extreme_logits_one_word_and_one_image(needed: Path, scale: float) -> None:
    changes = ("training.images_per_batch=1", "decoding.max_words=1", "objective.samples=2")
    made = learner(*objective_changes("dpo", needed), *changes)
    with torch.no_grad():
        made.network.get_parameter("output.bias")[::2] += scale
    loss = made.step(made.batch(0), context())
    loss.total.backward()
    assert loss.total.isfinite()
    assert all(
        weight.grad.isfinite().all() for weight in made.network.parameters() if weight.grad is not None
    )


def test_another_captioner_may_be_the_reference(needed: Path, tmp_path: Path) -> None:
    folder = saved_copy(learner(captioner="transformer"), tmp_path / "transformer")
    some, objective = dpo(needed, f"objective.reference={folder}")
    assert type(objective.reference.captioner) is not type(some.network)
    assert objective(some.network, some.batch(), context()).total.isfinite()


def test_more_neighbours_than_images_are_refused(needed: Path) -> None:
    made = learner()
    (_, retriever) = objective_changes("dpo", needed)
    config = DPOConfig(neighbours=48, retriever=retriever.partition("=")[2])
    with pytest.raises(TellapartError, match="wants 48 neighbours"):
        build_dpo(config, made.supplies)
