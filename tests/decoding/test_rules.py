"""Each rule alone, on scores: what it strikes out, and that it touches nothing else."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tellapart.data.text import PRESETS
from tellapart.data.vocabulary import Vocabulary
from tellapart.data.word_text import WordText
from tellapart.decoding.doubles import without_doubles
from tellapart.decoding.required import Required
from tellapart.decoding.rules import (
    Rule,
    banned,
    begin_with,
    frame,
    maximum_words,
    minimum_words,
    no_dangling_ending,
    no_repeated_ngram,
    no_repeated_token,
)
from tellapart.errors import TellapartError

WORDS = ("a", "the", "of", "with", "dog", "ball", "red", "runs")
TEXT = WordText(Vocabulary(WORDS, pad=4, start=2, end=0, unknown=7), PRESETS["mrnn"])
EVERYTHING: list[Rule] = [
    *frame(TEXT, max_words=5),
    begin_with(TEXT, TEXT.beginning("a dog")),
    no_repeated_token(TEXT),
    no_repeated_token(TEXT, free=()),
    no_repeated_ngram(1),
    no_repeated_ngram(3),
    banned(TEXT, ["red", "a dog runs"]),
    no_dangling_ending(TEXT, max_words=5),
    Required.of(TEXT, ["red ball", "dog"], max_words=5),
]


def left(rule: Rule, *captions: str) -> list[set[str]]:
    """The words that may follow, "." being the end; captions are of the same length."""
    written = torch.tensor([TEXT.beginning(caption) for caption in captions], dtype=torch.long)
    scores = rule(torch.zeros(len(captions), len(TEXT)), written.view(len(captions), -1))
    return [
        {"." if token == TEXT.end else TEXT.decode([token]) for token in row.nonzero().flatten().tolist()}
        for row in scores.isfinite()
    ]


SIGNS = {"", "<unk>"}  # padding and start, and the unknown word
ANYTHING = {*WORDS, *SIGNS, "."}


def test_the_frame_of_every_caption() -> None:
    silent, longest, shortest = frame(TEXT, max_words=2)
    assert left(silent, "a dog") == [ANYTHING - SIGNS]
    assert left(longest, "a") == [ANYTHING]
    assert left(longest, "a dog") == [{"."}]
    assert left(shortest, "") == [ANYTHING - {"."}]
    assert left(shortest, "a") == [ANYTHING]


def test_lengths() -> None:
    assert left(minimum_words(TEXT, 3), "a dog") == [ANYTHING - {"."}]
    assert left(minimum_words(TEXT, 3), "a dog runs") == [ANYTHING]
    assert left(maximum_words(TEXT, 3), "a dog") == [ANYTHING]
    assert left(maximum_words(TEXT, 3), "a dog runs") == left(maximum_words(TEXT, 3), "a a a a") == [{"."}]


def test_first_words() -> None:
    rule = begin_with(TEXT, TEXT.beginning("the red dog"))
    assert left(rule, "") == [{"the"}]
    assert left(rule, "the red") == [{"dog"}]
    assert left(rule, "the red dog") == [ANYTHING]
    assert left(begin_with(TEXT, ()), "") == [ANYTHING]


def test_words_that_say_something_stand_once() -> None:
    rule = no_repeated_token(TEXT)
    assert left(rule, "a dog with a ball", "the red ball of the") == [
        ANYTHING - {"dog", "ball"},
        ANYTHING - {"red", "ball"},
    ]
    assert left(no_repeated_token(TEXT, free=["Dog", "zebra"]), "a dog runs") == [ANYTHING - {"a", "runs"}]
    assert left(no_repeated_token(TEXT, free=()), "a dog a") == [ANYTHING - {"a", "dog"}]


def test_runs_of_words_stand_once() -> None:
    assert left(no_repeated_ngram(2), "a dog a", "a dog dog") == [ANYTHING - {"dog"}, ANYTHING - {"dog"}]
    assert left(no_repeated_ngram(2), "a dog a ball a") == [ANYTHING - {"dog", "ball"}]
    assert left(no_repeated_ngram(3), "a dog runs a dog") == [ANYTHING - {"runs"}]
    assert left(no_repeated_ngram(3), "a dog") == left(no_repeated_ngram(3), "dog runs a dog") == [ANYTHING]
    assert left(no_repeated_ngram(1), "a dog") == [ANYTHING - {"a", "dog"}]


def test_banned_words_and_phrases() -> None:
    rule = banned(TEXT, ["Red!", "a dog", "dog with a zebra", "zebra", "the ball of the dog"])
    assert left(rule, "") == [ANYTHING - {"red"}]
    assert left(rule, "with a", "a with") == [ANYTHING - {"red", "dog"}, ANYTHING - {"red"}]
    assert left(rule, "the ball of the") == [ANYTHING - {"red", "dog"}]
    assert left(banned(TEXT, []), "a dog") == left(banned(TEXT, ["zebra"]), "a dog") == [ANYTHING]


def test_endings_that_dangle() -> None:
    rule = no_dangling_ending(TEXT, max_words=3)
    unfinished = {"a", "the", "of", "with"}
    assert left(rule, "") == [ANYTHING]
    assert left(rule, "a", "dog") == [ANYTHING - {"."}, ANYTHING]
    # What stands at the last place is the last word.
    assert left(rule, "dog with", "a dog") == [ANYTHING - {".", *unfinished}, ANYTHING - unfinished]
    phrases = no_dangling_ending(TEXT, max_words=4, endings=["runs with", "the"])
    assert left(phrases, "dog with", "runs with") == [ANYTHING, ANYTHING - {"."}]
    assert left(phrases, "a dog runs") == [ANYTHING - {"with", "the"}]


def test_required_words() -> None:
    rule = Required.of(TEXT, ["red ball", "dog"], max_words=5)
    assert left(rule, "") == [ANYTHING - {"."}]
    assert left(rule, "a", "dog") == [ANYTHING - {"."}] * 2
    assert left(rule, "a the", "a red", "dog red", "dog a", "red dog") == [
        {"red", "dog"},
        {"ball", "red", "dog"},  # the phrase may be begun anew while there is room for it
        ANYTHING - {"."},
        ANYTHING - {"."},
        ANYTHING - {"."},
    ]
    assert left(rule, "a red red") == [{"ball"}]
    assert left(rule, "dog a red", "red ball a") == [{"ball", "red"}, ANYTHING - {"."}]
    assert left(rule, "dog red ball", "a the of") == [ANYTHING, set()]  # for the second it is too late
    assert left(rule, "red ball a of") == [{"dog"}]


def test_a_required_phrase_inside_of_another_needs_no_room_of_its_own() -> None:
    assert Required.of(TEXT, ["dog", "red dog", "Red Dog", "a red dog runs", "the"], max_words=5).banks == 6
    with pytest.raises(TellapartError, match="the required words take 4 places, and a caption has 3"):
        Required.of(TEXT, ["red dog", "dog runs"], max_words=3)


def test_what_the_prefix_says_need_not_be_said_again() -> None:
    begun = TEXT.beginning("a red")
    assert Required.of(TEXT, ["red ball"], max_words=3, prefix=begun).missing_after(begun) == 1
    assert Required.of(TEXT, ["a", "red"], max_words=2, prefix=begun).missing_after(begun) == 0
    said = "the required words take 2 places behind the 2 of the prefix, and a caption has 3"
    with pytest.raises(TellapartError, match=said):
        Required.of(TEXT, ["red", "dog runs"], max_words=3, prefix=begun)


@pytest.mark.parametrize("phrase", ["zebra", "a zebra runs"])
def test_a_required_word_that_cannot_be_written_is_refused(phrase: str) -> None:
    with pytest.raises(TellapartError) as caught:
        Required.of(TEXT, ["dog", phrase], max_words=9)
    assert caught.value.problem == f"required: the captioner cannot write {phrase!r}"
    assert "it knows 8 words" in caught.value.hint


@pytest.mark.parametrize("make", [
    lambda: Required.of(TEXT, [" "], max_words=9),
    lambda: Required.of(TEXT, ["!"], max_words=9),
    lambda: banned(TEXT, ["dog", ""]),
    lambda: no_repeated_ngram(0),
    lambda: begin_with(TEXT, [TEXT.start]),
    lambda: begin_with(TEXT, [TEXT.end]),
    lambda: begin_with(TEXT, [len(TEXT)]),
    lambda: frame(TEXT, max_words=0),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(make: object) -> None:
    with pytest.raises(TellapartError) as caught:
        make()  # type: ignore[operator]
    assert caught.value.hint


@given(st.integers(0, 6), st.integers(0, 10_000), st.sampled_from(range(len(EVERYTHING))))
def test_a_rule_strikes_out_and_changes_nothing_else(places: int, seed: int, which: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(3, len(TEXT), generator=generator)
    scores[:, 3] = -torch.inf
    tokens = torch.randint(len(TEXT), (3, places), generator=generator)
    given_scores, given_tokens = scores.clone(), tokens.clone()
    ruled: Tensor = EVERYTHING[which](scores, tokens)
    assert torch.equal(scores, given_scores)
    assert torch.equal(tokens, given_tokens)
    assert ruled.dtype == scores.dtype
    assert ((ruled == scores) | (ruled == -torch.inf)).all()
    # A row knows nothing of the others.
    for row in range(3):
        assert torch.equal(EVERYTHING[which](scores[row : row + 1], tokens[row : row + 1])[0], ruled[row])


@given(st.lists(st.sampled_from("ab"), max_size=8))
def test_words_said_twice_in_a_row_are_said_once(words: list[str]) -> None:
    said = without_doubles(words)
    assert all(one != other for one, other in pairwise(said))
    assert said == [word for place, word in enumerate(words) if place == 0 or words[place - 1] != word]


def test_doubles_as_lindh_removes_them() -> None:
    caption = "a man man with a a a hat and a hat"
    assert " ".join(without_doubles(caption.split())) == "a man with a hat and a hat"
