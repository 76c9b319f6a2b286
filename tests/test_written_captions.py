"""Captions with their pictures, from predictions or a run; and what is said if a picture is missing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.retrievers.colour_retriever import paint

from tellapart.errors import TellapartError
from tellapart.run import Run
from tellapart.written_captions import read_written


def write(path: Path, *rows: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    for colour in ("red", "blue"):
        paint(tmp_path / "photos" / f"{colour}.png", colour)
    return tmp_path / "photos"


def rows(pictures: Path, **more: object) -> list[dict[str, object]]:
    return [
        {"image": str(pictures / f"{colour}.png"), "image_id": colour, "caption": f"{colour} thing", **more}
        for colour in ("red", "blue")
    ]


def test_predictions_say_all_themselves(pictures: Path, tmp_path: Path) -> None:
    found = read_written(write(tmp_path / "predictions.jsonl", *rows(pictures, model="runs/mine")))
    assert found.ids == ("red", "blue")
    assert found.captions == ("red thing", "blue thing")
    assert found.pictures == (pictures / "red.png", pictures / "blue.png")
    assert found.captioner == "runs/mine"


def test_pictures_may_stand_beside_the_file_or_in_a_folder_that_is_named(
    pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = [{"image": f"{colour}.png", "caption": "x"} for colour in ("red", "blue")]
    monkeypatch.chdir(tmp_path)
    assert read_written(write(pictures / "beside.jsonl", *named)).pictures[0] == pictures / "red.png"
    elsewhere = write(tmp_path / "elsewhere.jsonl", *named)
    assert read_written(elsewhere, images=pictures).pictures[1] == pictures / "blue.png"
    results = tmp_path / "results.json"
    results.write_text(json.dumps([{"image_id": colour, "caption": "x"} for colour in ("red", "blue")]))
    found = read_written(results, images=pictures)
    assert (found.pictures[0], found.captioner) == (pictures / "red.png", "")


@pytest.mark.parametrize("models", [["a", "b"], [["a"], ["a"]], [None, None]], ids=["two", "no name", "none"])
def test_who_wrote_them_is_known_only_if_all_lines_agree(
    models: list[object], pictures: Path, tmp_path: Path
) -> None:
    lines = [row | {"model": model} for row, model in zip(rows(pictures), models, strict=True)]
    assert read_written(write(tmp_path / "p.jsonl", *lines)).captioner == ""


def test_a_picture_that_is_not_there_is_named(pictures: Path, tmp_path: Path) -> None:
    (pictures / "blue.png").unlink()
    path = write(tmp_path / "predictions.jsonl", *rows(pictures))
    with pytest.raises(TellapartError, match=r"blue\.png, the picture of image 'blue', .* \(1 of 2 do not\)"):
        read_written(path)
    bare = write(tmp_path / "bare.jsonl", {"image_id": "red", "caption": "x"})
    with pytest.raises(TellapartError, match=r"bare\.jsonl:1: image 'red' names no picture") as error:
        read_written(bare)
    assert "--images" in error.value.hint
    with pytest.raises(TellapartError, match=r"nowhere\.jsonl does not exist"):
        read_written(tmp_path / "nowhere.jsonl")


def test_a_run_gives_what_it_wrote_of_a_split(pictures: Path, tmp_path: Path, tiny_captioner: Path) -> None:
    run = Run(tmp_path / "run")
    run.folder.mkdir()
    run.recipe.write_text("")
    shutil.copytree(tiny_captioner, run.captioner)  # whose own beam is 3 wide
    with pytest.raises(TellapartError, match="written no captions of 'val' by a beam of 3") as error:
        read_written(run.folder, split="val")
    assert f"tellapart evaluate {run.folder} --split val --beam 3" in error.value.hint
    write(run.predictions("val", width=3), *rows(pictures, model="another name"))
    found = read_written(run.folder, split="val")
    assert (found.ids, found.captioner) == (("red", "blue"), str(run.folder))
    write(run.predictions("val", width=1), rows(pictures)[0])
    assert read_written(run.folder, split="val", beam=1).ids == ("red",)
