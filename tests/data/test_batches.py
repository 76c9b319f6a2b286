"""Batches: every image once an epoch, other batches each epoch, the same whenever asked again."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from tellapart.data.batches import choose_captions, pad_captions, plan_epoch

LENGTHS = st.lists(st.integers(3, 30), min_size=1, max_size=200)


@given(LENGTHS, st.integers(1, 9), st.integers(0, 5), st.integers(0, 5))
def test_every_row_stands_in_one_batch(lengths: list[int], size: int, seed: int, epoch: int) -> None:
    plan = plan_epoch(lengths, images_per_batch=size, seed=seed, epoch=epoch)
    assert sorted(row for batch in plan for row in batch) == list(range(len(lengths)))
    assert all(1 <= len(batch) <= size for batch in plan)
    assert plan == plan_epoch(lengths, images_per_batch=size, seed=seed, epoch=epoch)
    assert len(plan) == len(plan_epoch(lengths, images_per_batch=size, seed=seed, epoch=epoch + 1))


def test_epochs_and_seeds_give_other_batches() -> None:
    lengths = [5 + row % 9 for row in range(300)]
    plans = [
        plan_epoch(lengths, images_per_batch=8, seed=seed, epoch=epoch)
        for seed, epoch in ((1, 0), (1, 1), (2, 0))
    ]
    assert plans[0] != plans[1] != plans[2] != plans[0]


def test_rows_of_like_length_stand_together() -> None:
    lengths = [row % 25 for row in range(800)]
    plan = plan_epoch(lengths, images_per_batch=16, seed=3, epoch=0)
    spread = [max(lengths[row] for row in batch) - min(lengths[row] for row in batch) for batch in plan]
    assert sum(spread) / len(spread) < 4  # by chance it would be about 22
    firsts = [lengths[batch[0]] for batch in plan]
    assert firsts != sorted(firsts)


@given(st.integers(1, 12), st.integers(1, 6), st.integers(0, 50), st.integers(0, 3))
def test_captions_are_drawn_without_repeating(count: int, wanted: int, row: int, epoch: int) -> None:
    places = choose_captions(count, wanted=wanted, seed=1, epoch=epoch, row=row)
    assert len(places) == len(set(places)) == min(count, wanted)
    assert set(places) <= set(range(count))
    assert places == choose_captions(count, wanted=wanted, seed=1, epoch=epoch, row=row)


def test_all_captions_get_their_turn_over_epochs_and_rows_differ() -> None:
    drawn = [choose_captions(5, wanted=1, seed=1, epoch=epoch, row=7)[0] for epoch in range(60)]
    assert set(drawn) == set(range(5))
    assert drawn != [choose_captions(5, wanted=1, seed=1, epoch=epoch, row=8)[0] for epoch in range(60)]


def test_padding_by_hand() -> None:
    tokens, mask = pad_captions([[[1, 5, 2], [1, 2]], [[1, 6, 7, 2]]], pad=9)
    assert tokens.tolist() == [[[1, 5, 2, 9], [1, 2, 9, 9]], [[1, 6, 7, 2], [9, 9, 9, 9]]]
    assert mask.tolist() == [
        [[True, True, True, False], [True, True, False, False]],
        [[True, True, True, True], [False, False, False, False]],
    ]
    assert tokens.dtype == torch.long
