from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tellapart.data.readers import read_jsonl

GOOD = b'{"image": "b/x.y.jpg", "captions": ["two", "one"], "split": "Dev"}'
OTHER = '{"image": "z.png", "caption": "Ein Hündchen", "image_id": 12}'.encode()


def write(folder: Path, *lines: bytes) -> Path:
    path = folder / "captions.jsonl"
    path.write_bytes(b"\n".join(lines))
    return path


def test_reads_lines(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD, b"", OTHER, b"")

    first, second = read_jsonl(path).strict()

    assert (first.image_id, first.path) == ("b/x.y", tmp_path / "b" / "x.y.jpg")
    assert (first.captions, first.split, first.where) == (("two", "one"), "val", f"{path}:1")
    assert (second.image_id, second.path) == ("12", tmp_path / "z.png")
    assert (second.captions, second.split, second.where) == (("Ein Hündchen",), "", f"{path}:3")


def test_reads_gzip_byte_order_mark_and_carriage_returns(tmp_path: Path) -> None:
    path = tmp_path / "captions.jsonl.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + GOOD + b"\r\n" + OTHER + b"\r\n"))

    assert [example.image_id for example in read_jsonl(path).strict()] == ["b/x.y", "12"]


def test_a_line_separator_in_a_caption_is_no_new_line(tmp_path: Path) -> None:
    path = write(tmp_path, '{"image": "a.jpg", "captions": ["a\u2028dog"]}'.encode(), GOOD)

    assert [example.where for example in read_jsonl(path).strict()] == [f"{path}:1", f"{path}:2"]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b'{"image": "a.jpg"', "the line is not JSON: Expecting ',' delimiter (column 18)"),
        (b'["a.jpg"]', "the line is not a JSON object"),
        (b"1" * 5000, "the line is not JSON that can be read"),
        (b"[" * 100_000, "the line is not JSON that can be read"),
        (b'{"image": "a.jpg", "captions": ["caf\xe9"]}', "the line is not UTF-8 text"),
        (b'{"captions": ["a"]}', "image is not the name of a picture"),
        (b'{"image": "a.jpg"}', "captions is empty: the image has no caption"),
        (b'{"image": "a.jpg", "captions": []}', "captions is empty: the image has no caption"),
        (b'{"image": "a.jpg", "captions": [" "]}', "captions[0] is an empty caption"),
        (b'{"image": "a.jpg", "captions": {"en": "a"}}', "captions[0] is not a string"),
        (b'{"image": "a.jpg", "captions": ["a"], "split": 1}', "split is 1, which is no split"),
        (b'{"image": "a.jpg", "captions": ["a"], "image_id": true}', "image_id is neither"),
        (b'{"image": "a.jpg", "captions": ["\\ud83d"]}', "captions[0] holds half a character"),
    ],
)
def test_a_bad_line_is_a_problem_and_the_others_are_read(tmp_path: Path, line: bytes, what: str) -> None:
    path = write(tmp_path, GOOD, line, OTHER)

    reading = read_jsonl(path)

    assert [example.image_id for example in reading.examples] == ["b/x.y", "12"]
    (problem,) = reading.problems
    assert problem.where == f"{path}:2"
    assert problem.what.startswith(what)


@pytest.mark.parametrize(
    ("name", "image_id"),
    [
        ("a.jpg", "a"),
        ("v1.0/a", "v1.0/a"),
        ("v1.0/.jpg", "v1.0/.jpg"),
        (".jpg", ".jpg"),
        ("/", "/"),
        ("a.", "a"),
    ],
)
def test_the_id_is_the_name_without_its_ending(tmp_path: Path, name: str, image_id: str) -> None:
    path = write(tmp_path, json.dumps({"image": name, "captions": ["a"]}).encode())

    assert read_jsonl(path).strict()[0].image_id == image_id


def test_one_string_may_stand_for_captions(tmp_path: Path) -> None:
    (example,) = read_jsonl(write(tmp_path, b'{"image": "a.jpg", "captions": "a dog"}')).strict()

    assert example.captions == ("a dog",)


def test_reads_coco(real_data: Path) -> None:
    examples = read_jsonl(real_data / "coco" / "captions.jsonl").strict()

    assert len(examples) == 4617
    assert examples[0].image_id == "129532"
    assert examples[0].path == real_data / "coco" / "images" / "000000129532.jpg"
    assert len(examples[0].captions) == 5


def test_reads_flickr30k(real_data: Path) -> None:
    examples = read_jsonl(real_data / "text" / "flickr30k_captions.jsonl.gz").strict()

    splits = [example.split for example in examples]
    assert [splits.count(split) for split in ("train", "val", "test")] == [29_000, 1014, 1000]
