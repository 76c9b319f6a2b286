"""`tellapart caption` with checkpoints that others trained, as they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.captioners.pretrained.checkpoints import write_tiny

if TYPE_CHECKING:
    from tests.conftest import Outcome

    Tellapart = Callable[..., Outcome]


@pytest.mark.parametrize("kind", ["blip", "git", "vit-gpt2", "blip2", "image-text"])
def test_a_checkpoint_captions_as_it_is(
    kind: str, tellapart: Tellapart, scenes: Path, tmp_path: Path
) -> None:
    folder = write_tiny(kind, tmp_path / "checkpoint")
    pictures = sorted((scenes / "images").iterdir())[:3]
    outcome = tellapart(
        "caption",
        "--apart",
        "off",
        *pictures,
        "--captioner",
        f"{kind}:{folder}",
        "--json",
        "--max-words",
        "6",
    )
    assert outcome.code == 0, outcome.err
    lines = [json.loads(line) for line in outcome.out.splitlines()]
    assert [Path(line["image"]) for line in lines] == pictures
    assert all(line["caption"].strip() for line in lines)
    greedy = tellapart(
        "caption", "--apart", "off", *pictures, "--captioner", f"{kind}:{folder}", "--json", "--beam", "1"
    )
    assert greedy.code == 0


def test_a_kind_that_has_to_be_trained_says_so(tellapart: Tellapart, scenes: Path) -> None:
    outcome = tellapart("caption", "--apart", "off", scenes / "images", "--captioner", "topdown")
    assert outcome.code == 1
    assert "'topdown' is a kind of captioner that has to be trained first" in outcome.err


def test_a_checkpoint_that_is_not_there_is_named(tellapart: Tellapart, scenes: Path, tmp_path: Path) -> None:
    outcome = tellapart(
        "caption", "--apart", "off", scenes / "images", "--captioner", f"blip:{tmp_path / 'gone'}"
    )
    assert outcome.code == 1
    assert f"there is no folder {tmp_path / 'gone'}" in outcome.err


def test_a_folder_called_like_a_kind_is_a_folder(
    tellapart: Tellapart, scenes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "blip").mkdir()
    outcome = tellapart("caption", "--apart", "off", scenes / "images", "--captioner", "blip")
    assert outcome.code == 1
    assert "blip/config.json: missing" in outcome.err
