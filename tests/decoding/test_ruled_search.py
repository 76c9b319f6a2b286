"""Searches and samples under rules, against all captions that keep them."""

from __future__ import annotations

import re

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.decoding.material import (
    LONGEST,
    REQUIREMENTS,
    RULES,
    TEXT,
    Told,
    all_captions,
    captioner,
    log_probabilities,
    perhaps_required,
    read,
    see,
    seeds,
    several,
    tokens_of,
)

from tellapart.decoding.required import Required
from tellapart.decoding.rules import (
    Rule,
    banned,
    begin_with,
    minimum_words,
    no_dangling_ending,
    no_repeated_token,
)
from tellapart.decoding.sampling import Sampling, image_generators, sample
from tellapart.decoding.search import beam, greedy

WIDE = 400  # wider than there are captions


def kept(told: tuple[Told, ...]) -> list[str]:
    return [words for words in all_captions() if all(each.holds(words) for each in told)]


@pytest.mark.parametrize("told", [*RULES, *REQUIREMENTS], ids=repr)
def test_a_wide_beam_finds_all_captions_that_keep_a_rule_and_no_other(told: Told) -> None:
    check_wide_beam(3, (told,), 0.0)


@settings(max_examples=40, deadline=None)
@given(seeds, perhaps_required, st.sampled_from([0.0, 0.8]))
def test_a_wide_beam_finds_all_captions_that_keep_several_rules(
    seed: int, told: tuple[Told, ...], penalty: float
) -> None:
    check_wide_beam(seed, told, penalty)


def check_wide_beam(seed: int, told: tuple[Told, ...], penalty: float) -> None:
    model, vision = captioner(seed), see(1, seed)
    rules = [each.rule for each in told]
    found = read(beam(model, vision, width=WIDE, max_words=LONGEST, rules=rules, length_penalty=penalty))
    assert all(len(words) <= LONGEST for words, _ in found)
    expected = log_probabilities(model, vision, all_captions())
    possible = kept(told)
    if possible:
        assert sorted(words for words, _ in found) == sorted(possible)
        compared = [expected[words] / (len(words) + 1) ** penalty for words, _ in found]
        # Captions of the same words may be even, but for rounding.
        assert compared == pytest.approx(sorted(compared, reverse=True), abs=1e-12)
    assert [score for _, score in found] == pytest.approx([expected[words] for words, _ in found], abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(seeds, perhaps_required, st.integers(2, 5))
def test_a_narrow_beam_finds_some_of_them_best_first(seed: int, told: tuple[Told, ...], width: int) -> None:
    model, vision = captioner(seed), see(3, seed)
    decoded = beam(model, vision, width=width, max_words=LONGEST, rules=[each.rule for each in told])
    for image in range(3):
        found = read(decoded, image)
        assert len({words for words, _ in found}) == len(found)
        scores = [score for _, score in found]
        assert scores == sorted(scores, reverse=True)
        own = log_probabilities(model, vision.select(torch.tensor([image])), [words for words, _ in found])
        assert scores == pytest.approx(list(own.values()), abs=1e-9)


@settings(max_examples=40, deadline=None)
@given(seeds, several, st.integers(1, 5))
def test_the_order_of_rules_does_not_matter_where_they_can_all_be_kept(
    seed: int, told: list[Told], width: int
) -> None:
    model, vision = captioner(seed), see(2, seed)
    decode = [
        beam(model, vision, width=width, max_words=LONGEST, rules=[each.rule for each in order])
        for order in (told, told[::-1])
    ]
    for image in range(2):
        one, other = (read(decoded, image) for decoded in decode)
        if all(each.holds(words) for words, _ in [*one, *other] for each in told):
            assert one == other


@settings(max_examples=25, deadline=None)
@given(seeds, perhaps_required)
def test_greedy_takes_the_best_word_that_the_rules_leave(seed: int, told: tuple[Told, ...]) -> None:
    model, vision = captioner(seed), see(1, seed)
    rules = [each.rule for each in told]
    ((words, score),) = read(greedy(model, vision, max_words=LONGEST, rules=rules))
    assert read(beam(model, vision, width=1, max_words=LONGEST, rules=rules)) == [(words, score)]
    written: list[int] = []
    state, token = model.begin(vision), TEXT.start
    while token != TEXT.end:
        logits, state = model.step(torch.tensor([token]), state)
        left = logits.index_fill(1, torch.tensor(TEXT.silent), -torch.inf)
        if len(written) == LONGEST:
            left = logits.masked_fill(torch.arange(len(TEXT)) != TEXT.end, -torch.inf)
        elif not written:
            left[0, TEXT.end] = -torch.inf
        for rule in rules:
            ruled = rule(left, torch.tensor([written], dtype=torch.long))
            left = left if (ruled == -torch.inf).all() else ruled
        token = int(left.argmax())
        written.append(token)
    assert written[:-1] == tokens_of(words)


@settings(max_examples=25, deadline=None)
@given(
    seeds, perhaps_required, st.sampled_from([Sampling(6), Sampling(6, top_k=2), Sampling(6, typical=0.4)])
)
@example(5, (REQUIREMENTS[4],), Sampling(6, temperature=5.0))
def test_samples_keep_rules_too(seed: int, told: tuple[Told, ...], sampling: Sampling) -> None:
    model, vision = captioner(seed), see(2, seed)
    drawn = sample(
        model,
        vision,
        sampling,
        generators=image_generators(["one", "two"], seed=seed),
        max_words=LONGEST,
        rules=[each.rule for each in told],
    )
    for image in range(2):
        found = read(drawn, image)
        own = log_probabilities(model, vision.select(torch.tensor([image])), [words for words, _ in found])
        assert all(score == pytest.approx(own[words], abs=1e-9) for words, score in found)
        for each in told[:1]:  # the first rule wins, and each of them can be kept
            assert all(each.holds(words) for words, _ in found)


@settings(max_examples=25, deadline=None)
@given(seeds, st.sampled_from(REQUIREMENTS), several, st.integers(1, 4))
def test_required_words_stand_in_every_caption_whatever_else_is_asked(
    seed: int, required: Told, others: list[Told], width: int
) -> None:
    model, vision = captioner(seed), see(2, seed)
    rules = [required.rule, *(each.rule for each in others)]
    decoded = beam(model, vision, width=width, max_words=LONGEST, rules=rules)
    assert all(required.holds(words) for image in range(2) for words, _ in read(decoded, image))


@settings(max_examples=25, deadline=None)
@given(seeds, st.sampled_from(["a", "ab", "cb", "bb"]), st.sampled_from([["c"], ["b a"], ["b", "d"]]))
def test_first_words_and_required_ones_go_together(seed: int, prefix: str, phrases: list[str]) -> None:
    model, vision = captioner(seed), see(1, seed)
    required = Required.of(TEXT, phrases, max_words=LONGEST, prefix=tokens_of(prefix))
    rules: list[Rule] = [begin_with(TEXT, tokens_of(prefix)), required]
    parts = [phrase.replace(" ", "") for phrase in phrases]
    expected = {
        words for words in all_captions() if words.startswith(prefix) and all(part in words for part in parts)
    }
    found = read(beam(model, vision, width=WIDE, max_words=LONGEST, rules=rules))
    assert {words for words, _ in found} == expected
    for width in (1, 3):
        narrow = read(beam(model, vision, width=width, max_words=LONGEST, rules=rules))
        assert {words for words, _ in narrow} <= expected


def test_of_rules_that_contradict_each_other_the_first_win() -> None:
    model, vision = captioner(2), see(1)
    nothing = banned(TEXT, ["a", "b", "c", "d"])  # but there is no caption without a word
    starts = begin_with(TEXT, tokens_of("bd"))
    long = minimum_words(TEXT, 9)
    cases = {
        (nothing,): "[abcd]",
        (nothing, starts): "b",
        (starts, nothing): "bd",
        (nothing, long): "[abcd]",
        (long, nothing): "[abcd]{3}",
        (long, nothing, starts): "bd[abcd]",
        (nothing, long, starts): "b",
    }
    cold = Sampling(5, temperature=1e-4)
    for rules, pattern in cases.items():
        for width in (1, 3):
            for words, _ in read(beam(model, vision, width=width, max_words=3, rules=rules)):
                assert re.fullmatch(pattern, words)
        ((first, _),) = read(greedy(model, vision, max_words=3, rules=rules))
        own = image_generators(["x"], seed=1)
        drawn = sample(model, vision, cold, generators=own, max_words=3, rules=rules)
        assert {words for words, _ in read(drawn)} == {first}


def test_a_beam_gives_captions_up_rather_than_rules() -> None:
    """With c and d banned and no word twice, "ab" and "ba" can only end, but may not end in b."""
    model, vision = captioner(4), see(1)
    rules = [
        no_repeated_token(TEXT, free=()),
        banned(TEXT, ["c", "d"]),
        no_dangling_ending(TEXT, max_words=4, endings=["b"]),
        minimum_words(TEXT, 2),
    ]
    assert [words for words, _ in read(beam(model, vision, width=5, max_words=4, rules=rules))] == ["ba"]
    # Alone, a caption that cannot go on keeps the rules that come first.
    greedily = begin_with(TEXT, tokens_of("ab"))
    ((words, _),) = read(greedy(model, vision, max_words=4, rules=[greedily, *rules]))
    assert words == "ab"


def test_a_rule_takes_effect_only_for_the_captions_it_concerns() -> None:
    model, vision = captioner(6), see(4, 6)
    rules = [banned(TEXT, ["a b"]), no_repeated_token(TEXT, free=())]
    together = beam(model, vision, width=3, max_words=4, rules=rules)
    for image in range(4):
        alone = beam(model, vision.select(torch.tensor([image])), width=3, max_words=4, rules=rules)
        assert [words for words, _ in read(alone)] == [words for words, _ in read(together, image)]
