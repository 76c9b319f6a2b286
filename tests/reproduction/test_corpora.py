"""Captions without details, from sentences parsed by hand: what the parser would say is not ours to test."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from tellapart.reproduction.corpora import Corpus, simple


@dataclass
class Word:
    """A word as the parser gives it."""

    text: str
    dep_: str = "det"
    pos_: str = "NOUN"
    tag_: str = "NN"
    children: list[Word] = field(default_factory=list)


def sentence(*words: Word) -> list[Word]:
    return list(words)


HORSE = Word("horse", "dobj")
RIDING = Word("riding", "acl", "VERB", "VBG", [HORSE])
MAN = Word("Man", "ROOT", children=[RIDING])
PHRASE = sentence(Word("a"), MAN, RIDING, Word("a"), HORSE)

DOGS = Word("dogs", "nsubj", tag_="NNS")
RUN = Word("run", "ROOT", "VERB", "VBP", [DOGS])
WHOLE = sentence(Word("Two"), DOGS, RUN, Word("home", "advmod"))
APPLE = sentence(Word("apple", "ROOT"))
NOBODY = sentence(Word("running", "ROOT", "VERB", "VBG"))


@pytest.mark.parametrize(
    ("words", "kind", "kept"),
    [
        (PHRASE, "simplest", "a man"),
        (PHRASE, "simpler", "a man riding a horse"),
        (WHOLE, "simplest", "dogs"),
        (WHOLE, "simpler", "dogs run"),
        (APPLE, "simpler", "an apple"),
        (NOBODY, "simplest", ""),
        ([], "simplest", ""),
    ],
)
def test_what_is_left_of_a_caption(words: list[Word], kind: Corpus, kept: str) -> None:
    assert simple(words, kind) == kept
