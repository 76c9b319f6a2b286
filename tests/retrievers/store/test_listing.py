"""A look at a folder sees what the reader of pictures would, in its order, and opens nothing."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tellapart.data.picture_files import find_pictures
from tellapart.errors import TellapartError
from tellapart.retrievers.store.listing import list_pictures, without_ending
from tellapart.retrievers.store.look import look, looking_ahead

NAMES = st.sampled_from(
    [
        *("a", "a b", "a.jpg", "a-b", "a!", "B", "b.PNG", "c.txt", "f.TXT", "d.jpg.bak", "e.", "x.heic"),
        *(".hidden", ".jpg", "é.webp", "größe 写真", "two\nlines.gif", os.fsdecode(b"\xff.jpg"), "z.tiff"),
    ]
)


@settings(max_examples=60)
@given(
    st.sets(
        st.lists(NAMES, min_size=1, max_size=3).map(tuple),
        max_size=14,
    )
)
def test_it_finds_what_the_reader_of_pictures_finds(
    tmp_path_factory: pytest.TempPathFactory, paths: set[tuple[str, ...]]
) -> None:
    folder = tmp_path_factory.mktemp("tree")
    for parts in sorted(paths):
        path = folder.joinpath(*parts)
        if not path.exists() and all(parent.is_dir() or not parent.exists() for parent in path.parents):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"x" * len(parts))
    expected = list(find_pictures([folder]))
    if isinstance(expected[0], TellapartError):
        with pytest.raises(TellapartError) as caught:
            list_pictures(folder)
        assert (caught.value.problem, caught.value.hint) == (expected[0].problem, expected[0].hint)
        return
    listing = list_pictures(folder).in_order()
    assert [folder / name for name in listing.names] == expected
    about = [(folder / name).stat() for name in listing.names]
    assert listing.sizes.tolist() == [each.st_size for each in about]
    assert listing.changed.tolist() == [each.st_mtime_ns for each in about]
    assert listing.problems == []
    assert 0 <= time.time_ns() - listing.when < 10**11
    texts = {path for path in folder.rglob("*") if path.is_file() and path.suffix.lower() == ".txt"}
    hidden = {path for path in texts if any(part[0] == "." for part in path.relative_to(folder).parts)}
    assert {folder / name for name in listing.texts} == texts - hidden


def test_links_pipes_and_folders_that_are_named_like_pictures(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "photos", tmp_path / "elsewhere"
    (folder / "album.jpg").mkdir(parents=True)
    elsewhere.mkdir()
    for path in (folder / "album.jpg" / "in.png", folder / "one.png", elsewhere / "other.png"):
        path.write_bytes(b"12345")
    (folder / "linked.png").symlink_to(elsewhere / "other.png")
    (folder / "linked").symlink_to(elsewhere)
    (folder / "linked folder.jpg").symlink_to(elsewhere)
    (folder / "nowhere.png").symlink_to("gone.png")
    (folder / ".hidden nowhere.png").symlink_to("gone.png")
    os.mkfifo(folder / "pipe.png")

    listing = list_pictures(folder).in_order()

    assert listing.names == ["album.jpg/in.png", "linked.png", "one.png"]
    assert listing.sizes.tolist() == [5, 5, 5]
    assert sorted(error.problem for error in listing.problems) == [
        f"{folder / 'nowhere.png'} is a link to a file that does not exist",
        f"{folder / 'pipe.png'} is not a file",
    ]


def test_the_order_is_that_of_folders_and_not_of_letters(tmp_path: Path) -> None:
    for name in ("a b/1.jpg", "a/1.jpg", "a-b/1.jpg", "a/b/2.jpg", "a.jpg", "a!/x.jpg", "B/1.jpg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    listing = list_pictures(tmp_path)
    ordered = listing.in_order()
    assert [tmp_path / name for name in ordered.names] == list(find_pictures([tmp_path]))
    assert ordered.sizes.tolist() == [len(name) for name in ordered.names]
    assert sorted(listing.names) == sorted(ordered.names)


def test_folders_in_folders_without_end_are_walked_through(tmp_path: Path) -> None:
    folders = [tmp_path]
    for _ in range(1200):  # deeper than Python would call itself
        folders.append(folders[-1] / "f")
        folders[-1].mkdir()
    picture = folders[-1] / "down here.jpg"
    picture.touch()
    names = list_pictures(tmp_path).names
    picture.unlink()
    for folder in reversed(folders):  # nor can Python itself remove them all at once
        folder.rmdir()
    assert names == ["f/" * 1200 + "down here.jpg"]


def test_what_cannot_be_looked_through_is_said(tmp_path: Path) -> None:
    (tmp_path / "file.jpg").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "words.txt").touch()
    for name, said in (
        ("gone", "does not exist"),
        ("file.jpg", "is not a folder"),
        ("empty", "has no pictures in it"),
    ):
        with pytest.raises(TellapartError) as caught:
            list_pictures(tmp_path / name)
        assert caught.value.problem == f"{tmp_path / name} {said}"
        assert caught.value.hint


def test_names_without_their_endings() -> None:
    assert [without_ending(name) for name in ("a/b.c/d.jpg", "x.tar.png", "é.txt")] == [
        "a/b.c/d",
        "x.tar",
        "é",
    ]


def test_another_process_sees_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "photos -x é"
    (folder / "deep").mkdir(parents=True)
    for name in ("b.jpg", "deep/a.png", "a.txt", "two\nlines.gif", os.fsdecode(b"\xff.jpg")):
        (folder / name).write_bytes(name.encode(errors="surrogateescape"))
    (folder / "nowhere.png").symlink_to("gone")
    with looking_ahead(folder) as look_now:
        seen = look_now()
        assert look_now() is seen
    expected = look(folder)
    assert (seen.names, seen.texts) == (expected.names, expected.texts)
    assert (seen.sizes, seen.changed) == (expected.sizes, expected.changed)
    assert [str(error) for error in seen.problems] == [str(error) for error in expected.problems]
    assert 0 < expected.when - seen.when < 10**11


def test_what_is_wrong_with_the_folder_is_said_all_the_same(tmp_path: Path) -> None:
    for folder, said in ((tmp_path, "has no pictures in it"), (tmp_path / "gone", "does not exist")):
        with looking_ahead(folder) as look_now, pytest.raises(TellapartError, match=said):
            look_now()


@pytest.mark.parametrize("executable", ["/no/such/program", "/bin/false", "/bin/true"])
def test_where_no_other_process_can_look_one_looks_oneself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executable: str
) -> None:
    (tmp_path / "a.jpg").touch()
    monkeypatch.setattr(sys, "executable", executable)
    with looking_ahead(tmp_path) as look_now:
        assert look_now().names == ["a.jpg"]


def test_a_process_that_nobody_waits_for_does_not_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient = tmp_path / "patient"
    patient.write_text("#!/bin/sh\nexec sleep 100\n")
    patient.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(patient))
    began = time.monotonic()
    with pytest.raises(KeyError), looking_ahead(tmp_path):
        raise KeyError
    assert time.monotonic() - began < 50
