"""Collections in which something is wrong: what can be captioned is, the rest is told, nothing is lost."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.collection.gallery import PLAN, captions, draw, draw_many, lines, speaker, tell, tell_all
from tests.outputs.faults import make_room, names_in, small_disk
from tests.retrievers.simple_retriever import SimpleRetriever

from tellapart.captioning import Describer, Words, load
from tellapart.collection.session import Request, caption_collection, caption_one_by_one
from tellapart.collection.speaker import Speaker
from tellapart.collection.telling import Told
from tellapart.errors import TellapartError
from tellapart.retrievers.retriever import Placed
from tellapart.vision.looking import Seen


@pytest.fixture(scope="module")
def describer(tiny_captioner: Path) -> Describer:
    return load(tiny_captioner, cached=False)


@pytest.fixture
def who(describer: Describer) -> Speaker:
    return speaker(describer, replace(PLAN, effort=3))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return draw_many(tmp_path / "photos", 6)


def sorted_out(results: Iterable[Told | TellapartError]) -> tuple[dict[str, str], list[str]]:
    """Captions by name, and what was complained about."""
    every = list(results)
    told = [result for result in every if isinstance(result, Told)]
    return captions(told), [result.problem for result in every if isinstance(result, TellapartError)]


class Meddler(SimpleRetriever):
    """While it looks at one picture, something happens to another that the captioner has seen already."""

    def __init__(self, at: str, victim: Path, replacement: Path | None) -> None:
        super().__init__()
        self.at, self.victim, self.replacement = at, victim, replacement

    def place(self, paths: Iterable[Path | TellapartError]) -> Iterator[Placed | TellapartError]:
        for path in paths:
            if isinstance(path, Path) and path.stem == self.at:
                if self.replacement:
                    shutil.copy(self.replacement, self.victim)
                else:
                    self.victim.unlink()
            yield from super().place([path])


@pytest.mark.parametrize("victim", ["01", "04"])
@pytest.mark.parametrize("becomes", ["gone", "another"])
def test_a_picture_that_goes_or_changes_while_it_is_looked_at_is_told_and_not_noted(
    victim: str, becomes: str, describer: Describer, folder: Path, tmp_path: Path
) -> None:
    other = draw(tmp_path / "other.png", 55) if becomes == "another" else None
    meddler = Meddler("02", folder / f"{victim}.png", other)
    who = speaker(describer, PLAN, retriever=meddler)
    out = tmp_path / "captions.jsonl"

    said, problems = sorted_out(tell_all(Request([folder], out), who))

    whole = ["00", "01", "02", "03", "04", "05"]
    assert (
        list(said) == [line["image_id"] for line in lines(out)] == [name for name in whole if name != victim]
    )
    (problem,) = problems
    assert f"{victim}.png" in problem
    assert ("was changed while it was looked at" if other else "does not exist") in problem
    meddler.at = ""
    again, problems = sorted_out(tell_all(Request([folder], out), who))
    assert problems == []
    assert again == captions(tell(folder, speaker(describer, PLAN)))


@pytest.mark.parametrize("becomes", ["gone", "another", "rubbish"])
def test_pictures_that_go_or_change_between_the_walks_keep_what_they_have(
    becomes: str, who: Speaker, folder: Path, tmp_path: Path
) -> None:
    before = {one.captioned.image_id: one.captioned for one in tell(folder, who)}
    lost = [name for name, captioned in before.items() if len(captioned.about["attempts"]) > 1]
    assert lost
    victims = [*lost[:1], next(name for name in before if name not in lost)]

    def meddle(what: str, done: int, total: int) -> None:
        if what == "captioning" and not done:
            for name in victims:
                if becomes == "gone":
                    (folder / f"{name}.png").unlink()
                elif becomes == "another":
                    draw(folder / f"{name}.png", 66)
                else:
                    (folder / f"{name}.png").write_bytes(b"rubbish")

    out = tmp_path / "captions.jsonl"
    results = list(caption_collection(Request([folder], out), who, watch=meddle))

    told = {one.captioned.image_id: one.captioned for one in results if isinstance(one, Told)}
    assert list(told) == list(before)
    assert len(told[lost[0]].about["attempts"]) == 1, "it was tried again with a picture that was not there"
    assert len(lines(out)) == len(before)


@pytest.mark.parametrize("becomes", ["gone", "another"])
def test_a_picture_that_goes_or_changes_while_it_is_looked_at_again_is_left_out(
    becomes: str, who: Speaker, folder: Path
) -> None:
    describer, seen = who.describer, []

    class Meddling(Describer):
        def look(
            self, paths: Iterable[Path | TellapartError], *, besides: Iterable[str] = ()
        ) -> Iterator[Seen | TellapartError]:
            found = list(super().look(paths, besides=besides))
            seen.append(len(found))
            if len(seen) == 2 and becomes == "gone":
                (folder / "00.png").unlink()
            elif len(seen) == 2:
                draw(folder / "00.png", 88)
            return iter(found)

    meddling = Meddling(describer.name, describer.saved, describer.encoder, None)
    told = tell(folder, replace(who, describer=meddling))

    assert list(captions(told)) == ["00", "01", "02", "03", "04", "05"]
    assert len(seen) > 2, "nothing was looked at again"
    assert len(told[0].captioned.about["attempts"]) == 1


@pytest.mark.parametrize("becomes", ["gone", "another"])
def test_one_by_one_a_picture_that_changes_is_told_and_the_others_are_captioned(
    becomes: str, describer: Describer, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = Describer.look

    def meddling(self: Describer, paths: Iterable[Path | TellapartError]) -> Iterator[object]:
        found = list(look(self, paths))
        if becomes == "gone":
            (folder / "03.png").unlink()
        else:
            draw(folder / "03.png", 44)
        return iter(found)

    monkeypatch.setattr(Describer, "look", meddling)
    out = tmp_path / "captions.jsonl"
    results = caption_one_by_one(Request([folder], out), describer, describer.wish())

    said, problems = sorted_out(results)

    assert list(said) == ["00", "01", "02", "04", "05"]
    assert len(problems) == 1
    assert len(lines(out)) == 5


NAMES = [
    "with space",
    "größe 写真 👩‍🚀",
    "two\nlines\x1b[1m",
    '"quotes" & <b>',
    "100%[red]",
    os.fsdecode(b"no text \xff"),
]


def test_names_of_every_kind(who: Speaker, tmp_path: Path) -> None:
    folder, out = tmp_path / "odd \n folder", tmp_path / "captions.jsonl"
    for seed, name in enumerate(NAMES):
        draw(folder / f"{name}.png", seed)
    request = Request([folder], out)

    told = tell(request, who)

    assert {one.captioned.image.stem for one in told} == set(NAMES)
    assert len({line["image_id"] for line in lines(out)}) == len(NAMES)
    assert {Path(line["image"]) for line in lines(out)} == {one.captioned.image for one in told}
    assert all(one.is_kept for one in tell(request, who))


def test_links_that_lead_in_circles_and_links_to_pictures(who: Speaker, folder: Path) -> None:
    (folder / "around").symlink_to(folder)
    (folder / "circle.png").symlink_to(folder / "circle.png")
    (folder / "link.png").symlink_to("00.png")

    said, problems = sorted_out(tell_all(folder, who))

    assert list(said) == ["00", "01", "02", "03", "04", "05", "link"]
    assert said["link"] == said["00"]
    assert len(problems) == 1
    assert "circle.png" in problems[0]


def test_the_same_picture_named_twice_is_captioned_once(who: Speaker, folder: Path) -> None:
    told = tell(Request([folder / "02.png", folder, folder]), who)

    assert [one.captioned.image.stem for one in told] == ["02", "00", "01", "03", "04", "05"]
    assert not any("doubles" in one.captioned.about for one in told)


def test_an_empty_folder_leaves_nothing(who: Speaker, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    out = tmp_path / "captions.jsonl"

    assert sorted_out(tell_all(Request([tmp_path / "empty"], out), who)) == (
        {},
        [f"{tmp_path / 'empty'} has no pictures in it"],
    )
    assert names_in(tmp_path) == ["empty"]


def test_a_folder_in_which_no_picture_can_be_read_costs_no_caption(
    who: Speaker, folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "captions.jsonl"
    tell(Request([folder], out), who)
    before = out.read_bytes()
    for picture in folder.iterdir():
        picture.write_bytes(b"rubbish")

    said, problems = sorted_out(tell_all(Request([folder], out), who))

    assert (said, len(problems)) == ({}, 6)
    assert out.read_bytes() == before


def test_a_folder_that_is_away_costs_no_caption(who: Speaker, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "captions.jsonl"
    tell(Request([folder], out), who)
    before = out.read_bytes()
    folder.rename(tmp_path / "elsewhere")

    said, problems = sorted_out(tell_all(Request([folder], out), who))
    assert (said, problems) == ({}, [f"{folder} does not exist"])
    folder.mkdir()
    assert sorted_out(tell_all(Request([folder], out), who))[0] == {}

    assert out.read_bytes() == before


def test_a_bad_picture_is_told_and_is_nobodys_rival(who: Speaker, folder: Path) -> None:
    whole = captions(tell(folder, who))
    (folder / "bad.png").write_bytes(b"rubbish")

    said, problems = sorted_out(tell_all(folder, who))

    assert said == whole
    assert len(problems) == 1


def test_a_captioner_with_few_words_gives_few_candidates(describer: Describer, folder: Path) -> None:
    banned = ("a", "circle", "square", "on", "the", "left", "photo", "of")
    who = speaker(describer, replace(PLAN, effort=3), words=Words(banned=banned))
    who = replace(who, wish=replace(who.wish, max_words=1))

    told = tell(folder, who)

    assert {one.caption for result in told for one in result.captioned.candidates} == {"red", "blue", "right"}
    assert all(len(result.captioned.candidates) == 3 for result in told)


def test_a_disk_that_is_full_in_the_middle_costs_no_line(who: Speaker, folder: Path, tmp_path: Path) -> None:
    whole = captions(tell(folder, who))
    with small_disk(tmp_path / "disk", kilobytes=24) as disk:
        request = Request([folder], disk / "captions.jsonl")
        with pytest.raises(TellapartError, match="No space left") as caught:
            tell(request, who)
        assert "free some disk space" in caught.value.hint
        done = [line["image_id"] for line in lines(disk / "captions.jsonl")]
        assert 0 < len(done) < len(whole)
        make_room(disk, kilobytes=512)

        told = tell(request, who)

        assert captions(told) == whole
        assert [one.captioned.image_id for one in told if one.is_kept] == done
        assert names_in(disk) == ["captions.jsonl"]
