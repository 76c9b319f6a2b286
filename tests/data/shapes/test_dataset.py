"""A written set is complete, tells its truth, and is never half there nor overwritten."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tellapart.data.shapes.dataset import read_truth, write_shapes
from tellapart.data.shapes.drawing import draw
from tellapart.data.shapes.language import is_true
from tellapart.errors import TellapartError

WRITE = """
import sys, time
from pathlib import Path
from tellapart.data.shapes.dataset import write_shapes
folder, start, count = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
Path(sys.argv[4]).touch()
while not start.exists():
    time.sleep(0.001)
write_shapes(folder, count=count, seed=1)
"""


def records(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "captions.jsonl").read_text().splitlines()]


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def start_writer(folder: Path, start: Path, count: int, ready: Path) -> subprocess.Popen[bytes]:
    """A process that says when it is ready and writes as soon as the start file is there."""
    return subprocess.Popen([sys.executable, "-c", WRITE, str(folder), str(start), str(count), str(ready)])


def wait_until(writer: subprocess.Popen[bytes], pattern: str, folder: Path) -> None:
    while not list(folder.glob(pattern)):
        assert writer.poll() is None
        time.sleep(0.005)


def test_every_picture_is_there_with_true_captions(tmp_path: Path) -> None:
    folder = write_shapes(tmp_path / "set", count=30, seed=2, captions_per_image=4, side=64)
    truth = read_truth(folder)
    lines = records(folder)
    assert folder == tmp_path / "set"
    assert [line["image_id"] for line in lines] == list(truth)
    assert len(set(truth.values())) == 30
    assert len(list((folder / "images").iterdir())) == 30
    for line in lines:
        scene = truth[line["image_id"]]
        assert line["image"] == f"images/{line['image_id']}.png"
        assert len(line["captions"]) == 4
        assert all(is_true(caption, scene) for caption in line["captions"])
        with Image.open(folder / line["image"]) as picture:
            assert picture.tobytes() == draw(scene, side=64).tobytes()


@pytest.mark.parametrize(
    ("count", "look_alikes", "expected"),
    [
        (100, 1, (80, 10, 10)),
        (100, 5, (80, 10, 10)),
        (3, 1, (1, 1, 1)),
        (2, 1, (2, 0, 0)),
        (43, 4, (36, 4, 3)),
    ],
)
def test_splits_are_eight_to_one_to_one_and_groups_stay_together(
    tmp_path: Path, count: int, look_alikes: int, expected: tuple[int, int, int]
) -> None:
    folder = write_shapes(tmp_path / "set", count=count, seed=3, look_alikes=look_alikes, side=32)
    splits = [line["split"] for line in records(folder)]
    assert tuple(splits.count(split) for split in ("train", "val", "test")) == expected
    scenes = list(read_truth(folder).values())
    for first in range(0, count, look_alikes):
        group = scenes[first : first + look_alikes]
        assert len(set(splits[first : first + look_alikes])) == 1
        assert all(len(set(group[0].things) - set(other.things)) == 1 for other in group[1:])


def test_the_same_set_is_the_same_to_the_byte_and_is_left_alone(tmp_path: Path) -> None:
    one = write_shapes(tmp_path / "one", count=12, seed=4)
    other = write_shapes(tmp_path / "deep" / "other", count=12, seed=4)
    before, beside = contents(one), tmp_path.stat().st_mtime_ns
    assert {name: data for name, (data, _) in before.items()} == {
        name: data for name, (data, _) in contents(other).items()
    }
    assert write_shapes(one, count=12, seed=4) == one
    assert contents(one) == before
    assert tmp_path.stat().st_mtime_ns == beside  # nothing was drawn beside it, not even for a moment
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", "one"]


def test_another_seed_gives_another_set(tmp_path: Path) -> None:
    one, other = (write_shapes(tmp_path / str(seed), count=5, seed=seed) for seed in (1, 2))
    assert read_truth(one) != read_truth(other)


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    assert len(read_truth(write_shapes(tmp_path / "set", count=5, seed=1))) == 5


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"count": 6}, "count"),
        ({"seed": 2}, "seed"),
        ({"captions_per_image": 2}, "captions_per_image"),
        ({"look_alikes": 2}, "look_alikes"),
        ({"side": 64}, "side"),
    ],
)
def test_a_folder_with_another_set_is_refused_and_kept(
    tmp_path: Path, change: dict[str, int], named: str
) -> None:
    folder = write_shapes(tmp_path / "set", count=5, seed=1)
    before = contents(folder)
    with pytest.raises(TellapartError, match=rf"differs in {named}\n"):
        write_shapes(folder, **({"count": 5, "seed": 1} | change))
    assert contents(folder) == before


def test_a_folder_with_anything_else_is_refused_and_kept(tmp_path: Path) -> None:
    folder = tmp_path / "holiday"
    folder.mkdir()
    (folder / "beach.txt").write_text("sand")
    with pytest.raises(TellapartError, match="holiday: holds something other"):
        write_shapes(folder, count=5, seed=1)
    (folder / "shapes.json").write_text("{ not json")
    with pytest.raises(TellapartError, match="holiday: holds something other"):
        write_shapes(folder, count=5, seed=1)
    assert (folder / "beach.txt").read_text() == "sand"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["beach.txt", "holiday", "shapes.json"]


def test_a_file_in_the_way_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "set").write_text("mine")
    with pytest.raises(TellapartError):
        write_shapes(tmp_path / "set", count=5, seed=1)
    assert (tmp_path / "set").read_text() == "mine"


@pytest.mark.parametrize("wrong", [{"count": 0}, {"captions_per_image": 0}, {"look_alikes": 0}, {"side": 8}])
def test_impossible_settings_are_refused_and_leave_nothing(tmp_path: Path, wrong: dict[str, int]) -> None:
    with pytest.raises(TellapartError):
        write_shapes(tmp_path / "set", **({"count": 5, "seed": 1} | wrong))
    assert list(tmp_path.iterdir()) == []


def test_writers_of_the_same_set_at_once_all_end_well(tmp_path: Path) -> None:
    start = tmp_path / "start"
    folder = tmp_path / "sets" / "set"
    writers = [start_writer(folder, start, 60, tmp_path / f"ready{index}") for index in range(2)]
    for index, writer in enumerate(writers):
        wait_until(writer, f"ready{index}", tmp_path)
    start.touch()
    assert [writer.wait(60) for writer in writers] == [0, 0]
    assert len(read_truth(folder)) == len(records(folder)) == len(list((folder / "images").iterdir())) == 60
    assert list(folder.parent.iterdir()) == [folder]


def test_a_killed_writer_leaves_no_half_set(tmp_path: Path) -> None:
    folder = tmp_path / "sets" / "set"
    (tmp_path / "start").touch()
    writer = start_writer(folder, tmp_path / "start", 20_000, tmp_path / "ready")
    wait_until(writer, "sets/.set.*/set/images/*.png", tmp_path)
    writer.kill()
    writer.wait(60)
    assert not folder.exists()
    assert len(read_truth(write_shapes(folder, count=5, seed=1))) == 5


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("{", "not a scene"),
        ("[]", "not a scene"),
        ('{"image_id": "000001"}', "not a scene"),
        ('{"image_id": "000001", "things": []}', "a scene of 0 things"),
        (
            '{"image_id": "", "things": [{"shape": "egg", "colour": "", "size": "", "place": ""}]}',
            "no shape is called 'egg'",
        ),
    ],
)
def test_a_damaged_truth_is_reported_with_its_line(tmp_path: Path, line: str, what: str) -> None:
    folder = write_shapes(tmp_path / "set", count=3, seed=1)
    path = folder / "scenes.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], line, lines[2]]))
    with pytest.raises(TellapartError, match=rf"scenes\.jsonl:2: {what}"):
        read_truth(folder)


def test_a_broken_byte_in_the_truth_is_reported_with_its_line(tmp_path: Path) -> None:
    folder = write_shapes(tmp_path / "set", count=3, seed=1)
    path = folder / "scenes.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"colour": "', b'"colour": "\xff', 1))
    with pytest.raises(TellapartError, match=r"scenes\.jsonl:1: no colour is called"):
        read_truth(folder)


def test_a_folder_without_truth_is_reported(tmp_path: Path) -> None:
    with pytest.raises(TellapartError, match=r"scenes\.jsonl: there is no such file"):
        read_truth(tmp_path)
