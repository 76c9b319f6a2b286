"""`tellapart retrieve`, as a user types it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PIL import Image

if TYPE_CHECKING:
    from tests.conftest import Outcome

RECIPE = ("--recipe", "mrnn-shapes", "--set", "data.scenes=60")


def test_table_for_people(tellapart: Callable[..., Outcome], tiny_captioner: Path, tmp_path: Path) -> None:
    curves = tmp_path / "curves.png"
    outcome = tellapart(
        "retrieve", tiny_captioner, *RECIPE, "--normalise", "plain", "--normalise", "eq7", "--curves", curves
    )
    assert outcome.code == 0, outcome.err
    lines = outcome.out.splitlines()
    assert lines[0].split() == ["direction", "ranked", "by", "R@1", "R@5", "R@10", "Med", "r"]
    assert [line.split()[:2] for line in lines[1:4]] == [
        ["image-to-sentence", "plain"],
        ["image-to-sentence", "eq7"],
        ["sentence-to-image", "plain"],
    ]
    assert lines[4].startswith("6 pictures of 'test', 30 captions")
    assert len(lines) == 5
    assert "p(c) of eq7 is the mean over 48 training pictures" in outcome.err
    assert f"curves: {curves}" in outcome.err
    with Image.open(curves) as picture:
        assert picture.format == "PNG"


def test_json_is_one_object(tellapart: Callable[..., Outcome], tiny_captioner: Path) -> None:
    outcome = tellapart("retrieve", tiny_captioner, *RECIPE, "--split", "val", "--images", "4", "--json")
    result = json.loads(outcome.out)
    assert result["run"] == str(tiny_captioner)
    assert (result["split"], result["images"], result["captions"]) == ("val", 4, 20)
    assert result["retriever"].startswith("likelihood@")
    assert [table["direction"] for table in result["tables"]] == ["image-to-sentence", "sentence-to-image"]
    for table in result["tables"]:
        assert 0 <= table["R@1"] <= table["R@5"] <= table["R@10"] <= 1
        assert 1 <= table["median_rank"] <= table["pool"]
    assert result["notes"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("nowhere",), 1, "nowhere: no run here"),
        (("default", "--set", "data.scenes=9"), 1, "--set changes a recipe, and none is named"),
        (("default", *RECIPE, "--curves", "photo.jpg"), 1, "not the name of a PNG picture"),
        (("default", *RECIPE, "--normalise", "zscore"), 2, "zscore"),
        (("default", *RECIPE, "--images", "0"), 2, "--images"),
        (("judge", *RECIPE, "--normalise", "pmi"), 1, "is a retriever"),
    ],
)
def test_mistakes_are_told(
    arguments: tuple[str, ...],
    code: int,
    said: str,
    tellapart: Callable[..., Outcome],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = tellapart("retrieve", *arguments)
    assert outcome.code == code
    assert said in outcome.err
    assert outcome.out == ""
    assert "Traceback" not in outcome.err
    assert list(tmp_path.iterdir()) == []
