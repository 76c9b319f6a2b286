"""A wish is kept: first words, what must and must not be said, and as many captions as were asked for."""

from __future__ import annotations

import pytest

from tellapart.captioners.folder import SavedCaptioner
from tellapart.captioning import Wish, Words, describe
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
