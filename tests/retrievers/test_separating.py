"""Words that separate two pictures are those that a retriever sees in the one and not in the other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.retrievers.colour_retriever import ColourRetriever, paint

from tellapart.retrievers.separating import Separating, separating_words

RETRIEVER = ColourRetriever()


def asked(tmp_path: Path, caption: str, candidates: dict[str, int], count: int = 5) -> tuple[Separating, ...]:
    """Of a picture in red and white, against one in blue and white."""
    paths = [paint(tmp_path / "a.png", "red", "white"), paint(tmp_path / "b.png", "blue", "white")]
    own, other = RETRIEVER.embed_images(paths)
    return separating_words(caption, candidates, RETRIEVER, own=own, other=other, count=count)


def test_the_colour_of_the_one_separates_and_that_of_the_other_does_not(tmp_path: Path) -> None:
    found = asked(tmp_path, "white", {"yellow": 1, "blue": 1, "red": 1})
    assert [each.word for each in found] == ["red", "yellow"]
    assert found[0].margin > found[1].margin > 0
    assert asked(tmp_path, "blue blue blue", {"red": 1})[0].margin < 0  # one word does not make up for all
    assert asked(tmp_path, "white", {"blue": 3, "dog": 5}) == ()


@pytest.mark.parametrize("caption", ["", "white", "blue and yellow"])
def test_gain_and_margin_are_what_the_longer_caption_has(tmp_path: Path, caption: str) -> None:
    found = asked(tmp_path, caption, {"red": 1, "yellow": 2})
    own, other = RETRIEVER.embed_images([tmp_path / "a.png", tmp_path / "b.png"])
    before = RETRIEVER.embed_texts([caption])[0] @ (own - other) if caption else 0
    for each in found:
        after = RETRIEVER.embed_texts([f"{caption} {each.word}"])[0] @ (own - other)
        assert each.margin == pytest.approx(after, abs=1e-6)
        assert each.gain == pytest.approx(after - before, abs=1e-6)
        assert each.gain > 0


def test_words_that_many_use_come_first(tmp_path: Path) -> None:
    once = asked(tmp_path, "blue", {"red": 1, "yellow": 1})
    often = asked(tmp_path, "blue", {"red": 1, "yellow": 100})
    assert [each.word for each in once] == ["red", "yellow"]
    assert [each.word for each in often] == ["yellow", "red"]
    assert asked(tmp_path, "blue", {"red": 1, "yellow": 100}, count=1) == often[:1]


def test_nothing_is_found_in_nothing(tmp_path: Path) -> None:
    assert asked(tmp_path, "blue", {}) == ()
    assert asked(tmp_path, "blue", {"unheard": 7}) == ()
    assert np.isfinite([each.gain for each in asked(tmp_path, "", {"red": 1})]).all()
