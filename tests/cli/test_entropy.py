"""`tellapart entropy`: generic captions of a training set, in a table, as JSON and on disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.retrievers.colour_retriever import COLOURS, paint
from tests.retrievers.tiny_dual import write_tiny_dual

from tellapart.data.readers import read_jsonl

if TYPE_CHECKING:
    from tests.conftest import Outcome

    Tellapart = Callable[..., Outcome]


@pytest.fixture
def judge(tmp_path: Path) -> Path:
    return write_tiny_dual(tmp_path / "judge", [f"a {colour} thing" for colour in COLOURS])


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    lines = []
    for colour in COLOURS:
        picture = paint(tmp_path / "set" / "images" / f"{colour}.png", colour)
        split = "val" if colour == "white" else "train"
        lines.append({"image": picture.name, "captions": [f"a {colour} thing", "a thing"], "split": split})
    path = tmp_path / "set" / "captions.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def answered(outcome: Outcome) -> dict[str, Any]:
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out, parse_constant=pytest.fail)
    assert isinstance(found, dict)
    return found


def refused(outcome: Outcome, *said: str) -> None:
    assert (outcome.code, outcome.out) == (1, "")
    for each in said:
        assert each in outcome.err
    assert "Traceback" not in outcome.err


def test_a_caption_file_is_divided(tellapart: Tellapart, captions: Path, judge: Path, tmp_path: Path) -> None:
    out = tmp_path / "halves"
    outcome = tellapart("entropy", captions, "--by", judge, "--temperature", "0.1", "--out", out, "--json")
    found = answered(outcome)
    assert (found["pairs"], found["sentences"], found["pictures"]) == (10, 6, 5)
    assert (found["temperature"], found["top_n"]) == (0.1, None)
    assert found["high"]["pairs"] + found["low"]["pairs"] == 10
    assert len(found["most_generic"]) == len(found["least_generic"]) == 6
    values = [each["entropy"] for each in found["most_generic"]]
    assert values == sorted(values, reverse=True)
    assert json.loads((out / "summary.json").read_text()) == found
    read = [read_jsonl(out / f"{name}.jsonl").strict() for name in ("high", "low")]
    assert sum(len(each.captions) for half in read for each in half if each.split == "train") == 10
    assert [each.image_id for half in read for each in half if each.split == "val"] == ["white", "white"]
    assert f"written: {out}" in outcome.err
    refused(tellapart("entropy", captions, "--by", judge, "--out", out), "something at this place already")


def test_a_table_for_people(tellapart: Tellapart, captions: Path, judge: Path) -> None:
    outcome = tellapart("entropy", captions, "--by", judge, "--top-n", "3")
    assert outcome.code == 0, outcome.err
    lines = outcome.out.splitlines()
    assert lines[0].split() == ["half", "pairs", "entropy", "words", "vocabulary", "distinct"]
    assert lines[1].startswith("high: generic")
    assert lines[2].startswith("low: specific")
    assert lines[3] == "most generic:"
    assert "least generic:" in lines
    assert "over the 3 closest of 5 pictures, temperature 0.07" in lines[-1]


def test_recipes_and_other_pools(tellapart: Tellapart, captions: Path, judge: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "mine.toml"
    recipe.write_text(
        f'[data]\nroot = "{captions.parent}"\npath = "captions.jsonl"\n[encoder]\nname = "patches"\n'
    )
    by = ("--by", judge, "--json")
    ours = answered(tellapart("entropy", recipe, *by))
    assert ours == answered(tellapart("entropy", captions, *by))
    for colour in ("red", "blue"):
        paint(tmp_path / "pool" / f"{colour}.png", colour)
    assert answered(tellapart("entropy", recipe, *by, "--pool", tmp_path / "pool"))["pictures"] == 2
    assert answered(tellapart("entropy", recipe, *by, "--pool", captions))["pictures"] == 6
    drawn = answered(tellapart("entropy", "mrnn-shapes", *by, "--set", "data.scenes=20"))
    assert drawn["pictures"] < 20  # only those to train on


def test_all_as_generic_leaves_no_lower_half(
    tellapart: Tellapart, judge: Path, captions: Path, tmp_path: Path
) -> None:
    one = paint(tmp_path / "pool" / "one.png", "red")
    outcome = tellapart("entropy", captions, "--by", judge, "--pool", one.parent, "--json")
    found = answered(outcome)
    assert (found["high"]["pairs"], found["low"]["pairs"]) == (10, 0)
    assert "note: all captions are as generic" in outcome.err


def test_bad_input(tellapart: Tellapart, captions: Path, judge: Path, tmp_path: Path) -> None:
    command = ("entropy", captions, "--by", judge)
    refused(tellapart(*command, "--temperature", "0"), "the temperature is 0")
    refused(tellapart(*command, "--temperature", "nan"), "the temperature is nan")
    assert tellapart(*command, "--top-n", "0").code == 2
    refused(tellapart("entropy", "no-such-recipe", "--by", judge), "no-such-recipe")
    refused(tellapart("entropy", captions, "--by", "nobody"), "nobody")
    refused(tellapart(*command, "--set", "seed=3"), "--set changes a recipe")
    refused(
        tellapart("entropy", "mrnn-shapes", "--images", tmp_path, "--by", judge),
        "--images is for caption files",
    )
    (tmp_path / "empty").mkdir()
    refused(tellapart(*command, "--pool", tmp_path / "empty"), "has no pictures in it")
    (captions.parent / "images" / "red.png").unlink()
    refused(tellapart(*command), "red.png does not exist")


def test_real_captions_of_real_photographs(
    tellapart: Tellapart, real_data: Path, judge: Path, tmp_path: Path
) -> None:
    rows = (real_data / "flickr8k" / "captions.txt").read_text().splitlines()[1:121]
    path = tmp_path / "captions.csv"
    path.write_text("\n".join(["image,caption", *rows]) + "\n")
    images = real_data / "flickr8k" / "images"
    found = answered(tellapart("entropy", path, "--images", images, "--by", judge, "--json"))
    assert (found["pairs"], found["pictures"]) == (120, 24)
    assert abs(found["high"]["pairs"] - found["low"]["pairs"]) <= 10
    assert found["high"]["mean_entropy"] > found["low"]["mean_entropy"]
