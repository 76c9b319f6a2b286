"""Diverse beam search: a beam where there is one group or no strength, and what groups do to each other."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.decoding.material import (
    LONGEST,
    TEXT,
    Told,
    captioner,
    log_probabilities,
    perhaps_required,
    read,
    see,
    seeds,
    tokens_of,
)

from tellapart.decoding.diverse import Groups, diverse
from tellapart.decoding.search import beam
from tellapart.errors import TellapartError

penalties = st.sampled_from([0.0, 0.7])


@settings(max_examples=20, deadline=None)
@given(seeds, st.integers(1, 4), st.floats(0, 9), penalties, perhaps_required)
def test_one_group_is_a_beam(
    seed: int, width: int, strength: float, penalty: float, told: tuple[Told, ...]
) -> None:
    model, vision, rules = captioner(seed), see(3, seed), [each.rule for each in told]
    alone = diverse(
        model, vision, Groups(1, width, strength), max_words=LONGEST, rules=rules, length_penalty=penalty
    )
    plain = beam(model, vision, width=width, max_words=LONGEST, rules=rules, length_penalty=penalty)
    assert torch.equal(alone.tokens, plain.tokens)
    assert torch.equal(alone.mask, plain.mask)
    assert torch.equal(alone.log_probabilities, plain.log_probabilities)


@settings(max_examples=20, deadline=None)
@given(seeds, st.integers(2, 4), st.integers(1, 3), penalties, perhaps_required)
def test_without_strength_each_group_is_a_beam(
    seed: int, count: int, width: int, penalty: float, told: tuple[Told, ...]
) -> None:
    model, vision, rules = captioner(seed), see(2, seed), [each.rule for each in told]
    groups = diverse(
        model, vision, Groups(count, width, 0.0), max_words=LONGEST, rules=rules, length_penalty=penalty
    )
    plain = beam(model, vision, width=width, max_words=LONGEST, rules=rules, length_penalty=penalty)
    for image in range(2):
        assert [words for words, _ in read(groups, image)] == [
            words for words, _ in read(plain, image)
        ] * count


@settings(max_examples=20, deadline=None)
@given(seeds, st.integers(1, 3), st.floats(0, 5))
def test_the_first_group_is_a_beam_and_scores_are_the_captioners_own(
    seed: int, width: int, strength: float
) -> None:
    model, vision = captioner(seed), see(2, seed)
    groups = diverse(model, vision, Groups(3, width, strength), max_words=LONGEST)
    first = beam(model, vision, width=width, max_words=LONGEST)
    for image in range(2):
        found = read(groups, image)
        assert len(found) == 3 * width
        assert [words for words, _ in found[:width]] == [words for words, _ in read(first, image)]
        own = log_probabilities(
            model, vision.select(torch.tensor([image])), list(dict.fromkeys(words for words, _ in found))
        )
        assert [score for _, score in found] == pytest.approx([own[words] for words, _ in found])
        for group in range(3):
            scores = [score for _, score in found[group * width : (group + 1) * width]]
            assert scores == sorted(scores, reverse=True)


@settings(max_examples=20, deadline=None)
@given(seeds, st.floats(0, 3), st.integers(2, 4))
def test_groups_of_one_choose_as_the_paper_says(seed: int, strength: float, count: int) -> None:
    """Eq. 7 of Vijayakumar et al. by hand: each group is greedy about log p - λ · (times taken before it)."""
    model, vision = captioner(seed), see(1, seed)
    found = [words for words, _ in read(diverse(model, vision, Groups(count, 1, strength), max_words=3))]
    written: list[list[int]] = [[] for _ in range(count)]
    for place in range(4):
        taken: list[int] = []
        for own in written:
            if TEXT.end in own:
                continue
            given = torch.tensor([[[TEXT.start, *own]]])
            expected = model.predict(vision, given).logits[0, 0, -1].log_softmax(-1).tolist()
            words = tokens_of("abcd") if place < 3 else []
            allowed = words + [TEXT.end] * (place > 0)
            chosen = max(allowed, key=lambda word: expected[word] - strength * taken.count(word))
            own.append(chosen)
            taken.append(chosen)
    assert found == [TEXT.decode(own).replace(" ", "") for own in written]


def test_a_great_strength_makes_all_groups_begin_otherwise() -> None:
    for seed in range(10):
        found = read(diverse(captioner(seed), see(1), Groups(4, 1, 1e6), max_words=3))
        assert {words[0] for words, _ in found} == set("abcd")


def test_images_do_not_mind_each_other() -> None:
    model, vision = captioner(3), see(5)
    together = diverse(model, vision, Groups(3, 2, 0.8), max_words=LONGEST)
    for image in range(5):
        alone = diverse(model, vision.select(torch.tensor([image])), Groups(3, 2, 0.8), max_words=LONGEST)
        assert [words for words, _ in read(alone)] == [words for words, _ in read(together, image)]


@pytest.mark.parametrize(
    "wrong", [(0, 1, 1.0), (1, 0, 1.0), (2, 2, -0.1), (2, 2, float("nan")), (2, 2, float("inf"))]
)
def test_groups_that_make_no_sense_are_refused(wrong: tuple[int, int, float]) -> None:
    with pytest.raises(TellapartError) as caught:
        Groups(*wrong)
    assert caught.value.hint
