"""Repetitions and broken endings are found where they are, and hardly ever in what people write."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tellapart.data.small_words import UNFINISHED
from tellapart.metrics.form import ECHO, EMPHATIC, ends_badly, form, repeats
from tellapart.metrics.material import Material
from tellapart.metrics.ptb.tokenizer import tokenize_all

REPEATING = [
    "dai dai dai",
    "a bald bald man",
    "a man wearing ray ban ray ban glasses",
    "a hat on top of a hat on top of a hat",
    "a dog and a dog and a dog",
    "a cat on a bed with a cat on a bed with a pillow",
    "a very very very long train",
    "a plate of food on a table next to a plate of food on a chair",
]
SOUND = [
    "",
    "dog",
    "a dog and a dog",
    "a very very long train",
    "a man in a red hat and a man in a blue hat",
    "the woman holds the umbrella over the child",
    "one row of cars after one row of trucks",
]
BROKEN = [
    "a man with a",
    "a hat on top of the",
    "a dog and",
    "a woman who is",
    "Two dogs near their .",
    "THE",
]
ENDED = ["", "a man looks on", "a cup and the plate it stands by", "a girl with a dog beside her", "a bus"]

words = st.lists(st.sampled_from(["a", "dog", "cat", "and", "very", "of", "red"]), max_size=24)


def scored(captions: Sequence[str]) -> dict[str, list[float]]:
    ids = tuple(str(number) for number in range(len(captions)))
    found = form(Material(ids, tuple((caption,) for caption in captions)))
    return {score.name: list(score.each) for score in found if score.each is not None}


def test_captions_that_repeat_themselves() -> None:
    assert scored(REPEATING)["Repetition"] == [1.0] * len(REPEATING)
    assert scored(SOUND)["Repetition"] == [0.0] * len(SOUND)


def test_captions_that_end_in_the_middle() -> None:
    assert scored(BROKEN)["Broken-ending"] == [1.0] * len(BROKEN)
    assert scored(ENDED)["Broken-ending"] == [0.0] * len(ENDED)


def test_the_whole_is_the_share_and_says_how_it_was_found() -> None:
    material = Material(("1", "2", "3", "4"), (("a dog dog",), ("a dog",), ("a dog of",), ("two dogs",)))
    repetition, ending = form(material)
    assert (repetition.corpus, ending.corpus) == (0.25, 0.25)
    assert repetition.signature.startswith("tokenizer:ptb|adjacent:1-4|echo:5|emphatic:")
    assert ending.signature.startswith("tokenizer:ptb|endings:")
    assert repetition.notes == ending.notes == ()


def test_captions_without_words_are_counted_in_a_note() -> None:
    repetition, ending = form(Material(("1", "2", "3"), (("",), (" . ",), ("a dog",))))
    assert repetition.corpus == ending.corpus == 0.0
    assert repetition.notes == ending.notes
    assert repetition.notes[0].startswith("2 captions have no words")


def test_only_the_first_candidate_is_the_caption() -> None:
    repetition, ending = form(Material(("1",), (("a dog", "a dog dog of"),)))
    assert repetition.corpus == ending.corpus == 0.0


@given(words, st.integers(1, 7))
def test_anything_said_twice_in_a_row_is_a_repetition(before: list[str], length: int) -> None:
    phrase = [f"word{number}" for number in range(length)]
    assert repeats([*before, *phrase, *phrase, "end"])


@given(words)
def test_faults_agree_with_their_definition(caption: list[str]) -> None:
    def doubled(start: int, length: int) -> bool:
        one = caption[start : start + length]
        if one != caption[start + length : start + 2 * length] or len(one) != length:
            return False
        if length > 1 or one[0] not in EMPHATIC:
            return True
        return start + 2 < len(caption) and caption[start + 2] == one[0]

    places = range(len(caption))
    # Longer runs that stand next to themselves are echoes: their first five words occur twice.
    stutter = any(doubled(start, length) for start in places for length in range(1, len(caption) + 1))
    runs = [tuple(caption[start : start + ECHO]) for start in places if start + ECHO <= len(caption)]
    assert repeats(caption) == (stutter or any(runs.count(run) > 1 for run in runs))
    assert ends_badly(caption) == (caption[-1:] != [] and caption[-1] in {"a", "and", "very", "of"})


@given(words)
def test_more_words_never_undo_a_repetition(caption: list[str]) -> None:
    if repeats(caption):
        assert repeats([*caption, "bus"])
        assert repeats(["bus", *caption])


@given(words, st.sampled_from(sorted(UNFINISHED)))
def test_only_the_last_word_decides_an_ending(caption: list[str], last: str) -> None:
    assert ends_badly([*caption, last])
    assert not ends_badly([*caption, last, "bus"])


@pytest.mark.parametrize("corpus", ["coco", "flickr8k"])
def test_people_hardly_ever_make_either_fault(corpus: str, real_data: Path) -> None:
    if corpus == "coco":
        with gzip.open(real_data / "text" / "coco_captions_val2017.json.gz") as file:
            captions = [row["caption"] for row in json.load(file)["annotations"]]
    else:
        with (real_data / "flickr8k" / "captions.txt").open(encoding="utf-8") as lines:
            captions = [row["caption"] for row in csv.DictReader(lines)]
    tokens = tokenize_all(captions)
    assert np.mean([repeats(caption) for caption in tokens]) < 0.002
    assert np.mean([ends_badly(caption) for caption in tokens]) < 0.002
