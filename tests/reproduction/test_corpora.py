"""Poorer captions; sentences are parsed by hand here: what the parser would say is not ours to test."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tellapart.data.shapes.dataset import CAPTIONS_FILE, write_shapes
from tellapart.recipe_sections import DataConfig
from tellapart.reproduction.corpora import CAPTIONS, Corpus, simple, write_corpus
from tellapart.sources import read_examples


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


def test_one_caption_of_each_picture_is_kept(tmp_path: Path) -> None:
    write_shapes(tmp_path / "shapes", count=30, seed=1)
    data = DataConfig(root=str(tmp_path / "shapes"), path=CAPTIONS_FILE, format="jsonl")
    write_corpus(tmp_path / "single", data, kind="single")
    before = {some.image_id: some for some in read_examples(data, seed=1)}
    after = read_examples(DataConfig(path=str(tmp_path / "single" / CAPTIONS), format="jsonl"), seed=1)
    assert {some.image_id for some in after} == before.keys()
    for some in after:
        whole = before[some.image_id]
        assert (some.path, some.split) == (whole.path, whole.split)
        assert some.captions == (whole.captions if some.split == "test" else whole.captions[:1])
    assert any(len(some.captions) > 1 for some in before.values() if some.split != "test")


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
