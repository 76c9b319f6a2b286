"""A wish is kept: first words, what must (and must not) be said, or be said twice, and how many captions."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tellapart.captioners.folder import SavedCaptioner, load_captioner, save_captioner
from tellapart.captioning import Wish, Words, describe, load
from tellapart.data.small_words import FUNCTION_WORDS
from tellapart.testing import prepare


@pytest.mark.parametrize("width", [1, 4])
def test_words_that_are_asked_for_stand_beside_first_ones(width: int) -> None:
    subject = prepare("mrnn")
    assert subject.settings is not None
    saved = SavedCaptioner(subject.captioner, subject.settings)
    words = Words(prefix="a cat", banned=("bus",), required=("zebra runs",))
    rules = words.rules(subject.captioner.text, max_words=5)
    for candidates in describe(saved, subject.vision, Wish(width, 5, 3, words=words, rules=rules)):
        assert len(candidates) == min(width, 3)
        for candidate in candidates:
            assert candidate.caption.startswith("a cat ")
            assert "zebra runs" in candidate.caption
            assert "bus" not in candidate.caption


@pytest.mark.parametrize("width", [1, 4])
def test_no_word_is_said_twice_but_what_was_asked_for(width: int) -> None:
    subject = prepare("mrnn")
    assert subject.settings is not None
    text, settings = subject.captioner.text, subject.settings.model_copy(update={"repeats": False})
    saved = SavedCaptioner(subject.captioner, settings)

    def said(words: Words) -> list[list[str]]:
        wish = Wish(width, 9, width, words=words, rules=words.rules(text, max_words=9))
        found = describe(saved, subject.vision, wish)
        return [one.caption.split() for candidates in found for one in candidates]

    def again(caption: list[str]) -> set[str]:
        return {word for word in caption if caption.count(word) > 1 and word not in FUNCTION_WORDS}

    assert any(map(again, said(Words(repeats=True))))
    assert not any(map(again, said(Words(repeats=False))))
    asked = said(Words(prefix="a dog", required=("cat dog",), repeats=False))
    assert all(again(caption) <= {"dog", "cat"} and caption.count("dog") > 1 for caption in asked)


def test_a_captioner_that_repeats_nothing_need_not_be_told(tiny_captioner: Path, tmp_path: Path) -> None:
    before = load_captioner(tiny_captioner)
    settings = before.settings.model_copy(update={"repeats": False})
    save_captioner(tmp_path / "kept", SavedCaptioner(before.captioner, settings), dtype=torch.float32)
    describer = load(tmp_path / "kept", cached=False)
    assert describer.wish().words.repeats is False
    assert len(describer.wish().rules) == 1
    assert describer.wish(words=Words(repeats=True)).rules == ()
