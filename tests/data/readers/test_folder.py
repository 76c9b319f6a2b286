from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tellapart.data.readers import read_folder
from tellapart.errors import TellapartError


def write(path: Path, data: bytes = b"") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_reads_pictures_with_their_sidecars(tmp_path: Path) -> None:
    write(tmp_path / "b.JPG")
    sidecar = write(tmp_path / "b.txt", b"\xef\xbb\xbfA dog \r\n\r\n  A big dog")
    write(tmp_path / "deep" / "er" / "a.b.png")
    write(tmp_path / "deep" / "er" / "a.b.TXT", "Ein Hündchen\n".encode())

    first, second = read_folder(tmp_path).strict()

    assert (first.image_id, first.path, first.split) == ("b", tmp_path / "b.JPG", "")
    assert (first.captions, first.where) == (("A dog", "A big dog"), f"{sidecar}:1")
    assert (second.image_id, second.captions) == ("deep/er/a.b", ("Ein Hündchen",))


def test_hidden_files_are_passed_over(tmp_path: Path) -> None:
    for name in ("a", ".b", ".thumbnails/c"):
        write(tmp_path / f"{name}.jpg")
        write(tmp_path / f"{name}.txt", b"A dog")

    assert [example.image_id for example in read_folder(tmp_path).strict()] == ["a"]


def test_what_lacks_its_other_half_is_a_problem(tmp_path: Path) -> None:
    for name in ("a.jpg", "lonely.jpg"):
        write(tmp_path / name)
    for name in ("a.txt", "deep/readme.txt"):
        write(tmp_path / name, b"A dog")

    reading = read_folder(tmp_path)

    assert [example.image_id for example in reading.examples] == ["a"]
    assert [(problem.where, problem.what) for problem in reading.problems] == [
        (str(tmp_path / "lonely.jpg"), "there is no .txt file of this name beside the picture"),
        (f"{tmp_path / 'deep' / 'readme.txt'}:1", "there is no picture of this name"),
    ]
    assert "lonely.txt" in reading.problems[0].hint


@pytest.mark.parametrize(
    ("data", "line", "what", "captions"),
    [
        (b"", 1, "the file holds no caption", None),
        (b" \n\n", 1, "the file holds no caption", None),
        (b"\xff", 1, "the line is not UTF-8 text", None),
        (b"A dog\nA caf\xe9\nA cat", 2, "the line is not UTF-8 text", ("A dog", "A cat")),
        (b"\x1f\x8b\x08", 1, "is a damaged gzip file", None),
    ],
)
def test_a_bad_sidecar_is_a_problem(
    tmp_path: Path, data: bytes, line: int, what: str, captions: tuple[str, ...] | None
) -> None:
    for name in ("a", "b"):
        write(tmp_path / f"{name}.jpg")
    sidecar = write(tmp_path / "a.txt", data)
    write(tmp_path / "b.txt", b"A cow")

    reading = read_folder(tmp_path)

    assert {e.image_id: e.captions for e in reading.examples}.get("a") == captions
    assert reading.examples[-1].captions == ("A cow",)
    (problem,) = reading.problems
    assert problem.where == f"{sidecar}:{line}"
    assert what in problem.what


def test_two_pictures_cannot_share_a_sidecar(tmp_path: Path) -> None:
    for name in ("a.jpg", "a.png"):
        write(tmp_path / name)
    write(tmp_path / "a.txt", b"A dog")

    reading = read_folder(tmp_path)

    assert [example.path.name for example in reading.examples] == ["a.jpg"]
    (problem,) = reading.problems
    assert problem.where == str(tmp_path / "a.png")
    assert "a.jpg" in problem.what


def test_a_name_that_cannot_be_written_is_a_problem(tmp_path: Path) -> None:
    write(tmp_path / "a.jpg")
    write(tmp_path / "a.txt", b"A dog")
    try:
        write(tmp_path / os.fsdecode(b"\xff.jpg"))
    except OSError:
        pytest.skip("this file system takes no such names")

    reading = read_folder(tmp_path)

    assert len(reading.examples) == 1
    assert [problem.what for problem in reading.problems] == [r"the name '\udcff.jpg' is not UTF-8"]


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without the rights of root, who may read everything."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_a_part_that_may_not_be_searched_is_a_problem() -> None:
    with TemporaryDirectory() as name:  # tmp_path lies in folders that only their owner may enter
        folder = Path(name)
        folder.chmod(0o755)
        write(folder / "a.jpg")
        write(folder / "a.txt", b"A dog")
        locked = folder / "locked"
        locked.mkdir(mode=0)

        with as_nobody():
            reading = read_folder(folder)

        assert len(reading.examples) == 1
        assert [problem.where for problem in reading.problems] == [str(folder)]
        assert str(locked) in reading.problems[0].what
        locked.chmod(0o755)


def test_a_folder_without_pictures_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", b"A dog")

    with pytest.raises(TellapartError, match="no pictures"):
        read_folder(tmp_path)


def test_a_folder_without_sidecars_is_one_error(tmp_path: Path) -> None:
    write(tmp_path / "a.jpg")
    write(tmp_path / "captions.txt", b"image,caption\n")

    with pytest.raises(TellapartError, match=r"no picture in .* has a \.txt file") as caught:
        read_folder(tmp_path)

    assert "name that file" in caught.value.hint


@pytest.mark.parametrize("name", ["nowhere", "file.txt"])
def test_what_is_no_folder_is_an_error(tmp_path: Path, name: str) -> None:
    write(tmp_path / "file.txt")

    with pytest.raises(TellapartError, match="is not a folder"):
        read_folder(tmp_path / name)
