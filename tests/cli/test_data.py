"""`tellapart data`: what is wrong with a set is said with file and line; drawn sets are written whole."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PIL import Image

if TYPE_CHECKING:
    from tests.conftest import Outcome

    Tellapart = Callable[..., Outcome]


def entry(image: str, *captions: str, **more: str) -> bytes:
    return json.dumps({"image": image, "captions": captions, **more}).encode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Pictures: two good ones, a copy of the first, and a damaged one."""
    for name, colour in (("red.png", "red"), ("blue.png", "blue")):
        Image.new("RGB", (40, 30), colour).save(tmp_path / name)
    shutil.copy(tmp_path / "red.png", tmp_path / "copy.png")
    (tmp_path / "cut.png").write_bytes((tmp_path / "red.png").read_bytes()[:-30])
    (tmp_path / "empty.png").touch()
    return tmp_path


def written(folder: Path, *lines: bytes) -> Path:
    path = folder / "captions.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


GOOD = entry("red.png", "a red card", "all red", split="train")

PROBLEMS: Mapping[str, tuple[bytes, str]] = {
    "missing": (entry("green.png", "a green card"), "green.png does not exist"),
    "cut short": (entry("cut.png", "a red card"), "cut.png is damaged or cut short"),
    "empty": (entry("empty.png", "a red card"), "empty.png is empty"),
    "listed twice": (entry("red.png", "again", split="train"), "red.png is listed already in {file}:1"),
    "same picture": (
        entry("copy.png", "a copy", split="train"),
        "copy.png is the same picture as {folder}/red.png in {file}:1",
    ),
    "in two splits": (
        entry("copy.png", "a copy", split="test"),
        "stands in split 'test', the other in 'train'",
    ),
    "same id": (
        entry("blue.png", "a blue card", image_id="red"),
        "the id 'red' is also that of {folder}/red.png",
    ),
    "no caption": (entry("blue.png"), "captions is empty: the image has no caption"),
    "blank caption": (entry("blue.png", " "), "captions[0] is an empty caption"),
    "no split": (entry("blue.png", "a blue card", split="tset"), "split is 'tset', which is no split"),
    "not UTF-8": (entry("blue.png", "caf@").replace(b"@", b"\xe9"), "the line is not UTF-8 text"),
    "not JSON": (entry("blue.png", "a blue card")[:-1], "the line is not JSON"),
    "no picture": (b'{"captions": ["a blue card"]}', "image is not the name of a picture"),
}


@pytest.mark.parametrize("kind", PROBLEMS)
def test_each_problem_is_said_with_file_and_line(kind: str, tellapart: Tellapart, folder: Path) -> None:
    line, said = PROBLEMS[kind]
    path = written(folder, GOOD, line)

    outcome = tellapart("data", "check", path)

    assert outcome.code == 1
    problem, hint = outcome.err.splitlines()
    assert problem.startswith(f"error: {path}:2: ")
    assert said.format(file=path, folder=folder) in problem
    assert hint.startswith("  hint: ")
    assert "; problems: 1\n" in outcome.out


def test_all_problems_are_counted_and_none_hides_another(tellapart: Tellapart, folder: Path) -> None:
    # A picture that stands twice in all would be one more problem of its own kind.
    kinds = (
        "missing",
        "cut short",
        "empty",
        "same picture",
        "no caption",
        "not UTF-8",
        "not JSON",
        "no picture",
    )
    path = written(folder, GOOD, *(PROBLEMS[kind][0] for kind in kinds))
    outcome = tellapart("data", "check", path)
    assert outcome.code == 1
    named = [line.split(": ")[1] for line in outcome.err.splitlines() if line.startswith("error: ")]
    assert sorted(named) == [f"{path}:{number}" for number in range(2, 2 + len(kinds))]
    assert outcome.out.splitlines()[0].endswith(f"; problems: {len(kinds)}")


def test_a_clean_set_is_counted(tellapart: Tellapart, folder: Path) -> None:
    path = written(folder, GOOD, entry("blue.png", "a blue card"))
    outcome = tellapart("data", "check", path)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines() == [
        "2 images (1 in no split, 1 train), 3 captions; problems: 0",
        "3 more pictures beside them are not mentioned",
    ]


def test_json_is_one_object(tellapart: Tellapart, folder: Path) -> None:
    path = written(folder, GOOD, entry("green.png", "a green card", split="val"))
    outcome = tellapart("data", "check", path, "--json")
    assert (outcome.code, outcome.err) == (1, "")
    found = json.loads(outcome.out)
    (problem,) = found.pop("problems")
    assert found == {"images": 2, "captions": 3, "splits": {"train": 1, "val": 1}, "unmentioned": 4}
    assert set(problem) == {"where", "what", "hint"}
    assert problem["where"] == f"{path}:2"

    clean = tellapart("data", "check", written(folder, GOOD), "--json")
    assert (clean.code, json.loads(clean.out)["problems"]) == (0, [])


def test_pictures_may_stand_elsewhere_and_the_format_be_named(
    tellapart: Tellapart, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    table = tmp_path_factory.mktemp("elsewhere") / "table"
    table.write_text("image,caption\nred.png,a red card\nblue.png,a blue card\nblue.png,all blue\n")
    outcome = tellapart("data", "check", table, "--images", folder, "--format", "csv")
    assert outcome.code == 0
    assert outcome.out.startswith("2 images (2 in no split), 3 captions; problems: 0\n")


def test_sidecars_and_their_pictures_are_held_together(tellapart: Tellapart, folder: Path) -> None:
    (folder / "red.txt").write_text("a red card\n")
    (folder / "green.txt").write_text("a green card\n")
    outcome = tellapart("data", "check", folder)
    assert outcome.code == 1
    problems = [line for line in outcome.err.splitlines() if line.startswith("error: ")]
    assert f"error: {folder / 'green.txt'}:1: there is no picture of this name" in problems
    without = [
        name
        for name in ("blue.png", "copy.png", "cut.png", "empty.png")
        if f"{folder / name}: " in outcome.err
    ]
    assert len(problems) == 1 + len(without) == 5


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.jsonl"], "nowhere.jsonl does not exist"),
        (["captions.jsonl", "--images", "nowhere"], "nowhere is not a folder"),
        (["captions.jsonl", "--format", "jsnol"], "no format is called 'jsnol'"),
        (["red.png"], "red.png: the format cannot be told"),
    ],
)
def test_what_cannot_be_a_set_is_refused(
    arguments: list[str], said: str, tellapart: Tellapart, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(folder, GOOD)
    monkeypatch.chdir(folder)
    outcome = tellapart("data", "check", *arguments)
    assert (outcome.code, outcome.out) == (1, "")
    problem, hint = outcome.err.splitlines()
    assert problem.startswith(f"error: {said}")
    assert hint.startswith("  hint: ")


def test_drawn_scenes_are_in_order(tellapart: Tellapart, scenes: Path) -> None:
    outcome = tellapart("data", "check", scenes / "captions.jsonl")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("60 images (")
    assert outcome.out.endswith("), 300 captions; problems: 0\n")


def test_real_photographs(tellapart: Tellapart, real_data: Path, tmp_path: Path) -> None:
    source = real_data / "flickr8k"
    with (source / "captions.txt").open(encoding="utf-8") as file:
        rows = list(islice(file, 251))
    (tmp_path / "captions.txt").write_text("".join(rows), encoding="utf-8")
    names = list(dict.fromkeys(row.partition(",")[0] for row in rows[1:]))
    (tmp_path / "images").mkdir()
    for name in names:
        shutil.copyfile(source / "images" / name, tmp_path / "images" / name)
    (tmp_path / "trainImages.txt").write_text("".join(f"{name}\n" for name in names[:40]))

    clean = tellapart("data", "check", tmp_path / "captions.txt")
    assert (clean.code, clean.err) == (0, "")
    assert clean.out == "50 images (10 in no split, 40 train), 250 captions; problems: 0\n"

    cut, gone = (tmp_path / "images" / name for name in (names[7], names[49]))
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size // 2])
    gone.unlink()
    broken = tellapart("data", "check", tmp_path / "captions.txt")
    assert broken.code == 1
    problems = broken.err.splitlines()[::2]
    assert problems[0].startswith(f"error: {tmp_path / 'captions.txt'}:37: {cut} is damaged or cut short")
    assert problems[1] == f"error: {tmp_path / 'captions.txt'}:247: {gone} does not exist"
    assert len(problems) == 2


def test_shapes_are_drawn_once_and_for_all(tellapart: Tellapart, tmp_path: Path) -> None:
    target = tmp_path / "drawn"
    command = ["data", "shapes", target, "--count", "6", "--look-alikes", "3", "--seed", "4"]
    first = tellapart(*command)
    assert (first.code, first.err) == (0, "")
    assert first.out == f"6 scenes in {target}; captions in {target / 'captions.jsonl'}\n"
    assert len(list((target / "images").iterdir())) == 6
    noted = json.loads((target / "shapes.json").read_text(encoding="utf-8"))
    assert (noted["count"], noted["look_alikes"], noted["seed"]) == (6, 3, 4)
    before = {path: path.stat().st_mtime_ns for path in target.rglob("*")}

    again = tellapart(*command, "--json")
    assert json.loads(again.out) == {"captions": str(target / "captions.jsonl"), "images": 6}
    assert {path: path.stat().st_mtime_ns for path in target.rglob("*")} == before

    other = tellapart(*command, "--count", "7")
    assert (other.code, other.out) == (1, "")
    assert "another set of shapes, which differs in count" in other.err
    assert {path: path.stat().st_mtime_ns for path in target.rglob("*")} == before


def test_shapes_are_not_drawn_over_anything_else(tellapart: Tellapart, folder: Path) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir()}
    outcome = tellapart("data", "shapes", folder, "--count", "3")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith(f"error: {folder}: holds something other than a set of shapes\n  hint: ")
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    assert tellapart("data", "shapes", folder / "new", "--count", "0").code == 2
