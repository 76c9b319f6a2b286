"""Ranking losses: by hand, and what holds of all of them."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tellapart.retrievers.ranking import RankingLoss, hardest, info_nce, pairwise
from tellapart.retrievers.settings import RANKINGS

# Picture 0 is nearer to sentence 1 than to its own, the others are right.
SCORES = torch.tensor([[0.5, 0.6, 0.0], [0.1, 0.9, 0.2], [-0.3, 0.4, 0.8]], dtype=torch.float64)


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(1)


def losses() -> list[RankingLoss]:
    return [
        RANKINGS.get(name).builder()(RANKINGS.get(name).configure({}))
        for name in ("pairwise", "hardest", "info-nce")
    ]


def test_hardest_by_hand() -> None:
    # Pair 0: sentence 1 is .1 closer, so .2 + .1; picture 1 to sentence 0: .1 - .5 + .2 < 0.
    # Pair 1: sentences .1, .2 are far; picture 0 to sentence 1: .6 - .9 + .2 < 0.
    assert hardest(SCORES, margin=0.2).tolist() == pytest.approx([0.3, 0.0, 0.0])
    assert hardest(SCORES, margin=0.5).tolist() == pytest.approx([0.6 + 0.1, 0.2, 0.1])


def test_pairwise_sums_all_hinges_where_the_batch_is_small() -> None:
    expected = []
    for own in range(3):
        others = [other for other in range(3) if other != own]
        sentences = [max(0.0, 0.5 - SCORES[own, own].item() + SCORES[own, other].item()) for other in others]
        pictures = [max(0.0, 0.5 - SCORES[own, own].item() + SCORES[other, own].item()) for other in others]
        expected.append(sum(sentences) + sum(pictures))
    found = pairwise(SCORES, margin=0.5, contrasts=30, generator=generator())
    assert found.tolist() == pytest.approx(expected)


def test_pairwise_draws_so_many_others_and_never_its_own() -> None:
    # All similarities are 0, so that every hinge is the margin and the sum counts them.
    found = pairwise(torch.zeros(40, 40), margin=0.2, contrasts=30, generator=generator())
    assert found.tolist() == pytest.approx([0.2 * 60] * 40)
    close = torch.eye(40) * 10  # no other is near: its own, drawn by mistake, would count
    assert pairwise(close, margin=0.2, contrasts=30, generator=generator()).sum() == 0


def test_info_nce_by_hand() -> None:
    row = -math.log(math.exp(5) / (math.exp(5) + math.exp(6) + 1))
    column = -math.log(math.exp(5) / (math.exp(5) + math.exp(1) + math.exp(-3)))
    assert info_nce(SCORES, temperature=0.1)[0].item() == pytest.approx((row + column) / 2)


@given(st.integers(min_value=1, max_value=12), st.integers(min_value=0, max_value=99))
def test_laws_of_all_losses(count: int, seed: int) -> None:
    scores = torch.rand(count, count, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    for number, loss in enumerate(losses()):
        found = loss(scores, generator())
        assert (found >= 0).all()
        assert torch.isfinite(found).all()
        assert count > 1 or found.item() == pytest.approx(0)
        if number or count <= 31:  # where nothing is drawn, the order of a batch means nothing
            torch.testing.assert_close(loss(scores[order][:, order], generator()), found[order])
        # Bringing every pair closer never costs.
        assert (loss(scores + torch.eye(count), generator()) <= found + 1e-12).all()
