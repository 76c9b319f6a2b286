from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tellapart.data.readers import read_karpathy

TRAIN = {
    "filename": "COCO_val2014_000000391895.jpg",
    "filepath": "val2014",
    "cocoid": 391895,
    "imgid": 0,
    "split": "restval",
    "sentences": [{"raw": " A man on a bike. "}, {"tokens": ["a", "red", "bike"]}],
}
TEST = {
    "filename": "12_ab.jpg",
    "imgid": 7,
    "split": "test",
    "sentences": [{"raw": "Zwei Hunde", "tokens": ["x"]}],
}


def write(folder: Path, *images: object) -> Path:
    path = folder / "dataset.json"
    path.write_text(json.dumps({"images": images, "dataset": "toy"}, indent=1), encoding="utf-8")
    return path


def line_of(path: Path, mention: str) -> str:
    lines = path.read_text(encoding="utf-8").splitlines()
    return f"{path}:{next(number for number, line in enumerate(lines, 1) if mention in line)}"


def test_reads_images_and_sentences(tmp_path: Path) -> None:
    first, second = read_karpathy(write(tmp_path, TRAIN, TEST)).strict()

    assert first.image_id == "391895"
    assert first.path == tmp_path / "val2014" / "COCO_val2014_000000391895.jpg"
    assert first.captions == ("A man on a bike.", "a red bike")
    assert (first.split, second.split) == ("train", "test")
    assert second.image_id == "12_ab"
    assert second.path == tmp_path / "12_ab.jpg"
    assert second.captions == ("Zwei Hunde",)


def test_reads_gzip_and_byte_order_mark(tmp_path: Path) -> None:
    plain = write(tmp_path, TRAIN, TEST)
    packed = tmp_path / "dataset.json.gz"
    packed.write_bytes(gzip.compress(b"\xef\xbb\xbf" + plain.read_bytes().replace(b"\n", b"\r\n")))

    unpacked = [(e.image_id, e.captions) for e in read_karpathy(packed).strict()]

    assert unpacked == [(e.image_id, e.captions) for e in read_karpathy(plain).strict()]


def test_names_the_line_of_the_file_name(tmp_path: Path) -> None:
    path = write(tmp_path, TRAIN, TEST | {"filename": "é.jpg"})

    first, second = read_karpathy(path).strict()

    assert first.where == line_of(path, "COCO_val2014_000000391895.jpg")
    assert second.where == line_of(path, "u00e9.jpg")


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"filename": ""}, "images[1].filename is not the name of a picture"),
        ({"filename": 5}, "images[1].filename is not the name of a picture"),
        ({"filename": "a\0.jpg"}, "images[1].filename is not the name of a picture"),
        ({"sentences": []}, "images[1].sentences is empty: the image has no caption"),
        ({"sentences": None}, "images[1].sentences is empty: the image has no caption"),
        ({"sentences": [{"raw": " "}]}, "images[1].sentences[0] is an empty caption"),
        ({"sentences": [{"tokens": []}]}, "images[1].sentences[0] is an empty caption"),
        ({"sentences": [{}]}, "images[1].sentences[0] is not a string"),
        ({"sentences": [{"raw": "\ud83d"}]}, "images[1].sentences[0] holds half a character"),
        ({"split": "trian"}, "images[1].split is 'trian', which is no split"),
        ({"cocoid": 1.5}, "images[1].cocoid is neither a whole number nor a string"),
    ],
)
def test_a_bad_record_is_a_problem_and_the_others_are_read(
    tmp_path: Path, change: dict[str, object], what: str
) -> None:
    path = write(tmp_path, TRAIN, TEST | change)

    reading = read_karpathy(path)

    assert [example.image_id for example in reading.examples] == ["391895"]
    (problem,) = reading.problems
    assert problem.what.startswith(what)
    assert problem.where.startswith(f"{path}:")
    assert int(problem.where.rpartition(":")[2]) > 15


def test_an_empty_sentence_does_not_take_the_others_with_it(tmp_path: Path) -> None:
    path = write(tmp_path, TEST | {"sentences": [{"raw": "a"}, {"raw": ""}, {"raw": "b"}]})

    reading = read_karpathy(path)

    assert reading.examples[0].captions == ("a", "b")
    assert [problem.what for problem in reading.problems] == ["images[0].sentences[1] is an empty caption"]


def test_records_that_are_no_objects_are_problems(tmp_path: Path) -> None:
    reading = read_karpathy(write(tmp_path, "x.jpg", TEST))

    assert len(reading.examples) == 1
    assert {problem.where for problem in reading.problems} == {f"{tmp_path / 'dataset.json'}:3"}


def test_reads_flickr8k(real_data: Path) -> None:
    examples = read_karpathy(real_data / "flickr8k" / "dataset_flickr8k.json.gz").strict()

    splits = [example.split for example in examples]
    assert [splits.count(split) for split in ("train", "val", "test")] == [6000, 1000, 1000]
    assert all(len(example.captions) == 5 for example in examples)
    assert examples[0].image_id == "2513260012_03d33305cf"
    assert examples[0].captions[0] == "A black dog is running after a white dog in the snow ."
    assert examples[0].path.is_file()
