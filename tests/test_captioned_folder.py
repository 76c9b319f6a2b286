"""Captions and pictures are brought together by any name, and what cannot be is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tellapart.captioned_folder import CaptionedFolder, bring_together
from tellapart.data.caption_file import Entry

NAMES = [
    "a dog.jpg",
    "deep/000000000042.png",
    "deep/two\nlines.png",
    "größe 写真.webp",
    "one/same.jpg",
    "two/same.jpg",
]


def entry(image_id: str, *captions: str, name: str = "") -> Entry:
    return Entry(image_id, captions or ("a caption",), f"captions.jsonl:{image_id}", name)


def together(*entries: Entry, unseen: tuple[str, ...] = (), folder: Path = Path("photos")) -> CaptionedFolder:
    return bring_together(entries, folder, NAMES, unseen, beside=Path("elsewhere"))


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (entry("a dog"), "a dog.jpg"),
        (entry("17", name="a dog.jpg"), "a dog.jpg"),
        (entry("42"), "deep/000000000042.png"),
        (entry("deep/two\nlines"), "deep/two\nlines.png"),
        (entry("x", name="größe 写真.webp"), "größe 写真.webp"),
        (entry("x", name="photos/one/same.jpg"), "one/same.jpg"),
        (entry("x", name=str(Path("photos/two/same.jpg").absolute())), "two/same.jpg"),
        (entry("x", name="../photos/two/same.jpg"), "two/same.jpg"),
        (entry("one/same"), "one/same.jpg"),
    ],
)
def test_a_picture_is_found_by_what_it_is_called(given: Entry, name: str) -> None:
    found = together(given)
    assert [found.names[each.picture] for each in found.captions] == [name]
    assert found.left_out == ()
    assert found.path(found.captions[0].picture) == Path("photos") / name
    assert len(found.uncaptioned) == len(NAMES) - 1


def test_what_has_no_picture_is_left_out_and_says_why() -> None:
    found = together(
        entry("gone"), entry("same"), entry("bad"), entry("a dog"), unseen=("bad.jpg", "worse.jpg")
    )
    assert [each.image_id for each in found.left_out] == ["gone", "same", "bad"]
    assert [each.why for each in found.left_out] == [
        "there is no picture of image 'gone' in photos",
        "captions.jsonl:same: image 'same' may be any of 2 pictures called 'same'",
        "photos/bad.jpg cannot be read",
    ]
    assert found.left_out[0].to_json()["where"] == "captions.jsonl:gone"
    assert [each.image_id for each in found.captions] == ["a dog"]


def test_every_picture_is_captioned_wordless_or_uncaptioned() -> None:
    found = together(
        entry("a dog", " "), entry("42", "?!"), entry("one/same", "A Dog's  life!", "more"), entry("gone")
    )
    assert found.wordless == (0, 1)
    assert found.uncaptioned == (2, 3, 5)
    (captioned,) = found.captions
    assert captioned.caption == "A Dog's  life!"
    assert captioned.words == ("a", "dogs", "life")
    assert captioned.others == ("more",)


def test_a_picture_with_two_names_may_have_two_captions() -> None:
    found = together(entry("a dog", "one"), entry("7", "two", name="a dog.jpg"), entry("a dog.jpg", ""))
    assert [each.picture for each in found.captions] == [0, 0]
    assert found.wordless == ()
