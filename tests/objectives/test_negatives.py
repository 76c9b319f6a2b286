"""Captions of other images: whose they are, and that all are equally likely."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.objectives.material import context, learner
from tests.objectives.precise import Precise

from tellapart.objectives.negatives import Negatives, build_negatives, different
from tellapart.objectives.settings.contrastive import ContrastiveConfig


def negatives_of(*changes: str, count: int = 3, compat: str = "paper") -> tuple[Precise, Negatives]:
    some = Precise(learner(*changes))
    config = ContrastiveConfig.model_validate({"negatives": count, "compat": compat})
    return some, build_negatives("contrastive", count, config.compat, some.supplies)


@settings(max_examples=15)
@given(st.integers(0, 1000), st.integers(0, 47), st.sampled_from(["paper", "authors"]))
def test_negatives_are_captions_of_others_and_do_not_depend_on_the_batch(
    step: int, row: int, compat: str
) -> None:
    some, negatives = negatives_of(compat=compat)
    captions = some.learner.ready.train_set.captions
    other = (row + 1) % len(captions)
    draw = some.learner._draw(0)
    (whole,) = some.learner.ready.train_set.shares([other, row], [[other, row]], draw)
    (alone,) = some.learner.ready.train_set.shares([row], [[row]], draw)
    found, mask = negatives.draw(whole, context(step))
    again, mask_alone = negatives.draw(alone, context(step))
    sets = [
        [tuple(c[m].tolist()) for c, m in zip(cs, ms, strict=True)]
        for cs, ms in zip(found[1], mask[1], strict=True)
    ]
    assert sets == [
        [tuple(c[m].tolist()) for c, m in zip(cs, ms, strict=True)]
        for cs, ms in zip(again[0], mask_alone[0], strict=True)
    ]
    everyone = Counter(tuple(caption) for group in captions for caption in group)
    own = {tuple(caption) for caption in captions[row]}
    for slot in sets:
        assert all(caption in everyone for caption in slot)
        if compat == "paper":
            assert not own.intersection(slot)
    if compat == "authors":
        for column in zip(*sets, strict=True):  # a block of one other image's captions
            owners = [
                index
                for index, group in enumerate(captions)
                if index != row
                and any(
                    list(map(tuple, group))[at : at + len(column)] == list(column) for at in range(len(group))
                )
            ]
            assert owners


def test_captions_that_read_like_the_images_own_are_no_negatives() -> None:
    some, negatives = negatives_of("data.max_words=1", count=1)
    captions = some.learner.ready.train_set.captions
    drawn: Counter[tuple[int, ...]] = Counter()
    for step in range(200):
        batch = some.batch(step % 12)
        found, mask = negatives.draw(batch, context(step))
        for image, row in enumerate(batch.rows):
            for caption, there in zip(found[image].flatten(0, 1), mask[image].flatten(0, 1), strict=True):
                if there.any():
                    assert caption[there].tolist() not in [list(own) for own in captions[row]]
                    drawn[tuple(caption[there].tolist())] += 1
    assert len(drawn) > 2


@given(st.integers(1, 6), st.integers(0, 20), st.integers(0, 10_000))
def test_drawn_numbers_differ_and_lie_below_the_size(count: int, more: int, seed: int) -> None:
    numbers = np.random.default_rng(seed).random((5, count))
    found = different(numbers, count + more)
    assert ((found >= 0) & (found < count + more)).all()
    assert all(len(set(row)) == count for row in found.tolist())


def test_all_sets_are_equally_likely() -> None:
    found = different(np.random.default_rng(0).random((60_000, 2)), 4)
    tally = Counter(tuple(sorted(row)) for row in found.tolist())
    assert set(tally) == set(combinations(range(4), 2))
    assert all(abs(count - 10_000) < 500 for count in tally.values())
