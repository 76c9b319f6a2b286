"""Captions that are held against what was drawn of their pictures by chance."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests.collection.gallery import PLAN, captions, draw, draw_many, lines, speaker, tell

from tellapart.captioning import Describer, load
from tellapart.collection.attempts import SAMPLES
from tellapart.collection.session import Request

COUNT = 12


@pytest.fixture(scope="module")
def describer(tiny_captioner: Path) -> Describer:
    return load(tiny_captioner, cached=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return draw_many(tmp_path / "photos", COUNT)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "captions.jsonl"


def test_captions_that_agree_with_draws_are_kept_and_come_out_the_same_in_a_collection_that_grows(
    folder: Path, describer: Describer, out: Path, decoded: list[int]
) -> None:
    who = speaker(describer, replace(PLAN, agree=7))
    first = tell(Request([folder], out), who)
    assert all(len(one.captioned.about["drawn"]) == 7 for one in first)
    assert [line["drawn"] for line in lines(out)] == [one.captioned.about["drawn"] for one in first]
    decoded.clear()
    assert all(one.is_kept for one in tell(Request([folder], out), who))
    assert decoded == []
    draw(folder / "new.png", 101)

    told = tell(Request([folder], out), who)

    assert decoded == [1], "only the new one is looked at with new eyes"
    assert captions(told) == captions(tell(folder, who)), "as if they had been captioned all at once"
    assert 0 < sum(not one.is_kept for one in told) < len(told)
    assert {one.captioned.about["drawn"][0] for one in told} >= {
        one.captioned.about["drawn"][0] for one in first
    }, "what is drawn of a picture does not hang on its company"


def test_told_from_nobody_a_caption_hangs_on_its_picture_alone(
    folder: Path, describer: Describer, out: Path, tmp_path: Path
) -> None:
    who = speaker(describer, replace(PLAN, apart="off", agree=7))
    first = tell(Request([folder], out), who)
    assert not any(one.captioned.about["neighbours"] for one in first)
    shutil.copy(folder / "00.png", folder / "copy.png")

    told = tell(Request([folder], out), who)

    assert [one.captioned.image_id for one in told if not one.is_kept] == ["copy"]
    assert captions(told)["copy"] == captions(told)["00"]
    assert not any("doubles" in one.captioned.about for one in told)


def test_candidates_that_are_drawn_later_are_not_those_they_are_held_against(
    folder: Path, describer: Describer
) -> None:
    told = tell(folder, speaker(describer, replace(PLAN, effort=1, agree=SAMPLES)))

    again = [one.captioned for one in told if len(one.captioned.about["attempts"]) > 1]
    assert again, "all were found at once: this test has lost its point"
    for one in again:
        more = {candidate.caption for candidate in one.candidates if candidate.by == "more"}
        assert not more <= set(one.about["drawn"])
