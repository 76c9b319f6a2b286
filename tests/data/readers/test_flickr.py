from __future__ import annotations

import time
from pathlib import Path

import pytest

from tellapart.data.readers import read_flickr

TABLE = b"""image,caption
a.jpg,A dog , running .
a.jpg,"A ""big"" dog , running ."
b.jpg,A "small" cat
c.jpg,A cow
"""
TOKENS = b"""a.jpg#0\tA dog , running .
a.jpg#1\tA "big" dog , running .
b.jpg#0\tA "small" cat
c.jpg#0\tA cow
"""


def write(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("data", [TABLE, TOKENS, b"\xef\xbb\xbf" + TABLE.replace(b"\n", b"\r\n")])
def test_reads_captions_and_splits(tmp_path: Path, data: bytes) -> None:
    path = write(tmp_path, "captions.txt", data)
    write(tmp_path, "Flickr_8k.trainImages.txt", b"a.jpg\r\n")
    write(tmp_path, "Flickr_8k.devImages.txt", b"b.jpg\n")

    a, b, c = read_flickr(path).strict()

    assert a.captions == ("A dog , running .", 'A "big" dog , running .')
    assert b.captions == ('A "small" cat',)
    assert [example.image_id for example in (a, b, c)] == ["a", "b", "c"]
    assert [example.split for example in (a, b, c)] == ["train", "val", ""]
    assert c.path == tmp_path / "c.jpg"
    first = 1 if data is TOKENS else 2
    assert [example.where for example in (a, b, c)] == [f"{path}:{first + line}" for line in (0, 2, 3)]


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("train.txt", "train"),
        ("flickr30k_val.txt", "val"),
        ("dev.txt", "val"),
        ("TEST.txt", "test"),
        ("evaluation.txt", ""),
        ("trainval.txt", ""),
        ("train.lst", ""),
        ("notes.txt", ""),
    ],
)
def test_tells_lists_by_their_names(tmp_path: Path, name: str, split: str) -> None:
    path = write(tmp_path, "results.token", TOKENS)
    write(tmp_path, name, b"c.jpg\n")

    assert read_flickr(path).strict()[2].split == split


def test_lists_may_leave_out_endings(tmp_path: Path) -> None:
    path = write(tmp_path, "captions.txt", TABLE)
    write(tmp_path, "test.txt", b"c\nb\n")

    assert [example.split for example in read_flickr(path).strict()] == ["", "test", "test"]


def test_files_with_such_names_that_are_no_lists_do_not_matter(tmp_path: Path) -> None:
    path = write(tmp_path, "train_captions.txt", TABLE)
    write(tmp_path, "test_captions.txt", b"image,caption\nz.jpg,A goat\n")
    write(tmp_path, "how-to-train.txt", b"Patience\n\xff\n")

    assert [example.split for example in read_flickr(path).strict()] == ["", "", ""]


def test_problems_of_lists_name_their_lines(tmp_path: Path) -> None:
    path = write(tmp_path, "captions.txt", TABLE)
    test = write(tmp_path, "test.txt", b"a.jpg\nc.jpg\n")
    train = write(tmp_path, "train.txt", b"\xff.jpg\nb.jpg\nz.jpg\na.jpg\n")

    reading = read_flickr(path)

    assert [example.split for example in reading.examples] == ["test", "train", "test"]
    assert [(problem.where, problem.what) for problem in reading.problems] == [
        (f"{train}:1", "the line is not UTF-8 text"),
        (f"{train}:3", f"z.jpg has no caption in {path}"),
        (f"{train}:4", f"a is in split 'train' here and in 'test' in {test}:1"),
    ]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"b.jpg,", "what follows the picture is an empty caption"),
        (b"b.jpg", "what follows the picture is an empty caption"),
        (b",A cat", "the picture is not the name of a picture"),
        (b"b.jpg,A caf\xe9", "the line is not UTF-8 text"),
        (b"b.jpg,A cat\rb.jpg,A cow", "what follows the picture is an empty caption"),
    ],
)
def test_a_bad_row_is_a_problem_and_the_others_are_read(tmp_path: Path, line: bytes, what: str) -> None:
    path = write(
        tmp_path, "captions.txt", b"image,caption\na.jpg,A dog\n" + line + b'\nc.jpg,"A cow\nd.jpg,A hen'
    )

    reading = read_flickr(path)

    assert [example.image_id for example in reading.examples] == ["a", "c", "d"]
    assert [(problem.where, problem.what) for problem in reading.problems] == [(f"{path}:3", what)]


@pytest.mark.parametrize("line", [b"b.jpg A cat", b"b.jpg\tA cat", b"b.jpg#0\t "])
def test_a_bad_token_line_is_a_problem(tmp_path: Path, line: bytes) -> None:
    path = write(tmp_path, "results.token", TOKENS + line)

    reading = read_flickr(path)

    assert len(reading.examples) == 3
    assert [problem.where for problem in reading.problems] == [f"{path}:5"]


def test_reads_flickr8k_quickly(real_data: Path) -> None:
    begin = time.process_time()
    examples = read_flickr(real_data / "flickr8k" / "captions.txt").strict()
    took = time.process_time() - begin

    splits = [example.split for example in examples]
    assert [splits.count(split) for split in ("train", "val", "test", "")] == [6000, 1000, 1000, 91]
    assert all(len(example.captions) == 5 for example in examples)
    assert examples[0].image_id == "1000268201_693b08cb0e"
    assert examples[0].captions[1] == "A girl going into a wooden building ."
    assert examples[0].path.is_file()
    assert took < 3.0
