from __future__ import annotations

import json
from pathlib import Path

import pytest

from tellapart.data.readers import read_coco

IMAGES = [{"id": 42, "file_name": "000042.jpg"}, {"id": 7, "file_name": "000007.jpg"}]
ANNOTATIONS = [
    {"image_id": 7, "id": 1, "caption": "A cat.\n"},
    {"image_id": 42, "id": 2, "caption": "A dog."},
    {"image_id": 7, "id": 3, "caption": "A black cat."},
]


def write(folder: Path, images: object, annotations: object) -> Path:
    path = folder / "captions.json"
    path.write_text(
        json.dumps({"annotations": annotations, "info": {"images": [1]}, "images": images}, indent=0)
    )
    return path


def line_of(path: Path, mention: str) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    return f"{path}:{next(number for number, line in enumerate(lines, 1) if mention in line)}"


def test_reads_images_in_their_order_with_captions_in_theirs(tmp_path: Path) -> None:
    path = write(tmp_path, IMAGES, ANNOTATIONS)

    first, second = read_coco(path).strict()

    assert (first.image_id, first.path, first.captions) == ("42", tmp_path / "000042.jpg", ("A dog.",))
    assert (second.image_id, second.split, second.captions) == ("7", "", ("A cat.", "A black cat."))
    assert second.where == line_of(path, "000007.jpg")


def test_an_image_without_annotation_is_a_problem(tmp_path: Path) -> None:
    path = write(tmp_path, IMAGES, ANNOTATIONS[::2])

    reading = read_coco(path)

    assert [example.image_id for example in reading.examples] == ["7"]
    (problem,) = reading.problems
    assert problem.where == line_of(path, "000042.jpg")
    assert problem.what == "images[0] (000042.jpg) has no caption"


@pytest.mark.parametrize("stranger", [{"image_id": 8, "caption": "A cow."}, {"caption": "A cow."}, "A cow."])
def test_an_annotation_of_an_unknown_image_is_a_problem(tmp_path: Path, stranger: object) -> None:
    path = write(tmp_path, IMAGES, [*ANNOTATIONS, stranger])

    reading = read_coco(path)

    assert [example.image_id for example in reading.examples] == ["42", "7"]
    (problem,) = reading.problems
    assert problem.where == f"{path}:18"  # three annotations of five lines each stand before it
    assert problem.what.startswith("annotations[3] belongs to image ")


@pytest.mark.parametrize(
    ("caption", "flaw"),
    [("  ", "is an empty caption"), (None, "is not a string"), (["A"], "is not a string")],
)
def test_a_bad_caption_is_a_problem(tmp_path: Path, caption: object, flaw: str) -> None:
    path = write(tmp_path, IMAGES, [*ANNOTATIONS, {"image_id": 42, "caption": caption}])

    reading = read_coco(path)

    assert reading.examples[0].captions == ("A dog.",)
    assert [problem.what for problem in reading.problems] == [f"annotations[3].caption {flaw}"]


@pytest.mark.parametrize("image", [{"id": 8}, {"file_name": "8.jpg"}, {"id": None, "file_name": "8.jpg"}])
def test_an_image_without_name_or_id_is_a_problem(tmp_path: Path, image: object) -> None:
    reading = read_coco(write(tmp_path, [*IMAGES, image], ANNOTATIONS))

    assert len(reading.examples) == 2
    assert len(reading.problems) == 1
    assert reading.problems[0].what.startswith("images[2].")


def test_reads_coco_val2017(real_data: Path) -> None:
    examples = read_coco(real_data / "text" / "coco_captions_val2017.json.gz").strict()

    assert len(examples) == 5000
    assert sum(len(example.captions) for example in examples) == 25_014
    assert examples[-1].captions[0] == "A group of people sitting at a table with food."
