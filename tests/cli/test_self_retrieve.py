"""`tellapart self-retrieve`: judges from disk, every pool, files and pages; bad input is said in a line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.foreign.tiny_clip import save_clip
from tests.retrievers.colour_retriever import COLOURS, paint
from tests.retrievers.tiny_dual import write_tiny_dual

if TYPE_CHECKING:
    from tests.conftest import Outcome

    Tellapart = Callable[..., Outcome]

PLAIN = ("--encoder", "patches", "--draws", "50")
TWO = [[one, other] for one in COLOURS for other in COLOURS if one < other][:12]


@pytest.fixture
def predictions(tmp_path: Path, tiny_captioner: Path) -> Path:
    rows = []
    for one, other in TWO:
        picture = paint(tmp_path / "photos" / f"{one}-{other}.png", one, other)
        caption = f"a {one} circle on the {other}"
        rows.append(
            {
                "image": str(picture),
                "image_id": picture.stem,
                "caption": caption,
                "model": str(tiny_captioner),
            }
        )
    path = tmp_path / "predictions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def judge(tmp_path: Path) -> Path:
    return write_tiny_dual(tmp_path / "judge", [f"a {colour} circle on the" for colour in COLOURS])


def answered(outcome: Outcome) -> dict[str, Any]:
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out, parse_constant=pytest.fail)
    assert isinstance(found, dict)
    return found


def refused(outcome: Outcome, *said: str) -> None:
    assert (outcome.code, outcome.out) == (1, "")
    problem, hint = outcome.err.splitlines()[-2:]
    assert problem.startswith("error: ")
    assert hint.startswith("  hint: ")
    for each in said:
        assert each in problem + hint
    assert "Traceback" not in outcome.err


def test_several_judges_as_json(
    tellapart: Tellapart, predictions: Path, judge: Path, tiny_captioner: Path
) -> None:
    found = answered(
        tellapart("self-retrieve", predictions, "--by", judge, "--by", "likelihood", *PLAIN, "--json")
    )
    assert found["pool"] == {
        "choice": "split",
        "size": 12,
        "captions": 12,
        "pictures_without_captions": 0,
    }
    assert found["ranks_from"] == 1
    assert found["captioner"]["name"] == str(tiny_captioner)
    ours, own = found["judges"]
    assert (ours["name"], ours["trained_on"]) == (str(judge), "nothing at all")
    assert (ours["taught_the_captioner"], ours["shares_encoder"]) == (False, True)
    assert list(ours["scores"])[:6] == ["R@1", "R@5", "R@10", "Mean-rank", "Median-rank", "R@1-merged"]
    assert list(own["scores"])[:4] == ["R@1", "R@5", "R@50", "R@500"]
    assert own["scores"]["R@50"] == 1  # more than there are pictures
    assert any("R@50 is 1 whatever" in note for note in own["notes"])
    (accord,) = found["accord"]
    assert accord["judges"] == [str(judge), "likelihood"]
    assert accord["both"] <= min(ours["scores"]["R@1"], own["scores"]["R@1"])
    low, high = ours["intervals"]["Mean-rank"]
    assert 1 <= low <= ours["scores"]["Mean-rank"] <= high <= 12
    assert ours["signatures"]["R@1"].startswith(f"retriever:{ours['identity']}|ranks:from-1|pool:12|")


def test_a_table_for_people(tellapart: Tellapart, predictions: Path, judge: Path) -> None:
    outcome = tellapart("self-retrieve", predictions, "--by", judge, *PLAIN)
    assert outcome.code == 0, outcome.err
    lines = outcome.out.splitlines()
    assert lines[0].split()[0] == "measure"
    assert [line.split()[0] for line in lines[1:7]] == [
        "R@1",
        "R@5",
        "R@10",
        "Mean-rank",
        "Median-rank",
        "R@1-merged",
    ]
    assert (
        "12 captions, each in a pool of 12 pictures (split; 0 have no caption); ranks from 1" in outcome.out
    )
    assert "taught by no retriever" in outcome.out
    assert "trained on nothing at all" in outcome.out
    assert "  it sees through the captioner's own encoder" in lines
    assert "note: R@" not in lines


def test_a_judge_that_taught_the_captioner_is_flagged(
    tellapart: Tellapart, predictions: Path, judge: Path, tiny_captioner: Path, tmp_path: Path
) -> None:
    identity = answered(tellapart("self-retrieve", predictions, "--by", judge, *PLAIN, "--json"))["judges"][
        0
    ]["identity"]
    pupil = tmp_path / "pupil"
    shutil.copytree(tiny_captioner, pupil)
    settings = json.loads((pupil / "config.json").read_text())
    settings["taught_by"] = ["under another name@" + identity.rpartition("@")[2]]
    (pupil / "config.json").write_text(json.dumps(settings))
    command = ("self-retrieve", predictions, "--by", judge, "--captioner", pupil, *PLAIN)
    outcome = tellapart(*command)
    assert "IT TAUGHT THIS CAPTIONER" in outcome.out
    assert "taught by under another name@" in outcome.out
    assert answered(tellapart(*command, "--json"))["judges"][0]["taught_the_captioner"] is True


def test_hard_pools_and_sets(tellapart: Tellapart, predictions: Path, judge: Path, tmp_path: Path) -> None:
    for colour in COLOURS:
        paint(tmp_path / "more" / f"{colour}.png", colour)
    command = (
        "self-retrieve",
        predictions,
        "--by",
        judge,
        "--distractors",
        tmp_path / "more",
        *PLAIN,
        "--json",
    )
    whole = answered(tellapart(*command))["pool"]
    assert (whole["size"], whole["pictures_without_captions"]) == (18, 6)
    hard = answered(tellapart(*command, "--pool", "hard", "--size", "6"))
    assert hard["pool"]["captions"] == 6
    assert 6 <= hard["pool"]["size"] <= 12
    assert hard["pool"]["choice"] == "hard-in-groups-of-5"
    assert 0 <= hard["judges"][0]["scores"]["R@1-random-pool"] <= 1
    sets = answered(tellapart(*command, "--pool", "sets", "--size", "3"))
    assert (sets["pool"]["size"], sets["pool"]["captions"]) == (4, 12)
    assert sets["judges"][0]["signatures"]["R@1"].endswith("|pictures:nearest-3-of-each")
    assert answered(tellapart(*command, "--pool", "sets"))["pool"]["size"] == 10
    refused(tellapart(*command, "--size", "3"), "--size is for")


def test_what_each_caption_found_is_written(
    tellapart: Tellapart, predictions: Path, judge: Path, tmp_path: Path
) -> None:
    outcome = tellapart(
        "self-retrieve", predictions, "--by", judge, *PLAIN, "--ranks-from", "0", "--at", "1,3", "--json",
        "--out", tmp_path / "found.jsonl", "--page", tmp_path / "page.html",
    )  # fmt: skip
    found = answered(outcome)["judges"][0]["scores"]
    lines = [json.loads(line) for line in (tmp_path / "found.jsonl").read_text().splitlines()]
    assert [line["image_id"] for line in lines] == [f"{one}-{other}" for one, other in TWO]
    assert sum(line["rank"] for line in lines) / 12 == pytest.approx(found["Mean-rank"])
    assert sum(line["rank"] < 3 for line in lines) / 12 == pytest.approx(found["R@3"])
    assert all((line["rank"] == 0) == (line["score"] > line["found_score"]) for line in lines)
    assert "By " in (tmp_path / "page.html").read_text()
    assert "written: " in outcome.err
    assert "page: " in outcome.err


def test_clip_judges_too(tellapart: Tellapart, predictions: Path, tmp_path: Path) -> None:
    folder = save_clip(tmp_path / "clip")
    found = answered(tellapart("self-retrieve", predictions, "--by", f"clip:{folder}", *PLAIN, "--json"))
    (judged,) = found["judges"]
    assert (judged["name"], judged["encoder"], judged["shares_encoder"]) == (f"clip:{folder}", None, None)
    assert 0 <= judged["scores"]["R@1"] <= 1


def test_of_captions_by_who_knows_whom(
    tellapart: Tellapart, predictions: Path, judge: Path, tmp_path: Path
) -> None:
    foreign = tmp_path / "foreign.jsonl"
    rows = [json.loads(line) | {"model": "gone"} for line in predictions.read_text().splitlines()]
    foreign.write_text("".join(json.dumps(row) + "\n" for row in rows))
    outcome = tellapart("self-retrieve", foreign, "--by", judge, *PLAIN)
    assert "captioner: not known" in outcome.out
    assert "whether it taught the captioner is not known" in outcome.out
    refused(tellapart("self-retrieve", foreign, "--by", "likelihood", *PLAIN), "--captioner")
    refused(tellapart("self-retrieve", foreign, "--by", judge, "--captioner", "gone", *PLAIN), "gone")


def test_bad_input(tellapart: Tellapart, predictions: Path, judge: Path, tmp_path: Path) -> None:
    command = ("self-retrieve", predictions, "--by", judge, *PLAIN)
    refused(tellapart(*command, "--by", judge), "is given twice")
    refused(tellapart("self-retrieve", predictions, "--by", "nobody", *PLAIN), "nobody")
    refused(tellapart(*command, "--at", "one"), "'one' are no numbers")
    refused(tellapart(*command, "--at", "0,5"), "recall@1 is the least")
    refused(tellapart(*command, "--page", "photo.jpg"), "not the name of a page")
    refused(tellapart(*command, "--out", tmp_path), "is a folder")
    refused(tellapart(*command, "--distractors", tmp_path / "nowhere"), "nowhere")
    refused(tellapart("self-retrieve", tmp_path / "none.jsonl", *PLAIN), "none.jsonl does not exist")
    assert tellapart(*command, "--pool", "easy").code == 2
    one = tmp_path / "one.jsonl"
    one.write_text(predictions.read_text().splitlines()[0])
    refused(tellapart("self-retrieve", one, "--by", judge, *PLAIN), "but one picture")
    damaged = tmp_path / "photos" / f"{TWO[3][0]}-{TWO[3][1]}.png"
    damaged.write_bytes(b"no picture")
    refused(tellapart(*command), f"{damaged.name} is not a picture")
    damaged.unlink()
    refused(tellapart(*command), f"{damaged.name}, the picture of image", "1 of 12")


def test_distractors_that_cannot_be_read_are_left_out(
    tellapart: Tellapart, predictions: Path, judge: Path, tmp_path: Path
) -> None:
    paint(tmp_path / "more" / "good.png", "red")
    (tmp_path / "more" / "bad.png").write_bytes(b"no picture")
    outcome = tellapart(
        "self-retrieve", predictions, "--by", judge, "--distractors", tmp_path / "more", *PLAIN, "--json"
    )
    assert answered(outcome)["pool"]["pictures_without_captions"] == 1
    assert "note: 1 distractors cannot be read: left out" in outcome.err


def test_real_photographs_by_a_judge_from_disk(
    tellapart: Tellapart, real_data: Path, judge: Path, tmp_path: Path
) -> None:
    images = real_data / "flickr8k" / "images"
    names = sorted(path.stem for path in images.iterdir())[:24]
    path = tmp_path / "captions.jsonl"
    path.write_text(
        "".join(json.dumps({"image_id": name, "caption": "a red circle"}) + "\n" for name in names)
    )
    found = answered(
        tellapart(
            "self-retrieve", path, "--images", images, "--by", judge, *PLAIN, "--pool", "sets", "--json"
        )
    )
    scores = found["judges"][0]["scores"]
    # One caption for all: in each set of ten it can be right about a single picture at the most.
    assert scores["R@1"] <= 0.5
    assert scores["R@10"] == 1
