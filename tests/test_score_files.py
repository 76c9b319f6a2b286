"""Candidates meet the references, pictures and scores that are theirs, or nothing is measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tellapart.errors import TellapartError
from tellapart.metrics.score import Scores
from tellapart.score_files import read_material, read_matrix
from tellapart.scoring import choose, measure


def rows(path: Path, *entries: Mapping[str, object]) -> Path:
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
    return path


@pytest.fixture
def candidates(tmp_path: Path) -> Path:
    return rows(
        tmp_path / "candidates.jsonl",
        {"image_id": "b", "caption": "of b"},
        {"image_id": "a", "caption": "of a"},
    )


def test_references_come_in_the_order_of_the_candidates(tmp_path: Path, candidates: Path) -> None:
    references = rows(
        tmp_path / "references.jsonl",
        *({"image_id": name, "captions": [f"{name} 1", f"{name} 2"]} for name in "abc"),
    )
    material, remarks = read_material(candidates, references)
    assert material.ids == ("b", "a")
    assert material.candidates == (("of b",), ("of a",))
    assert material.references == (("b 1", "b 2"), ("a 1", "a 2"))
    assert remarks == ("no candidate for 1 of the 3 images in references.jsonl (first: 'c'): left out",)


@settings(max_examples=25)
@given(data=st.data())
def test_the_order_of_files_changes_no_value(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    texts = st.lists(st.sampled_from(["a", "dog", "cat", "runs", "."]), max_size=5).map(" ".join)
    ids = data.draw(st.lists(st.integers(0, 99), min_size=2, max_size=6, unique=True))
    captions = {image_id: data.draw(texts) for image_id in ids}
    theirs = {image_id: data.draw(st.lists(texts, min_size=1, max_size=3)) for image_id in ids}
    folder = tmp_path_factory.mktemp("shuffled")

    def measured(order: list[int], other: list[int]) -> Scores:
        path = rows(folder / "c.jsonl", *({"image_id": each, "caption": captions[each]} for each in order))
        references = rows(
            folder / "r.jsonl", *({"image_id": each, "captions": theirs[each]} for each in other)
        )
        return measure(read_material(path, references)[0], choose("bleu,rouge,cider"))

    plain = measured(ids, ids)
    shuffled = measured(data.draw(st.permutations(ids)), data.draw(st.permutations(ids)))
    values = {row["image_id"]: row for row in shuffled.rows()}
    for row in plain.rows():
        assert values[row["image_id"]] == pytest.approx(row, abs=1e-12)
    assert shuffled.scores == pytest.approx(plain.scores, abs=1e-12)


def test_only_images_of_the_same_split_are_missed(tmp_path: Path, candidates: Path) -> None:
    images = [
        {"filename": f"{name}.jpg", "split": split, "sentences": [{"raw": name}]}
        for name, split in (("a", "test"), ("b", "test"), ("c", "train"), ("d", "val"))
    ]
    path = tmp_path / "karpathy.json"
    path.write_text(json.dumps({"images": images}))
    assert read_material(candidates, path)[1] == ()


@pytest.mark.parametrize(
    ("candidate", "reference"),
    [
        ({"image_id": 397133}, {"image_id": "397133"}),
        ({"image_id": "000000397133"}, {"image_id": 397133, "image": "000000397133.jpg"}),
        ({"image": "photos/x.jpg"}, {"image_id": 5, "image": "x.jpg"}),
        ({"image": "val/x.jpg"}, {"image_id": 5, "image": "val/x.jpg"}),
        ({"image_id": "x"}, {"image_id": 5, "image": "in/x.jpg"}),
        ({"image_id": "x.jpg"}, {"image_id": 5, "image": "x.jpg"}),
    ],
)
def test_one_image_may_be_called_by_its_id_or_its_file(
    candidate: dict[str, object], reference: dict[str, object], tmp_path: Path
) -> None:
    other = {"image_id": 6, "image": "other/x2.jpg", "captions": ["not this"]}
    references = rows(tmp_path / "r.jsonl", other, {**reference, "captions": ["this"]})
    material, _ = read_material(rows(tmp_path / "c.jsonl", {**candidate, "caption": "a"}), references)
    assert material.references == (("this",),)


def test_a_name_that_two_images_share_is_not_guessed_at(tmp_path: Path) -> None:
    references = rows(
        tmp_path / "r.jsonl",
        {"image_id": 1, "image": "one/x.jpg", "captions": ["first"]},
        {"image_id": 2, "image": "two/x.jpg", "captions": ["second"]},
    )
    exact = rows(tmp_path / "c.jsonl", {"image": "two/x.jpg", "caption": "a"})
    assert read_material(exact, references)[0].references == (("second",),)
    for candidate in ({"image": "x.jpg"}, {"image_id": "x"}, {"image": "three/x.jpg"}):
        path = rows(tmp_path / "c.jsonl", {**candidate, "caption": "a"})
        with pytest.raises(TellapartError, match=r"c\.jsonl:1: .* may be any of 2 pictures called 'x"):
            read_material(path, references)


def test_images_without_references_are_named(tmp_path: Path, candidates: Path) -> None:
    path = tmp_path / "captions.json"
    path.write_text(
        json.dumps(
            {
                "images": [{"id": "a"}, {"id": "b"}],
                "annotations": [{"image_id": "b", "caption": "b"}],
            }
        )
    )
    with pytest.raises(
        TellapartError, match=r"captions\.json:1 images\[0\]: image 'a' has no references"
    ) as it:
        read_material(candidates, path)
    assert it.value.hint.endswith("candidates.jsonl:2")

    references = rows(tmp_path / "r.jsonl", {"image_id": "x", "captions": ["x"]})
    with pytest.raises(TellapartError, match=r"candidates\.jsonl:1: image 'b' is not in .*2 of 2") as it:
        read_material(candidates, references)
    assert "'x'" in it.value.hint


def test_one_image_under_two_names_is_refused(tmp_path: Path) -> None:
    references = rows(tmp_path / "r.jsonl", {"image_id": 5, "image": "x.jpg", "captions": ["x"]})
    path = rows(tmp_path / "c.jsonl", {"image_id": 5, "caption": "a"}, {"image_id": "x", "caption": "b"})
    with pytest.raises(
        TellapartError, match=r"c\.jsonl:2: 'x' and '5' are one image, called '5' at .*r\.jsonl:1"
    ):
        read_material(path, references)


def test_training_captions_are_those_of_the_split(tmp_path: Path, candidates: Path) -> None:
    entries: list[dict[str, object]] = [
        {"image_id": 1, "captions": ["trained on"], "split": "train"},
        {"image_id": 2, "captions": ["not"], "split": "test"},
        {"image_id": 3, "captions": [], "split": "train"},
    ]
    assert read_material(candidates, train=rows(tmp_path / "t.jsonl", *entries))[0].training == (
        ("trained on",),
    )
    unsplit = rows(tmp_path / "t.jsonl", *({**entry, "split": ""} for entry in entries))
    assert read_material(candidates, train=unsplit)[0].training == (("trained on",), ("not",))


def pictures(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (2, 2)).save(folder / name)
    return folder


def test_pictures_are_found_by_name_or_number(tmp_path: Path) -> None:
    folder = pictures(tmp_path / "images", "in/x.jpg", "y.png", "y.jpg", "000000000017.jpg", "deep/in/z.jpg")
    path = rows(
        tmp_path / "c.jsonl",
        {"image_id": 17, "caption": "a"},
        {"image": "elsewhere/z.jpg", "caption": "a"},
        {"image_id": "x", "caption": "a"},
        {"image": "y.png", "caption": "a"},
    )
    found = read_material(path, images=folder)[0].pictures
    assert found is not None
    assert [picture.relative_to(folder).as_posix() for picture in found] == [
        "000000000017.jpg",
        "deep/in/z.jpg",
        "in/x.jpg",
        "y.png",
    ]
    for candidate, said in (
        ({"image_id": "y"}, "c.jsonl:1: image 'y' may be any of 2 pictures"),
        ({"image_id": 18}, "c.jsonl:1: there is no picture of image '18'"),
    ):
        with pytest.raises(TellapartError) as caught:
            read_material(rows(path, {**candidate, "caption": "a"}), images=folder)
        assert said in caught.value.problem


def test_pictures_are_found_by_the_name_that_the_references_give(tmp_path: Path) -> None:
    folder = pictures(tmp_path / "images", "x.jpg")
    references = rows(tmp_path / "r.jsonl", {"image_id": 5, "image": "x.jpg", "captions": ["x"]})
    material, _ = read_material(
        rows(tmp_path / "c.jsonl", {"image_id": 5, "caption": "a"}), references, images=folder
    )
    assert material.pictures == (folder / "x.jpg",)


def test_a_folder_of_pictures_has_to_be_one(tmp_path: Path, candidates: Path) -> None:
    with pytest.raises(TellapartError, match="is not a folder"):
        read_material(candidates, images=candidates)
    (tmp_path / "none").mkdir()
    with pytest.raises(TellapartError, match="has no pictures in it"):
        read_material(candidates, images=tmp_path / "none")


def test_a_matrix_is_read_as_it_is(tmp_path: Path) -> None:
    matrix = np.random.default_rng(0).normal(size=(3000, 4)).astype(np.float32)
    np.save(tmp_path / "m.npy", matrix)
    assert np.array_equal(read_matrix(tmp_path / "m.npy"), matrix)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("row", [0, 2047, 2999])
def test_a_score_that_is_none_is_named_with_its_image(value: float, row: int, tmp_path: Path) -> None:
    matrix = np.zeros((3000, 4))
    matrix[row, 2] = value
    np.save(tmp_path / "m.npy", matrix)
    ids = [f"image {number}" for number in range(3000)]
    with pytest.raises(TellapartError) as caught:
        read_matrix(tmp_path / "m.npy", ids=ids)
    said = f"row {row} (image 'image {row}'), column 2 is {value}, which is no score"
    assert caught.value.problem == f"{tmp_path / 'm.npy'}: {said}"


def test_what_is_no_matrix_is_refused(tmp_path: Path) -> None:
    def refused(path: Path, said: str) -> None:
        with pytest.raises(TellapartError) as caught:
            read_matrix(path, ids=["a", "b"])
        assert caught.value.problem.startswith(f"{path}{said}")

    refused(tmp_path / "nowhere.npy", " does not exist")
    refused(tmp_path, ": this is no matrix")
    for array, said in (
        (np.zeros(3), ": this is no matrix of numbers"),
        (np.array([["a"]]), ": this is no matrix of numbers"),
        (np.array([[None]]), ": this is no matrix"),
        (np.zeros((3, 2)), ": the matrix has 3 rows, and there are 2 candidates"),
    ):
        np.save(tmp_path / "m.npy", array)
        refused(tmp_path / "m.npy", said)
    np.save(tmp_path / "m.npy", np.zeros((2, 2)))
    whole = (tmp_path / "m.npy").read_bytes()
    for data in (whole[:-8], b"", b"{}", b"PK\3\4" + bytes(100)):
        (tmp_path / "m.npy").write_bytes(data)
        refused(tmp_path / "m.npy", ": this is no matrix")
