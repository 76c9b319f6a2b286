"""`tellapart caption` on a collection: flags do what their help says, lines say where they came from."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.apart import COUNT, Caption, draw_photos, records, refusal, remarks, write_retriever
from tests.collection.gallery import draw, lines
from tests.report.page import Page

if TYPE_CHECKING:
    from tests.conftest import Outcome


@pytest.fixture(scope="module")
def retriever(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_retriever(tmp_path_factory.mktemp("retrievers") / "tiny")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return draw_photos(tmp_path / "photos")


@pytest.fixture
def caption(tellapart: Caption, tiny_captioner: Path, retriever: Path) -> Caption:
    """Run the verb with the tiny captioner and the tiny retriever."""

    def run(*arguments: str | Path) -> Outcome:
        return tellapart("caption", "--captioner", tiny_captioner, "--retriever", retriever, *arguments)

    return run


def attempts(found: list[dict[str, Any]]) -> set[str]:
    return {attempt["by"] for record in found for attempt in record["attempts"]}


def test_json_says_what_the_journal_says(caption: Caption, photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "captions.jsonl"
    found = records(caption(photos, "--json", "--out", out, "--effort", "3", "--seed", "7"))

    noted = lines(out)
    for record, line in zip(found, noted, strict=True):
        assert record == {name: value for name, value in line.items() if name not in ("journal", "key")}
    assert [record["image_id"] for record in found] == [f"{number:02}" for number in range(COUNT)]
    again = records(caption(photos, "--json", "--out", out, "--effort", "3", "--seed", "7"))
    assert again == found


@pytest.mark.parametrize(("flags", "others"), [((), 0), (("--candidates", "3"), 2)])
def test_a_page_shows_no_more_candidates_than_asked_for(
    flags: tuple[str, ...], others: int, caption: Caption, photos: Path, tmp_path: Path
) -> None:
    assert caption(photos, "--page", tmp_path / "page.html", *flags).code == 0

    page = Page(tmp_path / "page.html")
    assert len(page.pictures) == COUNT
    assert [tag for tag, _ in page.tags].count("li") == COUNT * others


def test_every_line_says_where_its_caption_came_from(
    caption: Caption, photos: Path, tiny_captioner: Path
) -> None:
    found = records(caption(photos, "--json", "--seed", "7", "--neighbours", "3"))

    for record in found:
        assert record["model"] == str(tiny_captioner)
        assert len(record["weights"]) == 16
        assert (record["seed"], record["apart"], record["effort"]) == (7, "margin", 1)
        assert record["retriever"].startswith("dual@")
        assert (record["beam"], record["most_candidates"], record["most_neighbours"]) == (10, 10, 3)
        assert record["caption"] == record["candidates"][0]["caption"]
        for candidate in record["candidates"]:
            assert set(candidate) == {"caption", "logprob", "closeness", "margin", "by"}
        assert len(record["neighbours"]) == 3
        last = record["attempts"][-1]
        assert last["found"] == record["found"] == (record["candidates"][0]["margin"] > 0)
        assert last["margin"] == round(record["candidates"][0]["margin"], 4)
        assert last["candidates"] == len(record["candidates"])


def test_plain_lines_say_the_same_and_remarks_who_is_not_found(caption: Caption, photos: Path) -> None:
    found = records(caption(photos, "--json", "--candidates", "2"))
    outcome = caption(photos, "--candidates", "2")

    expected: list[str] = []
    for record in found:
        best, other = record["candidates"][:2]
        expected += [f"{record['image']}: {best['caption']}", f"    {other['caption']}"]
    assert outcome.out.splitlines() == expected
    lost = [record["image_id"] for record in found if not record["found"]]
    assert lost
    assert remarks(outcome) == [
        f"note: {len(lost)} of {COUNT} captions do not find their picture: {', '.join(lost)}"
    ]
    assert [line for line in outcome.err.splitlines() if line.endswith(" …")] == [
        "looking …",
        "comparing …",
        "captioning …",
    ]


def test_asking_for_fewer_captions_takes_nothing_from_the_choice(caption: Caption, photos: Path) -> None:
    one, three = (records(caption(photos, "--json", "--candidates", count)) for count in ("1", "3"))
    assert one == three
    many = records(caption(photos, "--json", "--candidates", "15", "--effort", "0"))
    assert all(len(record["candidates"]) == 15 for record in many)


def test_each_way_to_tell_apart(caption: Caption, photos: Path) -> None:
    margin, pragmatic = (
        records(caption(photos, "--json", "--apart", way, "--effort", "0")) for way in ("margin", "pragmatic")
    )
    assert attempts(margin) == {"candidates"}
    assert attempts(pragmatic) == {"candidates", "pragmatic"}
    off = records(caption(photos, "--json", "--apart", "off", "--beam", "10"))
    assert [list(record) for record in off] == [
        ["image", "image_id", "caption", "candidates", "model"]
    ] * COUNT
    for alone, record in zip(off, margin, strict=True):
        likeliest = max(record["candidates"], key=lambda one: float(one["logprob"]))
        assert alone["caption"] == likeliest["caption"]
    assert [record["caption"] for record in off] != [record["caption"] for record in margin]


def test_how_hard_is_tried(caption: Caption, photos: Path) -> None:
    ladder = ["candidates", "more", "pragmatic", "longer"]
    for effort in range(4):
        found = records(caption(photos, "--json", "--effort", str(effort)))
        assert attempts(found) == set(ladder[: effort + 1])
    assert caption(photos, "--effort", "4").code == 2
    assert caption(photos, "--effort", "-1").code == 2
    assert caption(photos, "--neighbours", "0").code == 2
    assert caption(photos, "--apart", "up").code == 2
    assert caption(photos, "--limit", "0").code == 2


def test_the_seed_decides_what_is_drawn(caption: Caption, photos: Path) -> None:
    first, again, other = (
        records(caption(photos, "--json", "--seed", seed, "--effort", "1")) for seed in ("0", "0", "1")
    )
    assert first == again

    def drawn(found: list[dict[str, Any]]) -> list[set[str]]:
        return [{one["caption"] for one in record["candidates"] if one["by"] == "more"} for record in found]

    assert drawn(first) != drawn(other)


@pytest.mark.parametrize("neighbours", [1, 100])
def test_of_how_many_others_each_is_told_from(neighbours: int, caption: Caption, photos: Path) -> None:
    found = records(caption(photos, "--json", "--neighbours", str(neighbours), "--effort", "0"))
    assert {len(record["neighbours"]) for record in found} == {min(neighbours, COUNT - 1)}


def test_a_retriever_that_is_none_is_refused(
    tellapart: Caption, tiny_captioner: Path, photos: Path, tmp_path: Path
) -> None:
    outcome = tellapart("caption", photos, "--captioner", tiny_captioner, "--retriever", tmp_path / "none")
    assert "no retriever is called so" in refusal(outcome)


def test_only_the_first_so_many(caption: Caption, photos: Path) -> None:
    assert [record["image_id"] for record in records(caption(photos, "--json", "--limit", "3"))] == [
        "00",
        "01",
        "02",
    ]
    off = caption(photos, "--limit", "2", "--apart", "off")
    assert len(off.out.splitlines()) == 2


def test_a_single_picture_is_not_told_from_anything(caption: Caption, photos: Path) -> None:
    (record,) = records(caption(photos / "03.png", "--json"))
    assert list(record) == ["image", "image_id", "caption", "candidates", "model"]
    (alone,) = records(caption(draw_photos(photos / "sub", 1), "--json"))
    assert (alone["found"], alone["neighbours"]) == (True, [])


def test_words_that_are_banned_required_or_come_first(caption: Caption, photos: Path) -> None:
    flags = ["--ban", "on", "--ban", "left left", "--require", "red", "--require", "a circle"]
    for apart in ("margin", "pragmatic", "off"):
        outcome = caption(
            photos, "--json", *flags, "--prefix", "the photo", "--apart", apart, "--effort", "2"
        )
        for record in records(outcome):
            for candidate in record["candidates"]:
                said = candidate["caption"]
                assert said.startswith("the photo")
                assert "red" in said.split()
                assert "a circle" in said
                assert "on" not in said.split()
                assert "left left" not in said


IMPOSSIBLE = {
    "an unknown word": (["--require", "zebra"], "required: the captioner cannot write 'zebra'"),
    "no word": (["--require", " "], "has no words"),
    "no room": (["--require", "a red circle", "--max-words", "2"], "the required words take 3 places"),
    "no room behind the prefix": (
        ["--require", "red circle", "--prefix", "the photo", "--max-words", "3"],
        "take 2 places behind the 2 of the prefix",
    ),
    "required and banned": (["--require", "a red circle", "--ban", "red"], "and banned"),
    "required and banned in part": (["--require", "a red circle", "--ban", "Red circle"], "and banned"),
    "first and banned": (["--prefix", "the photo", "--ban", "photo"], "'the photo' is wanted"),
    "everything banned": (
        [
            word
            for one in ("a", "red", "blue", "circle", "square", "on", "the", "left", "right", "photo", "of")
            for word in ("--ban", one)
        ],
        "every word is banned",
    ),
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_what_cannot_be_is_refused_before_any_work(
    what: str, caption: Caption, photos: Path, tmp_path: Path
) -> None:
    flags, said = IMPOSSIBLE[what]
    out = tmp_path / "captions.jsonl"
    assert said in refusal(caption(photos, *flags, "--out", out))
    assert not out.exists()


def test_a_word_banned_elsewhere_may_be_in_another_phrase(caption: Caption, photos: Path) -> None:
    outcome = caption(photos, "--require", "red circle", "--ban", "circle red", "--effort", "0")
    assert outcome.code == 0
    assert all("red circle" in line for line in outcome.out.splitlines())


def test_other_settings_are_refused_in_a_line(caption: Caption, photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "captions.jsonl"
    assert caption(photos, "--out", out).code == 0
    before = out.read_bytes()
    problem = refusal(caption(photos, "--out", out, "--seed", "1"))
    assert "the caption of '00' was made with seed 0, not 1" in problem
    assert 'made with apart "margin", not "off"' in refusal(
        caption(photos, "--out", out, "--apart", "off", "--beam", "10", "--candidates", "10")
    )
    assert out.read_bytes() == before


def test_a_picture_added_later_is_all_that_is_said_to_have_changed(
    caption: Caption, photos: Path, tmp_path: Path
) -> None:
    out = tmp_path / "captions.jsonl"
    assert caption(photos, "--out", out, "--neighbours", "1").code == 0
    draw(photos / "new.png", 3, changed=200)

    outcome = caption(photos, "--out", out, "--neighbours", "1")

    kept = sum(line.startswith("note: ") and "were kept" in line for line in remarks(outcome))
    assert kept == 1
    assert len(lines(out)) == COUNT + 1
    again = caption(photos, "--out", out, "--neighbours", "1")
    assert f"note: {COUNT + 1} of {COUNT + 1} captions were kept: nothing has changed around them" in remarks(
        again
    )
    assert again.out == outcome.out


def test_doubles_are_named(caption: Caption, photos: Path) -> None:
    shutil.copy(photos / "02.png", photos / "02 again.png")
    outcome = caption(photos, "--json")
    assert [record["doubles"] for record in records(outcome) if "doubles" in record] == [["02"], ["02 again"]]
    assert any(
        "2 pictures have doubles that no words could tell them from: 02 again, 02" in line
        for line in remarks(outcome)
    )


Reader = Callable[[Path, Path, Path], list[str | Path]]
READERS: dict[str, Reader] = {
    "score": lambda out, photos, retriever: ["score", out, "--metrics", "diversity"],
    "self-retrieve": lambda out, photos, retriever: [
        "self-retrieve",
        out,
        "--images",
        photos,
        "--by",
        retriever,
        "--encoder",
        "patches",
    ],
    "audit": lambda out, photos, retriever: ["audit", out, "--images", photos, "--by", retriever],
    "search": lambda out, photos, retriever: [
        "search",
        photos / "01.png",
        photos,
        "--captions",
        out,
        "--retriever",
        retriever,
    ],
}


@pytest.mark.parametrize(
    ("reader", "source"),
    [*((reader, source) for reader in READERS for source in ("journal", "json")), ("score", "coco")],
)
def test_what_it_writes_others_can_read(
    reader: str,
    source: str,
    caption: Caption,
    tellapart: Caption,
    photos: Path,
    retriever: Path,
    tmp_path: Path,
) -> None:
    out = tmp_path / ("captions.json" if source == "coco" else "captions.jsonl")
    if source == "json":
        out.write_text(caption(photos, "--json", "--effort", "0").out, encoding="utf-8")
    else:
        assert caption(photos, "--effort", "0", "--coco" if source == "coco" else "--out", out).code == 0

    outcome = tellapart(*READERS[reader](out, photos, retriever), "--json")

    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out)
    assert "error" not in outcome.err
