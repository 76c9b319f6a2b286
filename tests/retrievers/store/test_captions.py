"""Captions come from files beside the pictures or from one file, and are placed once."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.retrievers.simple_retriever import SimpleRetriever

from tellapart.errors import TellapartError
from tellapart.retrievers.store import sentences, vectors
from tellapart.retrievers.store.captions import read_caption_file, read_sidecars
from tellapart.retrievers.store.listing import Listing, list_pictures
from tellapart.retrievers.store.sentences import gather_sentences
from tellapart.retrievers.store.vectors import store_of


@pytest.fixture(autouse=True)
def empty_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("own cache")
    monkeypatch.setenv("TELLAPART_CACHE", str(folder))
    return folder


@pytest.fixture
def listing(tmp_path: Path) -> Listing:
    folder = tmp_path / "photos"
    (folder / "sub.dir").mkdir(parents=True)
    for name in ("a.jpg", "b.c.png", "sub.dir/a.jpg", "bare.png"):
        (folder / name).touch()
    (folder / "a.txt").write_text("one red\n\n  two red \n", encoding="utf-8")
    (folder / "b.c.TXT").write_bytes(b"good line\n\xff broken\n")
    (folder / "sub.dir" / "a.txt").write_text("one red", encoding="utf-8")
    (folder / "alone.txt").write_text("of no picture", encoding="utf-8")
    return list_pictures(folder)


def test_sidecars_are_read_line_by_line(listing: Listing) -> None:
    found = read_sidecars(listing, listing.names)
    assert found.by_picture == {
        "a.jpg": ("one red", "two red"),
        "b.c.png": ("good line",),
        "sub.dir/a.jpg": ("one red",),
    }
    (note,) = found.notes
    assert note.startswith("captions left out: ")
    assert "b.c.TXT:2: the line is not UTF-8 text" in note
    assert found.pictures_by_caption() == {
        "one red": ["a.jpg", "sub.dir/a.jpg"],
        "two red": ["a.jpg"],
        "good line": ["b.c.png"],
    }
    assert read_sidecars(listing, ["bare.png", "a.jpg"]).by_picture == {"a.jpg": ("one red", "two red")}


def test_a_folder_without_texts_has_no_captions(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").touch()
    listing = list_pictures(tmp_path)
    assert read_sidecars(listing, listing.names).by_picture == {}


def test_a_sidecar_that_cannot_be_read_costs_itself(listing: Listing) -> None:
    (listing.folder / "a.txt").unlink()
    found = read_sidecars(listing, listing.names)
    assert "a.jpg" not in found.by_picture
    (note,) = found.notes
    assert "a.txt does not exist; and 1 more" in note


def test_a_file_knows_pictures_by_path_or_id(listing: Listing, tmp_path: Path) -> None:
    path = tmp_path / "captions.jsonl"
    rows = [
        {"image": "a.jpg", "captions": ["first", "second"]},
        {"image": str(listing.folder / "sub.dir" / "a.jpg"), "image_id": "sub.dir/a", "caption": "third"},
        {"image": "elsewhere/b.c.png", "image_id": "b.c", "caption": "by its id"},
        {"image": "no such.jpg", "image_id": 17, "caption": "of no picture here"},
        {"image": "a.jpg", "image_id": "again", "caption": "first"},
        {"image": "broken.jpg", "captions": []},
    ]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    found = read_caption_file(path, listing)
    assert found.by_picture == {
        "a.jpg": ("first", "second", "first"),
        "sub.dir/a.jpg": ("third",),
        "b.c.png": ("by its id",),
        "17": ("of no picture here",),
    }
    assert found.source == path
    (note,) = found.notes
    assert "captions.jsonl:6" in note
    assert found.pictures_by_caption()["first"] == ["a.jpg"]


def test_files_of_other_formats_and_folders_are_read(listing: Listing, tmp_path: Path) -> None:
    table = tmp_path / "captions.csv"
    table.write_text("image,caption\na.jpg,from a table\n", encoding="utf-8")
    assert read_caption_file(table, listing).by_picture == {"a.jpg": ("from a table",)}
    flickr = tmp_path / "results.token"
    flickr.write_text("a.jpg#0\tfrom flickr\na.jpg#1\ttwice\n", encoding="utf-8")
    assert read_caption_file(flickr, listing).by_picture == {"a.jpg": ("from flickr", "twice")}
    assert read_caption_file(listing.folder, listing).by_picture["a.jpg"] == ("one red", "two red")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"image": "a.jpg", "captions": []}\n', "captions is empty"),
        ("\n", "there is no caption in it"),
        ("not json\n", "the line is not JSON"),
    ],
)
def test_a_file_without_a_caption_is_refused(
    listing: Listing, tmp_path: Path, content: str, said: str
) -> None:
    path = tmp_path / "captions.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(TellapartError, match=said):
        read_caption_file(path, listing)
    with pytest.raises(TellapartError, match="does not exist"):
        read_caption_file(tmp_path / "gone.jsonl", listing)


def test_a_sentence_is_placed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentences, "TOGETHER", 2)
    said = ["a red field", "the dog runs", "green grass", "blue", "größe"]
    watched: list[tuple[int, int]] = []
    first = SimpleRetriever()
    rows, note = gather_sentences(said, tmp_path, first, watch=lambda *count: watched.append(count))
    np.testing.assert_array_equal(rows, SimpleRetriever().embed_texts(said))
    assert (first.read, note) == (said, "")
    assert watched == [(0, 5), (2, 5), (4, 5), (5, 5)]

    second = SimpleRetriever()
    other = ["white", *reversed(said[1:])]
    rows, _ = gather_sentences(other, tmp_path, second)
    np.testing.assert_array_equal(rows, SimpleRetriever().embed_texts(other))
    assert second.read == ["white"]

    elsewhere = SimpleRetriever()
    gather_sentences(said, tmp_path / "other.jsonl", elsewhere)
    assert elsewhere.read == said


def test_sentences_that_have_gone_do_not_fill_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "SPARE", 3)
    gather_sentences([f"dog {number}" for number in range(20)], tmp_path, SimpleRetriever())
    gather_sentences(["red", "blue"], tmp_path, SimpleRetriever())
    assert len(store_of("captions", tmp_path, SimpleRetriever()).read().vectors) == 2


def test_where_nothing_can_be_kept_sentences_are_placed_all_the_same(
    tmp_path: Path, empty_cache: Path
) -> None:
    (empty_cache / "search").write_text("a file where the folder should be")
    rows, note = gather_sentences(["red", "blue"], tmp_path, SimpleRetriever())
    np.testing.assert_array_equal(rows, SimpleRetriever().embed_texts(["red", "blue"]))
    assert "cannot be written" in note
