"""A sentence or a picture finds the pictures nearest to it, and says what was not as expected."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw
from tests.retrievers.simple_retriever import SimpleRetriever
from tests.retrievers.tiny_dual import write_tiny_dual

import tellapart.searching
from tellapart.errors import TellapartError
from tellapart.retrievers.store.vectors import store_of
from tellapart.searching import CaptionHit, Found, Query, read_query, search

COLOURS = ("black", "blue", "green", "red", "white", "yellow")


@pytest.fixture(autouse=True)
def empty_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("own cache")
    monkeypatch.setenv("TELLAPART_CACHE", str(folder))
    return folder


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """A picture of each colour that the retriever knows; two have captions beside them."""
    folder = tmp_path / "photos"
    for colour in COLOURS:
        path = folder / ("deep" if colour == "blue" else "") / f"{colour}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (12, 12), colour if colour != "green" else (0, 160, 0)).save(path)
    (folder / "red.txt").write_text("a red field\nthe red picture\n", encoding="utf-8")
    (folder / "green.txt").write_text("green grass\na red field\n", encoding="utf-8")
    return folder


def ask(query: str | Path, folder: Path, k: int = 10, **options: object) -> Found:
    return search(query, folder, k, retriever=SimpleRetriever(), **options)  # type: ignore[arg-type]


def names(found: Found) -> list[str]:
    return [hit.name for hit in found.hits]


def striped(colour: str, other: str) -> Image.Image:
    """Three rows of nine fields, of which one row is of another colour."""
    picture = Image.new("RGB", (12, 12), colour)
    ImageDraw.Draw(picture).rectangle((0, 8, 12, 12), fill=other)
    return picture


@pytest.mark.parametrize("colour", COLOURS)
def test_a_sentence_finds_the_picture_it_names(colour: str, photos: Path) -> None:
    found = ask(f"The {colour} picture!", photos, 2)
    assert Path(found.hits[0].name).stem == colour
    assert found.hits[0].score > 0.8 > found.hits[1].score
    assert found.hits[0].path == photos / found.hits[0].name
    assert (found.count, found.retriever, found.notes, found.problems) == (6, "simple", (), ())
    assert found.query == Query(f"The {colour} picture!")
    assert found.captions == ()


def test_scores_are_cosines_and_fall(photos: Path) -> None:
    found = ask("red", photos)
    scores = [hit.score for hit in found.hits]
    assert scores == sorted(scores, reverse=True)
    retriever = SimpleRetriever()
    expected = retriever.scores(["red"], [hit.path for hit in found.hits])[0]
    np.testing.assert_allclose(scores, expected, atol=1e-6)


def test_captions_beside_the_pictures_come_with_them(photos: Path) -> None:
    found = ask("red", photos)
    captions = {hit.name: hit.captions for hit in found.hits}
    assert captions["red.png"] == ("a red field", "the red picture")
    assert captions["green.png"] == ("green grass", "a red field")
    assert captions["white.png"] == ()


def test_a_picture_finds_pictures_and_captions(photos: Path, tmp_path: Path) -> None:
    striped("red", "yellow").save(tmp_path / "mostly red.png")
    found = ask(tmp_path / "mostly red.png", photos, 2)
    assert names(found) == ["red.png", "yellow.png"]
    assert [hit.same_as or hit.like for hit in found.hits] == [None, None]
    told = [line.caption for line in found.captions]
    assert set(told) == {"a red field", "the red picture"}
    assert found.captions[told.index("a red field")].images == ("green.png", "red.png")
    scores = SimpleRetriever().scores(told, [tmp_path / "mostly red.png"])
    assert scores[0] > scores[1]
    np.testing.assert_allclose([line.score for line in found.captions], scores[:, 0], atol=1e-6)


def test_a_picture_of_the_folder_finds_itself_and_is_not_looked_at_again(photos: Path) -> None:
    ask("red", photos)
    retriever = SimpleRetriever()
    found = search(photos / "red.png", photos, 1, retriever=retriever)
    (hit,) = found.hits
    assert (hit.name, round(hit.score, 6), hit.same_as) == ("red.png", 1, photos / "red.png")
    assert found.mark(hit) == "same picture as the query"
    assert retriever.placed == []


def test_a_damaged_vector_of_the_query_is_not_taken_for_it(photos: Path) -> None:
    ask("red", photos)
    file = next(store_of("pictures", photos, SimpleRetriever()).folder.glob("vectors-*"))
    file.write_bytes(bytes(len(file.read_bytes())))
    assert round(ask(photos / "red.png", photos, 1).hits[0].score, 6) == 1


def test_captions_of_a_file_take_the_place_of_those_beside(photos: Path, tmp_path: Path) -> None:
    file = tmp_path / "captions.jsonl"
    rows = [
        {"image": "white.png", "captions": ["the white field", "white"]},
        {"image": "not here.png", "caption": "green on green"},
    ]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    found = ask("white", photos, 3, captions=file)
    assert {hit.name: hit.captions for hit in found.hits}["white.png"] == ("the white field", "white")
    assert all(hit.captions == () for hit in found.hits if hit.name != "white.png")
    assert found.captions == ()
    found = ask(photos / "green.png", photos, 1, captions=file)
    assert found.hits[0].captions == ()
    (line,) = found.captions
    assert (line.caption, line.images) == ("green on green", ("not here",))


def test_more_than_there_are_gives_all_with_a_note(photos: Path) -> None:
    found = ask("red", photos, 7)
    assert len(found.hits) == 6
    assert found.notes == (f"{photos} has 6 pictures to search: all are shown",)
    assert ask("red", photos, 6).notes == ()


def test_both_indexes_answer_alike(photos: Path) -> None:
    assert ask("red and blue", photos, 4, index="faiss") == ask("red and blue", photos, 4, index="exact")


def test_equal_pictures_are_shown_and_marked(photos: Path) -> None:
    red = (photos / "red.png").read_bytes()
    for name in ("a copy.png", "z copy.png"):
        (photos / name).write_bytes(red)
    found = ask("red", photos, 4)
    assert names(found)[:3] == ["a copy.png", "red.png", "z copy.png"], "a tie goes by the name"
    first = photos / "a copy.png"
    assert [hit.same_as for hit in found.hits] == [None, first, first, None]
    assert [hit.like for hit in found.hits] == [None] * 4
    assert found.mark(found.hits[1]) == f"same picture as {first}"
    assert found.mark(found.hits[0]) == ""


def test_nearly_equal_pictures_are_shown_and_marked(photos: Path) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (50, 40), (250, 2, 3)).save(buffer, "JPEG", quality=70)
    (photos / "again.jpg").write_bytes(buffer.getvalue())
    striped("red", "yellow").save(photos / "other.png")
    found = ask("red", photos, 3)
    assert set(names(found)[:2]) == {"red.png", "again.jpg"}
    assert names(found)[2] == "other.png"
    first = found.hits[0].path
    assert [hit.like for hit in found.hits] == [None, first, None]
    assert found.mark(found.hits[1]) == f"nearly the same as {first}"
    by_picture = ask(photos / "again.jpg", photos, 3)
    assert [by_picture.mark(hit) for hit in by_picture.hits] == [
        "same picture as the query",
        "nearly the same as the query",
        "",
    ]


def test_only_so_many_are_compared_with_one_another(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Image.new("RGB", (20, 12), "red").save(photos / "wide.png")
    monkeypatch.setattr(tellapart.searching, "COMPARED", 1)
    assert [hit.like for hit in ask("red", photos, 3).hits] == [None] * 3


def test_files_that_come_go_and_change_are_noticed(photos: Path) -> None:
    ask("red", photos)
    (photos / "red.png").unlink()
    assert "red.png" not in names(ask("red", photos))
    Image.new("RGB", (12, 12), "red").save(photos / "white.png")
    assert names(ask("red", photos, 1)) == ["white.png"]
    Image.new("RGB", (12, 12), "red").save(photos / "a new one.png")
    assert names(ask("red", photos, 2)) == ["a new one.png", "white.png"]


def test_bad_pictures_are_told_and_the_others_searched(photos: Path) -> None:
    (photos / "bad.png").write_text("words")
    found = ask("red", photos)
    assert len(found.hits) == 6
    assert [error.problem for error in found.problems] == [
        f"{photos / 'bad.png'} is not a picture of a known format"
    ]


@pytest.mark.parametrize("query", ["", "   ", "\n\t"])
def test_an_empty_query_is_refused(query: str, photos: Path) -> None:
    with pytest.raises(TellapartError, match="the query is empty"):
        ask(query, photos)


@pytest.mark.parametrize("query", ["?!", "... -"])
def test_a_query_without_a_word_is_refused(query: str, photos: Path) -> None:
    with pytest.raises(TellapartError, match="there is no word in the query"):
        ask(query, photos)


def test_unknown_words_are_named(photos: Path) -> None:
    found = ask("the red Quux, zebra and zebra", photos, 1)
    assert names(found) == ["red.png"]
    assert found.notes == ("the retriever 'simple' does not know 'quux', 'zebra': the other words decide",)
    retriever = SimpleRetriever()
    with pytest.raises(TellapartError, match="knows no word of the query: 'quux', 'zebra'") as caught:
        search("Quux - zebra!", photos, retriever=retriever)
    assert "spelling" in caught.value.hint
    assert retriever.placed == [], "nothing is done for a query that makes no sense"


@pytest.mark.parametrize("k", [0, -1])
def test_fewer_than_one_cannot_be_found(k: int, photos: Path) -> None:
    with pytest.raises(TellapartError, match=f"{k} pictures were asked for"):
        ask("red", photos, k)


def test_folders_that_cannot_be_searched(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "all bad").mkdir()
    (tmp_path / "all bad" / "a.png").write_text("words")
    for folder, said in (
        (tmp_path / "gone", "does not exist"),
        (photos / "red.png", "is not a folder"),
        (tmp_path / "empty", "has no pictures in it"),
        (tmp_path / "all bad", "none of its pictures can be searched; the first: .*a.png is not a picture"),
    ):
        with pytest.raises(TellapartError, match=said):
            ask("red", folder)


def test_a_query_file_that_is_no_picture_is_refused_before_any_work(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("words")
    Image.effect_noise((40, 40), 80).save(tmp_path / "cut.png")
    (tmp_path / "cut.png").write_bytes((tmp_path / "cut.png").read_bytes()[:500])
    retriever = SimpleRetriever()
    for query, said in (
        (str(tmp_path / "notes.txt"), "is not a picture of a known format"),
        (str(tmp_path / "cut.png"), "is damaged or cut short"),
        ("gone.jpg", "gone.jpg does not exist"),
        (tmp_path / "gone", "does not exist"),
        (photos, "is a folder, not a picture"),
    ):
        with pytest.raises(TellapartError, match=said):
            search(query, photos, retriever=retriever)
    assert retriever.placed == []


def test_sentences_are_told_from_files(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dog").touch()
    (tmp_path / "a dog.jpeg").touch()
    (tmp_path / "odd. file").touch()
    for text in ("dog", "photos", " a red dog ", "a dog. a cat", "it is like dog.jpg", "x" * 5000, "a\0b"):
        assert read_query(text) == Query(text.strip())
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "dog").touch()
    for text in ("a dog.jpeg", "odd. file", "dog.jpg", "photos/RED.PNG", "photos/my dog.jpg", "in/dog"):
        assert read_query(text) == Query(text, Path(text))
    assert read_query(Path("dog")) == Query("dog", Path("dog"))


def test_the_answer_as_json(photos: Path) -> None:
    found = ask(photos / "red.png", photos, 2)
    told = json.loads(json.dumps(found.to_json()))
    assert told["kind"] == "picture"
    assert told["query"] == str(photos / "red.png")
    assert (told["folder"], told["retriever"], told["pictures"]) == (str(photos), "simple", 6)
    assert [hit["image_id"] for hit in told["hits"]] == ["red", "black"]
    assert told["hits"][0] == {
        "image": str(photos / "red.png"),
        "image_id": "red",
        "score": 1.0,
        "captions": ["a red field", "the red picture"],
        "same_as": str(photos / "red.png"),
        "like": None,
    }
    assert told["captions"] == [line.to_json() for line in found.captions]
    assert len(told["captions"]) == 2
    assert (told["problems"], told["notes"]) == ([], [])
    assert ask("red", photos).to_json()["kind"] == "sentence"
    assert CaptionHit("c", 0.1234567, ("a",)).to_json() == {
        "caption": "c",
        "score": 0.123457,
        "images": ["a"],
    }


def test_names_that_are_no_text_can_be_found(tmp_path: Path) -> None:
    name = os.fsdecode(b"not utf-8 \xff.png")
    Image.new("RGB", (4, 4), "red").save(tmp_path / name)
    for _ in range(2):
        assert names(ask("red", tmp_path, 1)) == [name]


WARM = """
import sys
from tellapart.retrievers.store.vectors import store_of
from tellapart.searching import search
found = search("a red field", sys.argv[1], 1, retriever=sys.argv[2])
heavy = {"torch", "onnxruntime", "transformers", "onnx", "scipy", "faiss", "jinja2", "PIL", "jaxtyping"}
print(found.count, sorted(heavy & set(sys.modules)))
"""


def test_a_retriever_is_found_by_its_name_and_a_warm_search_imports_nothing_heavy(
    photos: Path, tmp_path: Path
) -> None:
    folder = write_tiny_dual(tmp_path / "tiny", ["a red field on green grass"] * 3)
    cold = search("a red field", photos, 3, retriever=str(folder))
    assert cold.retriever == str(folder)
    os.utime(photos / "red.png", ns=(1, 1))  # touched: it has to be read, but not to be looked at
    command = [sys.executable, "-c", WARM, str(photos), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "6 []\n", done.stderr + done.stdout
    assert search("a red field", photos, 3, retriever=str(folder)) == cold
