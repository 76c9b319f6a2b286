"""Names stand for parts, other packages add theirs, and a wrong name is answered with the right one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tellapart.captioners.parts import CAPTIONERS
from tellapart.errors import TellapartError, UnknownName
from tellapart.objectives.parts import OBJECTIVES
from tellapart.registry import Config, Part, Registry, suggest
from tellapart.vision.parts import ENCODERS


class Cage(Config):
    bars: int = 3


OWN = [
    Part("mynah", "repeats at once", Cage, "json:loads"),
    Part("cuckoo", "says one word", Cage, "json:dumps", paper="Aesop"),
]

PLUGIN = """
from tellapart.captioners.settings.kinds import CaptionerPart
from tellapart.registry import Config, Part


class ParrotConfig(Config):
    words: int = 7


PART = Part("parrot", "repeats what it heard", ParrotConfig, "nowhere.at_all:build", paper="Sand 1997")
CAPTIONER = CaptionerPart("parrot", "repeats what it heard", ParrotConfig, "nowhere:build", paper="Sand 1997")
NOT_A_PART = 3
"""

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put packages on the path as pip would: a module, and its entry points beside it."""
    (tmp_path / "parrots.py").write_text(PLUGIN)
    (tmp_path / "broken_parrots.py").write_text("import no_such_module_anywhere\n")
    monkeypatch.syspath_prepend(tmp_path)

    def offer(package: str, *points: str, group: str = "tellapart.birds") -> None:
        info = tmp_path / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *points, ""]))

    return offer


def birds() -> Registry[Part]:
    return Registry("bird", OWN, group="tellapart.birds", holds=Part)


def test_names_are_sorted_and_stand_for_parts() -> None:
    registry = birds()
    assert registry.names() == ["cuckoo", "mynah"]
    assert registry.get("cuckoo") is OWN[1]
    assert registry.get("mynah").builder() is json.loads


def test_a_wrong_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName) as caught:
        birds().get("cukoo")
    assert caught.value.problem == "no bird is called 'cukoo'"
    assert caught.value.hint == "did you mean 'cuckoo'?"
    with pytest.raises(UnknownName) as caught:
        birds().get("elephant")
    assert caught.value.hint == "there are: cuckoo, mynah"


def test_nothing_to_suggest() -> None:
    assert suggest("x", []) == "there are none"


@given(st.sampled_from(["captioner", "objective", "encoder"]), st.data())
def test_one_slip_of_the_pen_is_always_understood(word: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(word) - 1))
    slip = word[:at] + data.draw(st.sampled_from(["", "x", word[at] * 2])) + word[at + 1 :]
    assert suggest(slip, ["captioner", "objective", "encoder"]) == f"did you mean {word!r}?"


def test_settings_are_frozen_and_strict() -> None:
    cage, name = Cage(), "bars"
    with pytest.raises(ValidationError, match="frozen"):
        setattr(cage, name, 4)
    with pytest.raises(ValidationError, match="bras"):
        Cage.model_validate({"bras": 4})


def test_another_package_adds_a_part_by_an_entry_point(install: Install) -> None:
    install("parrots", "parrot = parrots:PART")
    registry = birds()
    assert registry.names() == ["cuckoo", "mynah", "parrot"]
    # Its builder, which cannot be imported, was not asked for.
    assert registry.get("parrot").config().model_dump() == {"words": 7}
    with pytest.raises(UnknownName, match="parot"):
        registry.get("parot")


@pytest.mark.parametrize(
    ("point", "said"),
    [
        ("cuckoo = parrots:PART", "two packages offer a bird called 'cuckoo'; one of them is 'parrots:PART'"),
        (
            "macaw = parrots:PART",
            "the bird 'macaw' of another package cannot be used (parrots:PART): it is no Part",
        ),
        (
            "parrot = parrots:NOT_A_PART",
            "the bird 'parrot' of another package cannot be used (parrots:NOT_A_PART)",
        ),
        (
            "parrot = parrots:GONE",
            "the bird 'parrot' of another package cannot be used (parrots:GONE): Attribute",
        ),
        ("parrot = broken_parrots:PART", "(broken_parrots:PART): ModuleNotFoundError: No module named"),
    ],
)
def test_a_part_that_cannot_be_used_is_named(point: str, said: str, install: Install) -> None:
    install("parrots", point)
    with pytest.raises(TellapartError) as caught:
        birds().names()
    assert said in caught.value.problem
    assert "uninstall" in caught.value.hint


def test_two_packages_may_not_offer_one_name(install: Install) -> None:
    install("parrots", "parrot = parrots:PART")
    install("other-parrots", "parrot = parrots:PART")
    with pytest.raises(TellapartError, match="two packages offer a bird called 'parrot'"):
        birds().get("mynah")


def test_a_captioner_of_another_package_can_be_listed_and_cooked_with(
    install: Install, tmp_path: Path
) -> None:
    install("parrots", "parrot = parrots:CAPTIONER", group="tellapart.captioners")
    recipe = tmp_path / "mine.toml"
    recipe.write_text('[data]\nformat = "shapes"\n[captioner]\nname = "parrot"\nwords = 9\n')
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}

    def ask(*arguments: str) -> str:
        command = [sys.executable, "-m", "tellapart", *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    listed = {row["name"]: row for row in json.loads(ask("list", "captioners", "--json"))}
    assert listed["parrot"] == {
        "name": "parrot",
        "what": "repeats what it heard",
        "parameters": "cannot be built: No module named 'nowhere'",
        "presets": [],
        "paper": "Sand 1997",
    }
    assert json.loads(ask("recipe", "show", str(recipe), "--json"))["captioner"] == {
        "name": "parrot",
        "words": 9,
    }


@pytest.mark.parametrize("registry", [CAPTIONERS, OBJECTIVES, ENCODERS], ids=lambda registry: registry.kind)
def test_every_part_that_ships_is_complete(registry: Registry[Any]) -> None:
    assert registry.group == f"tellapart.{registry.kind}s"
    for name in registry.names():
        part = registry.get(name)
        assert part.name == name
        assert part.summary
        assert part.config.__doc__
        assert callable(part.builder())
