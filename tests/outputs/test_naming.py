"""Ids of pictures: each its own, and such that they can be written."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tellapart.outputs.naming import picture_ids

names = st.text("ab./", min_size=1, max_size=5).filter(lambda name: not set(name) <= set("./"))


def test_ids_are_paths_without_their_endings() -> None:
    root = Path("photos")
    pictures = [root / name for name in ("a.jpg", "sub/a.jpg", "b.tar.png", "two\nlines.jpg", "plain")]
    assert picture_ids(pictures, root) == ["a", "sub/a", "b.tar", "two\nlines", "plain"]
    assert picture_ids(pictures[:1]) == ["photos/a"]


def test_pictures_that_differ_in_their_endings_keep_them() -> None:
    pictures = [Path(name) for name in ("a.jpg", "a.png", "a.jpg.png", "b.jpg")]
    assert picture_ids(pictures) == ["a.jpg~", "a.png", "a.jpg", "b"]


def test_names_that_are_no_text_are_spelt_out() -> None:
    assert picture_ids([Path("caf\udce9.jpg"), Path("café.jpg")]) == ["caf\\xe9", "café"]


@given(st.lists(names.map(Path), unique=True))
def test_no_two_pictures_have_one_id(pictures: list[Path]) -> None:
    ids = picture_ids(pictures)
    assert len(set(ids)) == len(pictures)
