"""A run that was broken off, or a collection that has changed: what is captioned anew, and what is kept."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.collection.gallery import PLAN, captions, draw, draw_many, lines, nearest_names, speaker, tell
from tests.outputs.faults import names_in

from tellapart.captioning import Candidate, Describer, Wish, load
from tellapart.collection.session import Request, caption_collection, caption_one_by_one
from tellapart.collection.speaker import Speaker
from tellapart.collection.telling import Told
from tellapart.errors import TellapartError

COUNT = 12


@pytest.fixture(scope="module")
def describer(tiny_captioner: Path) -> Describer:
    return load(tiny_captioner, cached=False)


@pytest.fixture
def who(describer: Describer) -> Speaker:
    return speaker(describer, replace(PLAN, effort=1))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return draw_many(tmp_path / "photos", COUNT)


@pytest.fixture(scope="module")
def whole(describer: Describer, tmp_path_factory: pytest.TempPathFactory) -> list[Told]:
    """What is told of that folder in one go."""
    return tell(
        draw_many(tmp_path_factory.mktemp("photos"), COUNT), speaker(describer, replace(PLAN, effort=1))
    )


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "captions" / "captions.jsonl"


@pytest.fixture
def few_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures go through in groups of a few, as thousands of them do in larger ones."""
    for group in ("gathering.AT_ONCE", "telling.TOGETHER"):
        monkeypatch.setattr(f"tellapart.collection.{group}", 5)


def begun(request: Request, who: Speaker, count: int) -> list[Told]:
    """A run that is broken off after so many captions."""
    running = caption_collection(request, who, watch=lambda what, done, total: None)
    assert isinstance(running, Iterator)
    told = [result for _, result in zip(range(count), running, strict=False) if isinstance(result, Told)]
    running.close()  # type: ignore[attr-defined]
    return told


def tried(told: Sequence[Told]) -> dict[str, list[tuple[str, int]]]:
    """What was tried for each picture, and how many candidates came into question."""
    return {
        one.captioned.image_id: [
            (attempt["by"], attempt["candidates"]) for attempt in one.captioned.about["attempts"]
        ]
        for one in told
    }


@pytest.mark.usefixtures("few_together")
@pytest.mark.parametrize("done", [0, 1, 4, 5, 6, 11, COUNT])
def test_broken_off_after_any_picture_it_goes_on_to_the_same_captions(
    done: int, folder: Path, whole: list[Told], who: Speaker, out: Path, decoded: list[int]
) -> None:
    request = Request([folder], out)

    first = begun(request, who, done)

    expected = [f"{number:02}" for number in range(done)]
    assert list(captions(first)) == [line["image_id"] for line in lines(out)] == expected if done else True
    noted = len(lines(out.with_name(".captions.jsonl.candidates"))) if done else 0
    assert sum(decoded) == noted
    again = tell(request, who)
    assert captions(again) == captions(whole)
    assert [told.is_kept for told in again] == [number < done for number in range(COUNT)]
    assert sum(decoded) == COUNT, "a picture whose candidates were noted was decoded again"
    assert [line["image_id"] for line in lines(out)] == list(captions(whole))
    assert {line["image_id"]: line["caption"] for line in lines(out)} == captions(whole)
    assert names_in(out.parent) == ["captions.jsonl"]


@pytest.mark.usefixtures("few_together")
def test_broken_off_while_it_looks_it_goes_on_where_it_was(
    folder: Path, whole: list[Told], who: Speaker, out: Path, decoded: list[int]
) -> None:
    class StoppedError(Exception):
        pass

    def stop(what: str, done: int, total: int) -> None:
        if what == "looking" and done == 10:
            raise StoppedError

    with pytest.raises(StoppedError):
        list(caption_collection(Request([folder], out), who, watch=stop))
    assert decoded == [5, 5]
    assert names_in(out.parent) == [".captions.jsonl.candidates"]

    told = tell(Request([folder], out), who)

    assert decoded == [5, 5, 2]
    assert captions(told) == captions(whole)
    assert names_in(out.parent) == ["captions.jsonl"]


def test_run_again_it_changes_nothing_and_decodes_nothing(
    folder: Path, who: Speaker, out: Path, decoded: list[int]
) -> None:
    first = tell(Request([folder], out), who)
    before, stamp = out.read_bytes(), out.stat().st_ino
    decoded.clear()

    again = tell(Request([folder], out), who)

    assert [one.captioned for one in again] == [one.captioned for one in first]
    assert all(one.is_kept and not one.has_faded for one in again)
    assert (out.read_bytes(), out.stat().st_ino) == (before, stamp)
    assert decoded == []


def test_without_a_journal_nothing_is_left_behind(
    folder: Path, who: Speaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()

    tell(folder, who)
    begun(Request([folder]), who, 3)

    assert names_in(tmp_path / "temporary") == []
    assert names_in(folder) == [f"{number:02}.png" for number in range(COUNT)]


@pytest.mark.parametrize("seed", [100, 101])
def test_a_picture_added_later_changes_those_whose_rivals_changed(
    seed: int, folder: Path, who: Speaker, out: Path, decoded: list[int]
) -> None:
    before = {one.captioned.image_id: one for one in tell(Request([folder], out), who)}
    near = nearest_names(folder, PLAN.neighbours)
    decoded.clear()
    draw(folder / "new.png", seed)

    told = tell(Request([folder], out), who)

    now = nearest_names(folder, PLAN.neighbours)
    changed = {name for name in now if near.get(name) != now[name]}
    assert {one.captioned.image_id for one in told if not one.is_kept} == changed
    assert 1 < len(changed) < COUNT, "everything or nothing has changed: this test has lost its point"
    assert decoded == [1], "only the new one is looked at with new eyes"
    assert captions(told) == captions(tell(folder, who)), "as if they had been captioned all at once"
    assert tried(told) == tried(tell(folder, who))
    assert [line["image_id"] for line in lines(out)] == [*before, "new"]
    for one in told:
        name = one.captioned.image_id
        was = before.get(name)
        assert one.earlier == ((was.captioned.caption,) if was and not one.is_kept else ())
        if was and one.is_kept:
            assert one.captioned == was.captioned


def test_captions_that_have_become_ambiguous_are_told_even_if_the_run_is_broken_off(
    folder: Path, who: Speaker, out: Path
) -> None:
    before = {one.captioned.image_id: one for one in tell(Request([folder], out), who)}
    for number in range(COUNT):
        # Each gets somebody very like it, though not so like that no words could tell them apart.
        draw(folder / f"like {number:02}.png", number, changed=120)

    begun(Request([folder], out), who, 7)
    told = {one.captioned.image_id: one for one in tell(Request([folder], out), who)}

    retriever, ambiguous = who.retriever, set()
    for name, was in before.items():
        rivals = [folder / f"{rival['image_id']}.png" for rival in told[name].captioned.about["neighbours"]]
        own, *others = retriever.scores([was.captioned.caption], [was.captioned.image, *rivals])[0].tolist()
        if was.captioned.about["found"] and max(others) >= own:
            ambiguous.add(name)
            assert told[name].captioned.about["faded"] == was.captioned.caption
    assert {name for name, one in told.items() if one.has_faded} == ambiguous
    assert {name for name in ambiguous if name <= "06"}, "none was told by the run that was broken off"
    assert not any(one.has_faded for one in tell(Request([folder], out), who)), "told a second time"


def test_a_picture_that_has_changed_is_captioned_anew_and_so_are_its_neighbours(
    folder: Path, who: Speaker, out: Path, decoded: list[int]
) -> None:
    tell(Request([folder], out), who)
    near = nearest_names(folder, PLAN.neighbours)
    decoded.clear()
    draw(folder / "04.png", 77)

    told = tell(Request([folder], out), who)

    now = nearest_names(folder, PLAN.neighbours)
    changed = {name for name in now if near[name] != now[name] or "04" in (name, *now[name])}
    assert {one.captioned.image_id for one in told if not one.is_kept} == changed
    assert decoded == [1]
    assert captions(told) == captions(tell(folder, who))
    assert [line["image_id"] for line in lines(out)] == sorted(now)


def test_the_line_of_a_picture_that_is_gone_goes_and_its_neighbours_are_told_anew(
    folder: Path, who: Speaker, out: Path, decoded: list[int]
) -> None:
    tell(Request([folder], out), who)
    near = nearest_names(folder, PLAN.neighbours)
    decoded.clear()
    (folder / "04.png").unlink()

    told = tell(Request([folder], out), who)

    assert {one.captioned.image_id for one in told if not one.is_kept} == {
        name for name in near if "04" in near[name] and name != "04"
    }
    assert decoded == []
    assert [line["image_id"] for line in lines(out)] == [name for name in near if name != "04"]


def test_a_part_of_the_collection_costs_no_line_of_the_rest(folder: Path, who: Speaker, out: Path) -> None:
    shutil.copytree(folder, folder / "more")
    tell(Request([folder], out), who)
    every = [line["image_id"] for line in lines(out)]

    told = tell(Request([folder], out, limit=5), who)

    assert list(captions(told)) == every[:5]
    assert [line["image_id"] for line in lines(out)] == every


def test_the_first_so_many_pictures(folder: Path, who: Speaker) -> None:
    told = tell(Request([folder], limit=4), who)

    assert list(captions(told)) == ["00", "01", "02", "03"]
    for one in told:
        assert {rival["image_id"] for rival in one.captioned.about["neighbours"]} < {"00", "01", "02", "03"}


def test_names_do_not_hang_on_how_many_are_taken(folder: Path, who: Speaker, out: Path) -> None:
    shutil.copy(folder / "01.png", folder / "00.bmp")
    few = tell(Request([folder], out, limit=2), who)
    every = tell(Request([folder], out), who)

    assert list(captions(few)) == ["00.bmp", "00.png"]
    assert list(captions(every))[:3] == ["00.bmp", "00.png", "01"]
    (folder / "00.bmp").unlink()
    tell(Request([folder], out), who)
    assert [line["image_id"] for line in lines(out)][:2] == ["00", "01"]


def test_pictures_that_are_not_wanted_are_told_from_but_not_captioned(
    folder: Path, whole: list[Told], who: Speaker, out: Path
) -> None:
    request = Request([folder], out, is_done=lambda path: path.stem < "06")

    told = tell(request, who)

    assert captions(told) == {name: caption for name, caption in captions(whole).items() if name >= "06"}
    done = replace(request, is_done=lambda path: True)
    assert all(one.is_kept for one in tell(done, who))
    assert len(lines(out)) == 6, "what the journal knows is told again, for its file may be missing"


Change = Callable[[Speaker], Speaker]
SETTINGS: dict[str, Change] = {
    "effort": lambda who: replace(who, plan=replace(who.plan, effort=2)),
    "seed": lambda who: replace(who, plan=replace(who.plan, seed=1)),
    "apart": lambda who: replace(who, plan=replace(who.plan, apart="pragmatic")),
    "most_neighbours": lambda who: replace(who, plan=replace(who.plan, neighbours=2)),
    "beam": lambda who: replace(who, wish=replace(who.wish, width=11)),
    "most_candidates": lambda who: replace(who, wish=replace(who.wish, keep=9)),
    "max_words": lambda who: replace(who, wish=replace(who.wish, max_words=7)),
    "words": lambda who: replace(who, wish=replace(who.wish, words=replace(who.wish.words, banned=("red",)))),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_other_settings_are_refused_and_nothing_is_lost(
    name: str, folder: Path, who: Speaker, out: Path, decoded: list[int]
) -> None:
    tell(Request([folder], out), who)
    before = out.read_bytes()
    decoded.clear()

    with pytest.raises(TellapartError, match=f"was made with {name} ") as caught:
        tell(Request([folder], out), SETTINGS[name](who))

    assert "write to another file" in caught.value.hint
    assert out.read_bytes() == before
    assert decoded == []
    assert names_in(out.parent) == ["captions.jsonl"]


def test_two_folders_in_one_file_cost_neither_a_caption(
    folder: Path, who: Speaker, out: Path, tmp_path: Path
) -> None:
    other = draw_many(tmp_path / "others", 3, first=50)
    tell(Request([other], out), who)
    told = tell(Request([folder], out), who)
    assert len(lines(out)) == COUNT + 3
    assert not any(one.is_kept for one in told)

    draw(other / "00.png", 99)
    before = out.read_bytes()
    with pytest.raises(TellapartError, match="under the name '00'"):
        tell(Request([other], out), who)
    assert out.read_bytes() == before


def alone(request: Request, who: Speaker) -> list[Told]:
    results = list(caption_one_by_one(request, who.describer, who.wish))
    assert all(isinstance(result, Told) for result in results)
    return [result for result in results if isinstance(result, Told)]


def test_one_by_one_goes_on_too_and_keeps_its_journal_in_order(
    folder: Path, who: Speaker, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = alone(Request([folder]), who)
    seen: list[int] = []
    original = Describer.describe_seen

    def counted(self: Describer, group: Sequence[object], wish: Wish) -> list[tuple[Candidate, ...]]:
        seen.append(len(group))
        return original(self, group, wish)  # type: ignore[arg-type]

    monkeypatch.setattr(Describer, "describe_seen", counted)
    running = caption_one_by_one(Request([folder], out), who.describer, who.wish)
    for _ in range(8):
        next(running)
    running.close()  # type: ignore[attr-defined]
    again = alone(Request([folder], out), who)

    assert captions(again) == captions(whole)
    assert [one.is_kept for one in again] == [True] * 8 + [False] * (COUNT - 8)
    assert sum(seen) == COUNT
    draw(folder / "02.png", 90)
    (folder / "03.png").unlink()
    changed = alone(Request([folder], out), who)
    assert [one.captioned.image_id for one in changed if not one.is_kept] == ["02"]
    assert changed[2].earlier == (captions(whole)["02"],)
    assert [line["image_id"] for line in lines(out)] == sorted(path.stem for path in folder.iterdir())


def test_one_by_one_and_together_do_not_share_a_journal(folder: Path, who: Speaker, out: Path) -> None:
    tell(Request([folder], out), who)
    with pytest.raises(TellapartError, match='was made with apart "margin", not "off"'):
        alone(Request([folder], out), who)
    out.unlink()
    alone(Request([folder], out), who)
    with pytest.raises(TellapartError, match=r"was made with (seed|apart) "):
        tell(Request([folder], out), who)


def test_one_by_one_names_are_the_only_ones_and_bad_files_do_not_count(
    folder: Path, who: Speaker, out: Path
) -> None:
    shutil.copy(folder / "01.png", folder / "00.bmp")
    assert [one.captioned.image_id for one in alone(Request([folder], out, limit=3), who)] == [
        "00.bmp",
        "00.png",
        "01",
    ]
    first = folder.parent / "missing.png"
    results = list(caption_one_by_one(Request([first, folder], limit=2), who.describer, who.wish))
    assert [isinstance(result, Told) for result in results] == [False, True, True]
