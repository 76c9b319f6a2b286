"""What is said of a collection, held against computing it all again: captions, rivals, attempts."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.collection.gallery import (
    PLAN,
    captions,
    cosines,
    draw,
    draw_many,
    nearest_names,
    speaker,
    tell,
)
from tests.retrievers.colour_retriever import ColourRetriever, paint
from tests.retrievers.simple_retriever import SimpleRetriever
from tests.retrievers.tiny_dual import write_tiny_dual

from tellapart.captioning import Describer, Words, load
from tellapart.collection import choosing
from tellapart.collection.attempts import longer, more, see_group
from tellapart.collection.cases import Case
from tellapart.collection.choosing import FIRST
from tellapart.collection.gathering import Picture
from tellapart.collection.plan import Plan
from tellapart.collection.session import Request, caption_one_by_one
from tellapart.collection.speaker import Speaker, content_of
from tellapart.collection.telling import Told
from tellapart.data.small_words import UNFINISHED
from tellapart.errors import TellapartError
from tellapart.reranking.margin import Terms
from tellapart.retrievers.loading import load_retriever
from tellapart.searching import NEAR
from tellapart.vision.looking import Seen

COUNT = 10
TERMS = Terms()
LENGTH_PENALTY = 0.0  # of the tiny captioner's beam, which captions are compared by


@pytest.fixture(scope="module")
def describer(tiny_captioner: Path) -> Describer:
    return load(tiny_captioner, cached=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures that differ, but for a copy and one that is nearly another."""
    folder = draw_many(tmp_path_factory.mktemp("collection"), COUNT)
    shutil.copy(folder / "03.png", folder / "copy of 03.png")
    draw(folder / "nearly 05.png", 5, changed=3)
    return folder


@pytest.fixture(scope="module")
def by_effort(describer: Describer, folder: Path) -> dict[tuple[str, int], list[Told]]:
    """The collection told in every way there is."""
    plans = [
        replace(PLAN, apart=apart, effort=effort) for apart in ("margin", "pragmatic") for effort in range(4)
    ]
    return {(plan.apart, plan.effort): tell(folder, speaker(describer, plan)) for plan in plans}


def test_the_caption_is_what_the_retriever_says_of_all_candidates(
    folder: Path, by_effort: dict[tuple[str, int], list[Told]]
) -> None:
    retriever = SimpleRetriever()
    first = {
        told.captioned.image_id: {one.caption for one in told.captioned.candidates if one.by == FIRST}
        for told in by_effort["margin", 3]
    }
    lost = left_to_others = 0
    for told in by_effort["margin", 3]:
        found = told.captioned
        rivals = [folder / f"{rival['image_id']}.png" for rival in found.about["neighbours"]]
        sentences = [candidate.caption for candidate in found.candidates]
        close = retriever.scores(sentences, [found.image, *rivals]).astype(np.float64)
        margins = close[:, 0] - close[:, 1:].max(axis=1)
        assert [one.closeness for one in found.candidates] == pytest.approx(close[:, 0], abs=1e-6)
        assert [one.margin for one in found.candidates] == pytest.approx(margins, abs=1e-6)
        soft = TERMS.temperature * np.log(np.exp(close[:, 1:] / TERMS.temperature).sum(axis=1))
        lengths = np.array([len(sentence.split()) + 1 for sentence in sentences])
        fits = np.array([one.logprob for one in found.candidates]) / lengths**LENGTH_PENALTY
        weighed = close[:, 0] - TERMS.weight * soft + PLAN.fit * fits
        taken = [
            any(
                sentence in first[rival.stem] and other > own
                for rival, other in zip(rivals, others, strict=True)
            )
            for sentence, (own, *others) in zip(sentences, close, strict=True)
        ]
        free = [value for value, is_taken in zip(weighed, taken, strict=True) if not is_taken]
        assert weighed[0] == pytest.approx(max(free or weighed), abs=1e-6)
        left_to_others += any(taken)
        assert found.about["found"] == bool(margins[0] > 0)
        lost += not found.about["found"]
    assert 0 < lost < COUNT, "no picture is lost, or all are: this test has lost its point"
    assert left_to_others, "no caption is left to a rival: this test has lost its point"


def test_rivals_are_the_nearest_and_doubles_are_named(
    folder: Path, by_effort: dict[tuple[str, int], list[Told]]
) -> None:
    names, close = cosines(folder)
    for told in by_effort["margin", 0]:
        about = told.captioned.about
        row = names.index(told.captioned.image_id)
        doubles = {names[other] for other in np.flatnonzero(close[row] >= NEAR) if other != row}
        assert set(about.get("doubles", [])) == doubles
        rivals = {rival["image_id"]: rival["closeness"] for rival in about["neighbours"]}
        assert not doubles & rivals.keys()
        assert not {"03", "copy of 03"} <= rivals.keys(), "a picture that is there twice is one rival"
        others = sorted((value for value in close[row] if value < NEAR), reverse=True)
        assert list(rivals.values()) == sorted(rivals.values(), reverse=True)
        assert max(rivals.values()) == pytest.approx(others[0], abs=1e-4)
        assert len(rivals) == PLAN.neighbours
    assert {
        told.captioned.image_id for told in by_effort["margin", 0] if told.captioned.about.get("doubles")
    } == {
        "03",
        "copy of 03",
        "05",
        "nearly 05",
    }


def test_copies_get_the_same_caption(by_effort: dict[tuple[str, int], list[Told]]) -> None:
    for told in by_effort.values():
        said = captions(told)
        assert said["03"] == said["copy of 03"]


LADDERS = {
    "margin": ["candidates", "more", "pragmatic", "longer"],
    "pragmatic": ["candidates", "pragmatic", "more", "longer"],
}


@pytest.mark.parametrize("apart", LADDERS)
@pytest.mark.parametrize("effort", range(4))
def test_it_is_tried_again_until_it_is_found_as_far_as_the_effort_goes(
    apart: str, effort: int, by_effort: dict[tuple[str, int], list[Told]]
) -> None:
    allowed = LADDERS[apart][: effort + 1]
    if apart == "pragmatic":
        allowed = ["candidates", "pragmatic", *["more", "longer"][: {0: 0, 1: 1, 2: 1, 3: 2}[effort]]]
    for told in by_effort[apart, effort]:
        attempts = told.captioned.about["attempts"]
        assert [attempt["by"] for attempt in attempts] == allowed[: len(attempts)]
        least = 2 if apart == "pragmatic" else 1
        assert all(not attempt["found"] for attempt in attempts[least - 1 : -1])
        assert attempts[-1]["found"] or len(attempts) == len(allowed)
        assert attempts[-1]["found"] == told.captioned.about["found"]
        counts = [attempt["candidates"] for attempt in attempts]
        assert counts == sorted(counts)
        assert counts[-1] == len(told.captioned.candidates)
        assert {candidate.by for candidate in told.captioned.candidates} <= set(allowed[: len(attempts)])


def test_captions_that_are_cut_off_come_last(describer: Describer, tmp_path: Path) -> None:
    """With two words to a caption, many candidates of a captioner who says nonsense end in an article."""
    for seed in range(24):
        draw(tmp_path / f"{seed}.png", seed)
    wish = replace(describer.wish(keep=10), max_words=2)
    told = tell(tmp_path, replace(speaker(describer, replace(PLAN, fit=0.0)), wish=wish))
    ends = [[one.caption.split()[1:] for one in each.captioned.candidates] for each in told]
    cut = [[bool(end) and end[0] in UNFINISHED for end in each] for each in ends]
    assert [each for each in cut if each[0]] == []
    assert any(any(each) for each in cut)


@pytest.mark.parametrize("apart", LADDERS)
def test_more_effort_never_loses_a_picture_nor_changes_one_that_was_found(
    apart: str, by_effort: dict[tuple[str, int], list[Told]]
) -> None:
    for effort in range(3):
        less, much = by_effort[apart, effort], by_effort[apart, effort + 1]
        for before, after in zip(less, much, strict=True):
            if before.captioned.about["found"]:
                assert after.captioned == before.captioned
    share = [sum(told.captioned.about["found"] for told in by_effort[apart, effort]) for effort in range(4)]
    assert share == sorted(share)
    assert share[0] < share[-1]


def test_the_same_seed_gives_the_same_captions_and_another_draws_others(
    describer: Describer, folder: Path, by_effort: dict[tuple[str, int], list[Told]]
) -> None:
    again = tell(folder, speaker(describer, replace(PLAN, effort=1)))
    other = tell(folder, speaker(describer, replace(PLAN, effort=1, seed=1)))

    assert again == by_effort["margin", 1]
    assert captions(other) != captions(again)
    for one, two in zip(other, again, strict=True):
        first = [found.about["attempts"][0] for found in (one.captioned, two.captioned)]
        assert first[0] == first[1], "chance has no part in the first candidates"


def test_which_pictures_come_together_changes_nothing_that_a_picture_draws(
    describer: Describer, folder: Path
) -> None:
    who = speaker(describer, replace(PLAN, effort=1))
    paths = sorted(folder.glob("*.png"))
    cases = [
        Case(
            row,
            Picture(seen.path, seen.path.stem, content_of(seen), is_wanted=True),
            np.eye(2, dtype=np.float32),
        )
        for row, seen in enumerate(describer.look(paths))
        if not isinstance(seen, TellapartError)
    ]

    def drawn(*some: Case) -> list[list[str]]:
        group = see_group(who, some, {})
        assert group is not None
        return [[one.caption for one in found] for found in more(who, group)]

    together = drawn(*cases)
    assert together == [found for case in cases for found in drawn(case)]
    assert list(reversed(together)) == drawn(*reversed(cases))
    assert len(set(map(tuple, together))) == len(cases) - 1, "but for the copy, each draws its own"


@pytest.mark.parametrize(("effort", "at_rivals"), [(1, False), (2, True)])
def test_rivals_are_looked_at_again_only_where_captions_are_written_against_them(
    effort: int, at_rivals: bool, describer: Describer, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    see_again = Speaker.see_again

    def counted(self: Speaker, pictures: Mapping[Path, str]) -> dict[Path, Seen]:
        looked.append(len(pictures))
        return see_again(self, pictures)

    monkeypatch.setattr(Speaker, "see_again", counted)
    monkeypatch.setattr(choosing, "TARGETS", 1)
    tell(folder, speaker(describer, replace(PLAN, effort=effort)))
    assert looked
    assert (max(looked) > 1) == at_rivals


def test_in_another_order_each_gets_the_same_caption(
    describer: Describer, folder: Path, by_effort: dict[tuple[str, int], list[Told]]
) -> None:
    paths = sorted(folder.glob("*.png"), reverse=True)
    told = tell(Request(paths), speaker(describer, replace(PLAN, effort=3)))

    found = {one.captioned.image.stem: one.captioned.caption for one in told}
    assert found == captions(by_effort["margin", 3])


def test_longer_captions_are_longer(describer: Describer, folder: Path) -> None:
    who = speaker(describer, replace(PLAN, effort=3))
    seen = next(iter(describer.look([folder / "00.png"])))
    assert not isinstance(seen, TellapartError)
    case = Case(0, Picture(seen.path, "00", content_of(seen), is_wanted=True), np.eye(2, dtype=np.float32))
    case.add(tell(folder / "00.png", who)[0].captioned.candidates, by="candidates")
    group = see_group(who, [case], {0: ()})
    assert group is not None

    (found,) = longer(who, group)

    longest = who.wish.max_words
    least = min(len(case.candidates[0].caption.split()) + 3, longest)
    assert found
    assert all(least <= len(candidate.caption.split()) <= longest for candidate in found)


def test_colours_are_told_apart_by_their_names(describer: Describer, tmp_path: Path) -> None:
    paint(tmp_path / "red.png", "red")
    paint(tmp_path / "blue.png", "blue")
    who = speaker(describer, Plan(neighbours=1, effort=1), retriever=ColourRetriever())

    blue, red = tell(tmp_path, who)

    assert "red" in red.captioned.caption.split()
    assert "red" not in blue.captioned.caption.split()
    assert "blue" in blue.captioned.caption.split()


def test_a_retriever_with_the_captioners_encoder_looks_but_once(
    describer: Describer, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    retriever = load_retriever(
        write_tiny_dual(tmp_path / "dual", ["a red circle on the left", "a blue square"])
    )
    who = speaker(describer, PLAN, retriever=retriever)
    direct = {
        path.stem: vector
        for path, vector in zip(
            sorted(folder.glob("*.png")), retriever.embed_images(sorted(folder.glob("*.png"))), strict=True
        )
    }
    monkeypatch.setattr(retriever, "place", None)

    told = tell(folder, who)

    for one in told:
        for rival in one.captioned.about["neighbours"]:
            expected = float(direct[one.captioned.image_id] @ direct[rival["image_id"]])
            assert rival["closeness"] == pytest.approx(expected, abs=1e-4)


def test_words_hold_in_every_attempt(describer: Describer, folder: Path) -> None:
    words = Words("a photo", ("red", "on the"), ("square",))
    told = tell(folder, speaker(describer, replace(PLAN, effort=3), words=words))

    said = [candidate.caption for one in told for candidate in one.captioned.candidates]
    assert len(said) > 100
    assert all(caption.startswith("a photo") for caption in said)
    assert all("square" in caption.split() and "red" not in caption.split() for caption in said)
    assert not any("on the" in caption for caption in said)
    assert {candidate.by for one in told for candidate in one.captioned.candidates} == set(LADDERS["margin"])


def test_alone_in_its_folder_a_picture_gets_what_it_gets_by_itself(
    describer: Describer, tmp_path: Path
) -> None:
    draw(tmp_path / "a.png", 3)
    who = speaker(describer, replace(PLAN, effort=3))

    (told,) = tell(tmp_path, who)
    (alone,) = caption_one_by_one(Request([tmp_path]), describer, who.wish)

    assert isinstance(alone, Told)
    assert told.captioned.caption == alone.captioned.caption
    assert told.captioned.about["found"]
    assert told.captioned.about["neighbours"] == []
    assert [attempt["by"] for attempt in told.captioned.about["attempts"]] == ["candidates"]


def test_pictures_that_are_all_the_same_are_doubles_and_not_forced(
    describer: Describer, tmp_path: Path
) -> None:
    for name in "abc":
        draw(tmp_path / f"{name}.png", 1)

    told = tell(tmp_path, speaker(describer, replace(PLAN, effort=3)))

    assert [one.captioned.about["doubles"] for one in told] == [["b", "c"], ["a", "c"], ["a", "b"]]
    assert len(set(captions(told).values())) == 1
    assert all(len(one.captioned.about["attempts"]) == 1 for one in told)


@pytest.mark.parametrize("neighbours", [1, 5, 100])
def test_so_many_rivals_as_there_are(neighbours: int, describer: Describer, tmp_path: Path) -> None:
    folder = draw_many(tmp_path, 6)
    told = tell(folder, speaker(describer, Plan(neighbours=neighbours)))

    expected = nearest_names(folder, neighbours)
    for one in told:
        assert [rival["image_id"] for rival in one.captioned.about["neighbours"]] == expected[
            one.captioned.image_id
        ]


@pytest.mark.parametrize(("neighbours", "effort"), [(0, 1), (-1, 1), (3, 4), (3, -1)])
def test_plans_that_cannot_be(neighbours: int, effort: int) -> None:
    with pytest.raises(TellapartError, match=r"neighbours|effort"):
        Plan(neighbours=neighbours, effort=effort)
