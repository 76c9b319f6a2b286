"""Judges: scores of a retriever, what is known of it, and when its word is worth little."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.retrievers.colour_retriever import ColourRetriever, paint
from tests.retrievers.tiny_dual import write_tiny_dual

from tellapart.captioners.folder import read_settings
from tellapart.captioning import load
from tellapart.corpus import as_vision
from tellapart.errors import TellapartError
from tellapart.judges import (
    LIKELIHOOD,
    Author,
    Judge,
    cautions,
    expect_judges,
    find_author,
    judge_by,
    judge_by_likelihood,
)
from tellapart.retrievers.loading import load_retriever
from tellapart.vision.looking import Seen, look


class Terse(ColourRetriever):
    """One that cuts sentences, and says so."""

    def notes(self, sentences: Sequence[str]) -> list[str]:
        return [f"{len(sentences)} were cut"]


def test_scores_are_cosines_and_twins_tie(tmp_path: Path) -> None:
    pictures = [
        paint(tmp_path / f"{number}.png", *colours)
        for number, colours in enumerate([["red"], ["red", "blue"], ["red"]])
    ]
    scores = judge_by(ColourRetriever()).score(["red", "a blue one"], pictures)
    np.testing.assert_allclose(scores, [[1, 0.5**0.5, 1], [0, 0.5**0.5, 0]], atol=1e-6)
    assert (scores[:, 0] == scores[:, 2]).all()


def test_progress_is_told(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    judge = judge_by(ColourRetriever(), watch=lambda done, total: seen.append((done, total)))
    judge.score(["red"], [paint(tmp_path / "a.png", "red"), paint(tmp_path / "b.png", "blue")])
    assert seen == [(1, 2), (2, 2)]


def test_a_judge_says_what_it_did_not_understand() -> None:
    captions = ["red", "red dog", "blue"]
    assert judge_by(ColourRetriever()).remark(captions) == [
        "1 of 3 captions hold words that it does not know"
    ]
    assert judge_by(ColourRetriever()).remark(["red"]) == []
    assert judge_by(Terse()).remark(captions)[0] == "3 were cut"


def test_a_retriever_from_disk_says_where_it_comes_from(tmp_path: Path, tiny_captioner: Path) -> None:
    retriever = load_retriever(write_tiny_dual(tmp_path / "dual", ["a red circle"]))
    judge, author = judge_by(retriever), find_author(str(tiny_captioner))
    assert (judge.trained_on, judge.encoder) == ("nothing at all", author.encoder)
    said = judge.to_json(author)
    assert said["identity"] == retriever.identity
    assert (said["taught_the_captioner"], said["shares_encoder"]) == (False, True)
    assert cautions(judge, author) == ["it sees through the captioner's own encoder"]


def judge(identity: str, encoder: str = "") -> Judge:
    return Judge(
        "j", identity, lambda sentences, pictures: np.zeros((len(sentences), len(pictures))), encoder
    )


def test_a_teacher_is_known_by_its_content_whatever_it_is_called() -> None:
    author = Author("mine", "lite@1", ("runs/teacher@abc", "clip@def"))
    for identity in ("reranker@abc", "runs/teacher@abc", "clip:somewhere@def"):
        assert judge(identity).taught(author)
        assert "IT TAUGHT THIS CAPTIONER" in cautions(judge(identity), author)[0]
    assert not judge("runs/teacher@xyz").taught(author)
    assert cautions(judge("runs/teacher@xyz", "lite@2"), author) == []


@pytest.mark.parametrize(
    ("one", "another", "are"),
    [
        ("lite2-ab", "lite2-ab", True),
        ("lite2-ab", "lite2-cd", False),  # of other weights, of which nothing is known
        ("lite2-tuned-ab", "lite2-cd", True),
        ("lite2-tuned-ab", "lite2-tuned-cd", True),
        ("lite2-tuned-ab", "lite1-ab", False),
        ("lite2-tuned-ab", "lite1-tuned-ab", False),
    ],
)
def test_what_one_network_was_tuned_to_sees_as_it_does(one: str, another: str, are: bool) -> None:
    for captioners, own in ((one, another), (another, one)):
        assert judge("judge@1", own).shares_encoder(Author("mine", captioners, ())) is are


def test_of_an_unknown_captioner_nothing_is_claimed() -> None:
    found = judge("judge@1", "lite@1")
    assert found.taught(None) is found.shares_encoder(None) is None
    assert cautions(found, None) == ["whether it taught the captioner is not known"]
    assert judge("judge@1").shares_encoder(Author("mine", "lite@1", ())) is None


def test_the_captioner_itself_judges_by_how_likely_it_finds_a_caption(
    tmp_path: Path, tiny_captioner: Path
) -> None:
    author = find_author(str(tiny_captioner))
    seen: list[tuple[int, int]] = []
    own = judge_by_likelihood(author, watch=lambda done, total: seen.append((done, total)))
    assert own.name == LIKELIHOOD
    assert cautions(own, author) == ["it is the captioner's own opinion of its captions"]
    pictures = [paint(tmp_path / f"{colour}.png", colour) for colour in ("red", "blue", "green")]
    captions = ["a red circle", "a blue square on the left"]
    scores = own.score(captions, pictures)
    # Word by word, as a person would.
    describer = load(tiny_captioner)
    text = describer.saved.captioner.text
    for row, caption in enumerate(captions):
        tokens = torch.tensor(text.encode(caption))
        for column, picture in enumerate(pictures):
            (found,) = look([picture], describer.encoder, parts=["pooled"], cache=None)
            assert isinstance(found, Seen)
            with torch.inference_mode():
                said = describer.saved.captioner.predict(as_vision(found.features), tokens[None, None, :-1])
            logs = said.logits[0, 0].log_softmax(-1).gather(1, tokens[1:, None])
            assert scores[row, column] == pytest.approx(float(logs.sum()), abs=1e-4)
    assert seen[-1] == (3, 3)


def test_teachers_are_read_from_the_captioners_folder(tmp_path: Path, tiny_captioner: Path) -> None:
    assert find_author(str(tiny_captioner)).taught_by == ()
    assert find_author(str(tiny_captioner)).encoder == read_settings(tiny_captioner).encoder.identity
    settings = json.loads((tiny_captioner / "config.json").read_text())
    folder = tmp_path / "taught"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(settings | {"taught_by": ["judge@1", "clip@2"]}))
    assert find_author(str(folder)).taught_by == ("judge@1", "clip@2")


def test_judges_are_named_once() -> None:
    expect_judges(["judge", "likelihood"])
    with pytest.raises(TellapartError, match="--by judge is given twice"):
        expect_judges(["judge", "clip:x", "judge"])
    with pytest.raises(TellapartError, match="no judge is named"):
        expect_judges([])
