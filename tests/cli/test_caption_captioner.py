"""`tellapart caption` with a captioner's folder that is not in order."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tellapart.data.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tests.conftest import Outcome

    Tellapart = Callable[..., Outcome]
    Damage = Callable[[Path], object]


def settings(**changes: object) -> Damage:
    """Other values in config.json."""

    def change(folder: Path) -> None:
        content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        (folder / "config.json").write_text(json.dumps(content | changes), encoding="utf-8")

    return change


def encoder(**changes: object) -> Damage:
    """Other values of the encoder in config.json."""

    def change(folder: Path) -> None:
        before = json.loads((folder / "config.json").read_text(encoding="utf-8"))["encoder"]
        settings(encoder=before | changes)(folder)

    return change


def without(name: str) -> Damage:
    return lambda folder: (folder / name).unlink()


def half(name: str) -> Damage:
    return lambda folder: (folder / name).write_bytes(
        (folder / name).read_bytes()[: (folder / name).stat().st_size // 2]
    )


def other_words(folder: Path) -> None:
    """A vocabulary that is in order, but of another captioner with as many words."""
    count = len(json.loads((folder / "vocabulary.json").read_text(encoding="utf-8"))["words"])
    words = Vocabulary(tuple(f"word{number}" for number in range(count)))
    (folder / "vocabulary.json").write_text(json.dumps(words.to_json()), encoding="utf-8")


NO_SETTINGS = "config.json: not the settings of a captioner"

DAMAGED: Mapping[str, tuple[Damage, str]] = {
    "no folder": (shutil.rmtree, "no captioner folder here"),
    "no config": (without("config.json"), "config.json: missing"),
    "no weights": (without("model.safetensors"), "model.safetensors: missing"),
    "no words": (without("vocabulary.json"), "vocabulary.json: "),
    "half the config": (half("config.json"), NO_SETTINGS),
    "half the weights": (
        half("model.safetensors"),
        "model.safetensors: missing, unreadable, half-written or damaged",
    ),
    "half the words": (half("vocabulary.json"), "vocabulary.json: "),
    "other words": (other_words, "vocabulary.json: not the vocabulary that this captioner was trained with"),
    "other sizes": (
        settings(captioner={"name": "mrnn", "embedding_one": 9}),
        "model.safetensors: these weights are not of this captioner",
    ),
    "nameless": (settings(captioner={}), NO_SETTINGS),
    "a key too many": (settings(extra=1), NO_SETTINGS),
    "wrong setting": (settings(captioner={"name": "mrnn", "dropout": "much"}), NO_SETTINGS),
    "no shapes": (encoder(shapes={}), "the encoder patches gives no pooled feature"),
    "odd shapes": (encoder(shapes={"pooled": [3, 4]}), NO_SETTINGS),
    "no beam": (settings(width=0), NO_SETTINGS),
    "future": (settings(format=99, soul="new"), "config.json: written in format 99, this version reads 2"),
}
"""What was done to the folder, and what is said of it."""


def refused(outcome: Outcome) -> str:
    assert (outcome.code, outcome.out) == (1, "")
    problem, hint = outcome.err.splitlines()
    assert problem.startswith("error: ")
    assert hint.startswith("  hint: ")
    return problem.removeprefix("error: ")


@pytest.fixture
def copy(tiny_captioner: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_captioner, tmp_path / "copy"))


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_captioner_is_refused_by_name(
    damage: str, tellapart: Tellapart, copy: Path, scenes: Path, tmp_path: Path
) -> None:
    DAMAGED[damage][0](copy)
    page = tmp_path / "page.html"
    page.write_text("what was there")
    problem = refused(tellapart("caption", "--apart", "off", scenes, "--captioner", copy, "--page", page))
    assert problem.startswith(str(copy))
    assert DAMAGED[damage][1] in problem
    assert page.read_text() == "what was there"


def test_an_encoder_with_other_weights_is_refused(tellapart: Tellapart, copy: Path, scenes: Path) -> None:
    encoder(identity="patches-of-old")(copy)
    problem = refused(tellapart("caption", "--apart", "off", scenes, "--captioner", copy))
    assert problem == f"{copy}: trained on features of patches-of-old, but patches is patches-9x6"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (encoder(name="patchs"), "no encoder is called 'patchs'"),
        (settings(captioner={"name": "mrn"}), "no captioner is called 'mrn'"),
    ],
)
def test_an_unknown_part_is_named_with_the_nearest_spelling(
    change: Damage, said: str, tellapart: Tellapart, copy: Path, scenes: Path
) -> None:
    change(copy)
    outcome = tellapart("caption", "--apart", "off", scenes, "--captioner", copy)
    assert said in refused(outcome)
    assert "did you mean '" in outcome.err


def test_a_name_that_is_neither_shipped_nor_a_folder(tellapart: Tellapart, scenes: Path) -> None:
    assert (
        refused(tellapart("caption", "--apart", "off", scenes, "--captioner", "defualt"))
        == "defualt: no captioner folder here"
    )


def test_a_cache_that_cannot_be_made_is_said_in_a_line(
    tellapart: Tellapart, tiny_captioner: Path, scenes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TELLAPART_CACHE", str(tmp_path / "file"))
    assert str(tmp_path / "file") in refused(
        tellapart("caption", "--apart", "off", scenes, "--captioner", tiny_captioner)
    )
    assert (
        tellapart("caption", "--apart", "off", scenes, "--captioner", tiny_captioner, "--no-cache").code == 0
    )
