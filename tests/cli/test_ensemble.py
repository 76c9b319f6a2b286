"""`tellapart ensemble`: two folders become one that captions, or a line says why not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from tellapart.captioners.folder import SavedCaptioner, load_captioner, save_captioner

if TYPE_CHECKING:
    from tests.conftest import Outcome

    Tellapart = Callable[..., Outcome]


@pytest.fixture
def other_captioner(tiny_captioner: Path, tmp_path: Path) -> Path:
    """The same words and encoder, other weights."""
    saved = load_captioner(tiny_captioner)
    torch.manual_seed(9)
    with torch.no_grad():
        for weight in saved.captioner.parameters():
            weight.add_(torch.randn_like(weight))
    save_captioner(tmp_path / "other", SavedCaptioner(saved.captioner, saved.settings), dtype=torch.float16)
    return tmp_path / "other"


def caption(tellapart: Tellapart, scenes: Path, captioner: Path) -> dict[str, object]:
    outcome = tellapart(
        "caption", "--apart", "off", scenes / "images" / "000007.png", "--captioner", captioner, "--json"
    )
    assert outcome.code == 0, outcome.err
    result: dict[str, object] = json.loads(outcome.out)
    return result


@pytest.mark.parametrize("mean", ["probabilities", "log-probabilities"])
def test_the_ensemble_is_a_captioner_like_any(
    mean: str, tiny_captioner: Path, other_captioner: Path, tellapart: Tellapart, scenes: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"  # a run stands for the captioner in it
    shutil.copytree(other_captioner, run / "captioner")
    done = tellapart("ensemble", tiny_captioner, run, "--out", tmp_path / "both", "--mean", mean)
    assert done.code == 0, done.err
    assert done.out == f"{tmp_path / 'both'}: the mean of the {mean} of 2 captioners, 15 words known\n"
    shutil.rmtree(run)
    found = caption(tellapart, scenes, tmp_path / "both")
    assert found["candidates"] not in (
        caption(tellapart, scenes, tiny_captioner)["candidates"],
        caption(tellapart, scenes, other_captioner)["candidates"],
    )
    twins = tellapart("ensemble", tiny_captioner, tiny_captioner, "--out", tmp_path / "twins", "--json")
    assert json.loads(twins.out) == {
        "captioner": str(tmp_path / "twins"),
        "members": [str(tiny_captioner), str(tiny_captioner)],
        "mean": "probabilities",
        "vocabulary": 15,
    }
    assert (
        caption(tellapart, scenes, tmp_path / "twins")["caption"]
        == caption(tellapart, scenes, tiny_captioner)["caption"]
    )


def test_the_same_encoder_may_have_two_names(
    tiny_captioner: Path, other_captioner: Path, tellapart: Tellapart, tmp_path: Path
) -> None:
    path = other_captioner / "config.json"
    settings = json.loads(path.read_text())
    settings["encoder"]["name"] = "tuned:elsewhere"
    path.write_text(json.dumps(settings))
    done = tellapart("ensemble", tiny_captioner, other_captioner, "--out", tmp_path / "both")
    assert done.code == 0, done.err


def test_what_cannot_be_joined_is_said_in_a_line(
    tiny_captioner: Path, tellapart: Tellapart, tmp_path: Path
) -> None:
    for arguments, said in (
        ((tiny_captioner, "default"), "their vocabularies differ"),
        ((tiny_captioner,), "an ensemble has at least two captioners, not 1"),
        ((tiny_captioner, tmp_path / "gone"), f"{tmp_path / 'gone'}: no captioner folder here"),
    ):
        outcome = tellapart("ensemble", *arguments, "--out", tmp_path / "both")
        assert (outcome.code, outcome.out) == (1, "")
        problem, hint = outcome.err.splitlines()
        assert problem.startswith("error: ")
        assert said in problem
        assert hint.startswith("  hint: ")
    assert not (tmp_path / "both").exists()
    assert tellapart("ensemble", tiny_captioner, tiny_captioner).code == 2
