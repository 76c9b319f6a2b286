"""Openers and fragments that many captions share, each once and at its full length."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tellapart.metrics.boilerplate import FEWEST, FRAGMENTS, fragments, openers, same_captions

CLOSE = [f"a close up of {what}" for what in ("my cat", "his dog", "two cups", "some bread", "one hand")]
THERE = [
    f"{what} stands there in the background"
    for what in ("tall tree", "old house", "big red bus", "small hut")
]

sentences = st.lists(st.lists(st.sampled_from("abc"), max_size=8), min_size=1, max_size=9)


def split(captions: list[str]) -> list[list[str]]:
    return [caption.split() for caption in captions]


def test_fragments_stand_at_their_full_length() -> None:
    found = fragments(split(CLOSE + THERE))
    assert [(each.text, each.captions) for each in found] == [
        ("a close up of", 5),
        ("stands there in the background", 4),
    ]
    assert found[0].share == 5 / 9


def test_a_shorter_one_stays_where_most_go_on_otherwise() -> None:
    some = [f"a close up of the {what}" for what in ("cat", "dog", "cup")]
    found = fragments(split([*CLOSE, *CLOSE[:2], *some]))
    assert [each.text for each in found] == ["a close up of", "a close up of the"]
    assert [each.captions for each in found] == [10, 3]


def test_openers_are_beginnings_only() -> None:
    found = openers(split(CLOSE + THERE))
    assert [(each.text, each.captions) for each in found] == [("a close up of", 5)]
    assert openers(split(["two dogs", "two dogs", "two dogs"])) == []  # whole captions are shared, not opened


def test_what_few_say_is_no_boiler_plate() -> None:
    assert fragments(split(CLOSE[:2])) == openers(split(CLOSE[:2])) == []
    many = split(CLOSE * 2 + [f"{number} x y {number}" for number in range(990)])
    assert [each.text for each in fragments(many)] == []
    assert "a close up of" in [each.text for each in fragments(many, share=0.01)]


@given(sentences)
def test_counts_are_of_captions_and_nothing_frequent_is_lost(captions: list[list[str]]) -> None:
    counts = Counter(
        gram
        for words in captions
        for gram in {
            tuple(words[place : place + length])
            for length in FRAGMENTS
            for place in range(len(words) - length + 1)
        }
    )
    frequent = {" ".join(words): count for words, count in counts.items() if count >= FEWEST}
    kept = {each.text: each.captions for each in fragments(captions)}
    assert kept.items() <= frequent.items()
    for text, count in frequent.items():
        longer = [more for other, more in frequent.items() if text in other and text != other]
        assert (text in kept) == (2 * max(longer, default=0) < count)


@given(sentences)
def test_groups_hold_what_is_equal_and_the_largest_comes_first(captions: list[list[str]]) -> None:
    groups = same_captions(captions)
    assert sorted(map(len, groups), reverse=True) == list(map(len, groups))
    together = {row: number for number, rows in enumerate(groups) for row in rows}
    for row, words in enumerate(captions):
        twins = [other for other, said in enumerate(captions) if said == words and other != row and words]
        assert (row in together) == bool(twins)
        assert all(together[other] == together[row] for other in twins)
