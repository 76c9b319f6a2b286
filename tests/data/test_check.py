from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path, PosixPath
from typing import ClassVar

import pytest
from PIL import Image

from tellapart.data.check import Check, check_dataset
from tellapart.data.examples import Example, Problem, Reading
from tellapart.data.readers import read_dataset


def silent(done: int, total: int) -> None:
    assert 0 < done <= total


def draw(path: Path, shade: int) -> bytes:
    noise = random.Random(shade)
    path.parent.mkdir(exist_ok=True)
    Image.frombytes("L", (64, 64), noise.randbytes(64 * 64)).save(path)
    return path.read_bytes()


def write(folder: Path, *records: Mapping[str, object]) -> Path:
    path = folder / "captions.jsonl"
    lines = [json.dumps({"captions": ["A dog", "A cat"], **record}) for record in records]
    path.write_text("\n".join(lines))
    return path


def problems(path: Path) -> list[tuple[str, str]]:
    found = check_dataset(read_dataset(path), progress=silent).problems
    return [(problem.where, problem.what) for problem in found]


def test_a_good_set_has_no_problems(tmp_path: Path) -> None:
    for shade, name in enumerate(("a.jpg", "b.png", "c.jpg", "extra.JPG")):
        draw(tmp_path / "images" / name, shade)
    (tmp_path / "images" / "notes.txt").touch()
    path = write(
        tmp_path,
        {"image": "a.jpg", "split": "train"},
        {"image": "b.png", "split": "train"},
        {"image": "c.jpg"},
    )
    seen: list[tuple[int, int]] = []

    check = check_dataset(read_dataset(path), progress=lambda done, total: seen.append((done, total)))

    assert check == Check(images=3, captions=6, splits={"train": 2, "": 1}, unmentioned=1, problems=[])
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_missing_and_unreadable_pictures_are_problems_with_their_lines(tmp_path: Path) -> None:
    whole = draw(tmp_path / "images" / "good.jpg", 0)
    (tmp_path / "images" / "cut.jpg").write_bytes(whole[: len(whole) * 3 // 4])
    (tmp_path / "images" / "empty.jpg").touch()
    (tmp_path / "images" / "text.jpg").write_text("no picture")
    (tmp_path / "images" / "folder.jpg").mkdir()
    names = ("missing", "good", "cut", "empty", "text", "folder")
    path = write(tmp_path, *({"image": f"{name}.jpg"} for name in names))

    found = problems(path)

    assert [where for where, _ in found] == [f"{path}:{line}" for line in (1, 3, 4, 5, 6)]
    for (_, what), name in zip(found, ("missing", "cut", "empty", "text", "folder"), strict=True):
        assert str(tmp_path / "images" / f"{name}.jpg") in what


def test_problems_of_the_files_come_first(tmp_path: Path) -> None:
    draw(tmp_path / "images" / "a.jpg", 0)
    path = write(tmp_path, {"image": "missing.jpg"}, {"image": "a.jpg", "captions": []}, {"image": "a.jpg"})

    found = problems(path)

    assert found[0] == (f"{path}:2", "captions is empty: the image has no caption")
    assert [where for where, _ in found] == [f"{path}:2", f"{path}:1"]


@pytest.mark.parametrize(
    ("split", "tail"), [("train", ""), ("test", ", and stands in split 'test', the other in 'train'")]
)
def test_one_picture_under_two_names_is_a_problem(tmp_path: Path, split: str, tail: str) -> None:
    images = tmp_path / "images"
    data = draw(images / "a.jpg", 0)
    draw(images / "b.jpg", 1)
    (images / "copy.jpg").write_bytes(data)
    path = write(
        tmp_path,
        {"image": "a.jpg", "split": "train"},
        {"image": "b.jpg", "split": "test"},
        {"image": "copy.jpg", "split": split},
    )

    what = f"{images / 'copy.jpg'} is the same picture as {images / 'a.jpg'} in {path}:1{tail}"
    assert problems(path) == [(f"{path}:3", what)]


@pytest.mark.parametrize("name", ["a.jpg", "missing.jpg"])
@pytest.mark.parametrize("split", ["train", "val"])
def test_one_picture_on_two_lines_is_a_problem(tmp_path: Path, name: str, split: str) -> None:
    draw(tmp_path / "images" / "a.jpg", 0)
    path = write(tmp_path, {"image": name, "split": "train"}, {"image": name, "split": split})

    where, what = problems(path)[-1]

    assert where == f"{path}:2"
    assert what.startswith(f"{tmp_path / 'images' / name} is listed already in {path}:1")
    assert ("stands in split 'val', the other in 'train'" in what) == (split == "val")


def test_two_pictures_under_one_id_are_a_problem(tmp_path: Path) -> None:
    draw(tmp_path / "images" / "a.jpg", 0)
    draw(tmp_path / "images" / "b.jpg", 1)
    path = write(tmp_path, {"image": "a.jpg", "image_id": 7}, {"image": "b.jpg", "image_id": "7"})

    what = f"the id '7' is also that of {tmp_path / 'images' / 'a.jpg'} in {path}:1"
    assert problems(path) == [(f"{path}:2", what)]


def test_json_holds_plain_types() -> None:
    check = Check(2, 3, {"train": 1, "": 1}, 4, (Problem("a.csv:2", "is wrong", "mend it"),))

    content = check.to_json()

    assert json.loads(json.dumps(content)) == content
    assert content == {
        "images": 2,
        "captions": 3,
        "splits": {"train": 1, "": 1},
        "unmentioned": 4,
        "problems": [{"where": "a.csv:2", "what": "is wrong", "hint": "mend it"}],
    }


def test_an_empty_set_can_be_checked() -> None:
    assert check_dataset(Reading([], []), progress=silent) == Check(0, 0, {}, 0, [])


class CountedPath(PosixPath):
    """A path that counts how many of its kind have been read."""

    read: ClassVar[list[str]] = []

    def read_bytes(self) -> bytes:
        self.read.append(self.name)
        return super().read_bytes()


def test_an_interrupt_does_not_wait_for_the_rest(tmp_path: Path) -> None:
    draw(tmp_path / "0.png", 0)
    for number in range(1, 1000):
        (tmp_path / f"{number}.png").hardlink_to(tmp_path / "0.png")
    paths = [CountedPath(tmp_path / f"{number}.png") for number in range(1000)]
    examples = [Example(path.stem, path, ("A dog",), "", path.name) for path in paths]

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check_dataset(Reading(examples, []), progress=interrupt)

    assert 0 < len(CountedPath.read) < 500


def test_checks_real_pictures(real_data: Path) -> None:
    reading = read_dataset(real_data / "flickr8k" / "captions.txt")
    some = Reading(reading.examples[:200], [])

    check = check_dataset(some, progress=silent)

    assert (check.images, check.captions, check.problems) == (200, 1000, [])
    assert check.unmentioned == 7891


def test_finds_the_picture_that_is_twice_in_flickr8k(real_data: Path) -> None:
    path = real_data / "flickr8k" / "captions.txt"
    twins = ("2851198725_37b6027625", "3050606344_af711c726c")
    examples = [example for example in read_dataset(path).examples if example.image_id in twins]

    (problem,) = check_dataset(Reading(examples, []), progress=silent).problems

    assert problem.where == f"{path}:19202"
    assert f"{twins[0]}.jpg in {path}:15547" in problem.what
