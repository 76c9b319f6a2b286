from __future__ import annotations

from pathlib import Path

import pytest

from tellapart.data.readers import read_csv
from tellapart.errors import TellapartError


def write(folder: Path, *lines: bytes) -> Path:
    path = folder / "captions.csv"
    path.write_bytes(b"\r\n".join(lines) + b"\r\n")
    return path


def test_gathers_the_rows_of_an_image_in_order(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        b"Split, image_id,Image,rating,caption",
        b'train,1,a/b.jpg,5,"A ""big"", red dog"',
        b"test,2,c.jpg,5,A cat",
        b"",
        b"train,1,a/b.jpg,3,'tis a dog",
    )

    first, second = read_csv(path).strict()

    assert (first.image_id, first.path, first.split) == ("1", tmp_path / "a" / "b.jpg", "train")
    assert first.captions == ('A "big", red dog', "'tis a dog")
    assert (first.where, second.where) == (f"{path}:2", f"{path}:3")
    assert (second.image_id, second.split, second.captions) == ("2", "test", ("A cat",))


@pytest.mark.parametrize("column", [b"image", b"filename", b"file_name", b"path", b'\xef\xbb\xbf"IMAGE"'])
def test_the_column_of_pictures_has_several_names(tmp_path: Path, column: bytes) -> None:
    (example,) = read_csv(write(tmp_path, column + b",caption", b"x.y/a.jpg,A cat")).strict()

    assert (example.image_id, example.path, example.split) == ("x.y/a", tmp_path / "x.y" / "a.jpg", "")


def test_a_caption_may_go_on_over_lines(tmp_path: Path) -> None:
    path = write(tmp_path, b"image,caption", b'a.jpg,"A dog', b'and a cat"', b"b.jpg,A cow")

    first, second = read_csv(path).strict()

    assert first.captions == ("A dog\nand a cat",)
    assert second.where == f"{path}:4"


@pytest.mark.parametrize(
    ("row", "what"),
    [
        (b"b.jpg, ", "caption is an empty caption"),
        (b",A cow", "image is not the name of a picture"),
        (b"b.jpg", "the row has 1 fields and the header 2"),
        (b"b.jpg,A cow, brown", "the row has 3 fields and the header 2"),
        (b'b.jpg,"A "big" cow"', "the row is not CSV"),
        (b"b.jpg,A caf\xe9", "the line is not UTF-8 text"),
        (b'b.jpg,"A \xe9, cow"', "the line is not UTF-8 text"),
        (b"b.jpg,A" + b"w" * 140_000, "the row is not CSV: field larger than field limit"),
    ],
)
def test_a_bad_row_is_a_problem_and_the_others_are_read(tmp_path: Path, row: bytes, what: str) -> None:
    path = write(tmp_path, b"image,caption", b"a.jpg,A dog", row, b"c.jpg,A cat")

    reading = read_csv(path)

    assert [example.image_id for example in reading.examples] == ["a", "c"]
    (problem,) = reading.problems
    assert problem.where == f"{path}:3"
    assert problem.what.startswith(what)


def test_a_quote_that_never_closes_is_a_problem_of_the_line_where_it_opens(tmp_path: Path) -> None:
    path = write(tmp_path, b"image,caption", b"a.jpg,A dog", b'b.jpg,"A cow', b"c.jpg,A cat")

    reading = read_csv(path)

    assert [problem.where for problem in reading.problems] == [f"{path}:3"]
    assert "unexpected end of data" in reading.problems[0].what


@pytest.mark.parametrize(
    ("first", "second", "line"), [(b"A caf\xe9", b"left", 2), (b"On the left", b"a caf\xe9", 3)]
)
def test_a_broken_byte_inside_quotes_does_not_swallow_the_rows_after(
    tmp_path: Path, first: bytes, second: bytes, line: int
) -> None:
    path = write(tmp_path, b"image,caption", b'a.jpg,"' + first, second + b'"', b"b.jpg,A cow")

    reading = read_csv(path)

    assert [example.image_id for example in reading.examples] == ["b"]
    assert [problem.where for problem in reading.problems] == [f"{path}:{line}"]


@pytest.mark.parametrize(
    ("header", "row", "what"),
    [
        (b"image,caption,split", b"a.jpg,A cow,test", "a.jpg is in split 'test' here and in 'train' in "),
        (b"image,caption,image_id", b"a.jpg,A cow,test", "a.jpg has the id 'test' here and 'train' in "),
    ],
)
def test_rows_of_an_image_must_agree(tmp_path: Path, header: bytes, row: bytes, what: str) -> None:
    path = write(tmp_path, header, b"a.jpg,A dog,train", row)

    reading = read_csv(path)

    assert reading.examples[0].captions == ("A dog",)
    assert [(problem.where, problem.what) for problem in reading.problems] == [
        (f"{path}:3", f"{what}{path}:2")
    ]


def test_a_split_that_is_none_is_a_problem(tmp_path: Path) -> None:
    reading = read_csv(write(tmp_path, b"image,caption,split", b"a.jpg,A dog,trian"))

    assert [problem.what for problem in reading.problems] == ["split is 'trian', which is no split"]


@pytest.mark.parametrize("header", [b"", b"image", b"caption", b"picture,caption", b"image,text"])
def test_a_header_without_the_columns_is_an_error(tmp_path: Path, header: bytes) -> None:
    path = write(tmp_path, header, b"a.jpg,A dog")

    with pytest.raises(TellapartError) as caught:
        read_csv(path)

    assert caught.value.problem.startswith(f"{path}:1: the header names no column")
    assert "'caption'" in caught.value.hint
    assert "file_name" in caught.value.hint
