"""COCO results: ids as COCO's tools know them, written whole or not at all, read back by our own reader."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.outputs.faults import names_in, read_only

from tellapart.data.caption_file import read_candidates
from tellapart.data.named_pictures import pictures_of
from tellapart.errors import TellapartError
from tellapart.outputs.coco_results import coco_id, write_coco_results

ids = st.one_of(
    st.integers(0, 10**6).map(str),
    st.integers(0, 10**6).map(lambda number: f"{number:012d}"),
    st.integers(0, 10**6).map(lambda number: f"val2014/COCO_val2014_{number:012d}"),
    st.text("ab/01", min_size=1, max_size=4),
)


@pytest.mark.parametrize(
    ("image_id", "known"),
    [
        ("391895", 391895),
        ("0", 0),
        ("000000391895", 391895),
        ("COCO_val2014_000000391895", 391895),
        ("val2014/COCO_val2014_000000391895", 391895),
        ("007", "007"),
        ("a/007", "a/007"),
        ("1234567890123456", "1234567890123456"),
        ("٣", "٣"),
        ("1000268201_693b08cb0e", "1000268201_693b08cb0e"),
        ("dog", "dog"),
    ],
)
def test_ids_are_numbers_where_coco_has_numbers(image_id: str, known: int | str) -> None:
    assert coco_id(image_id) == known


def test_two_pictures_never_get_the_same_number(tmp_path: Path) -> None:
    write_coco_results(tmp_path / "r.json", [("a/1", "x"), ("b/1", "y"), ("2", "z")])
    rows = json.loads((tmp_path / "r.json").read_text())
    assert [row["image_id"] for row in rows] == ["a/1", "b/1", 2]


@given(pairs=st.dictionaries(ids, st.text(st.characters(codec="utf-8"))))
def test_all_captions_are_read_back(pairs: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "results.json"
    path.unlink(missing_ok=True)
    write_coco_results(path, pairs.items())
    if not pairs:
        assert json.loads(path.read_text()) == []
        return
    entries = read_candidates(path).entries
    assert [entry.captions[0] for entry in entries] == [" ".join(text.split()) for text in pairs.values()]
    for entry, image_id in zip(entries, pairs, strict=True):
        assert entry.image_id in (image_id, str(coco_id(image_id)))


def test_pictures_are_found_again_by_their_numbers(tmp_path: Path) -> None:
    names = ["000000391895.jpg", "17.jpg", "007.jpg", "sub/dog.jpg"]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    write_coco_results(tmp_path / "r.json", [(name.removesuffix(".jpg"), "x") for name in names])
    entries = read_candidates(tmp_path / "r.json").entries
    assert pictures_of(tmp_path, entries) == tuple(tmp_path / name for name in names)


def test_what_cannot_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    write_coco_results(tmp_path / "r.json", [("1", "x")])
    before = (tmp_path / "r.json").read_bytes()
    with read_only(tmp_path), pytest.raises(TellapartError, match="cannot be written"):
        write_coco_results(tmp_path / "r.json", [("1", "y")])
    with pytest.raises(TellapartError, match="half a character"):
        write_coco_results(tmp_path / "r.json", [("1", "\ud800")])
    assert (tmp_path / "r.json").read_bytes() == before
    assert names_in(tmp_path) == ["r.json"]
