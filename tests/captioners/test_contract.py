"""What holds for every captioner, whatever its network: each law of `tellapart.testing` on each of them."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import resources
from pathlib import Path

import pytest

from tellapart.captioners.parts import CAPTIONERS
from tellapart.captioners.settings.ensemble import EnsembleConfig
from tellapart.captioners.settings.kinds import GridConfig
from tellapart.testing import LAWS, Subject, check_law, prepare

WITH_CONCEPTS = ({"concepts": 3}, {"concepts": 3, "copy_words": True})
# Unlike members: one reads the pooled feature and remembers a hidden state, one the grid and every word.
MIXED = [{"name": name, **CAPTIONERS.get(name).preset("tiny")} for name in ("mrnn", "transformer")]
ENSEMBLES = ({"mean": "log-probabilities"}, {"members": MIXED})


def kinds() -> Iterator[tuple[str, str]]:
    """Names, and settings as JSON; who needs a checkpoint is held to the laws beside its own tests."""
    for name in CAPTIONERS.names():
        part = CAPTIONERS.get(name)
        if "tiny" in part.presets:
            yield name, "{}"
            if issubclass(part.config, GridConfig):
                yield from ((name, json.dumps(settings)) for settings in WITH_CONCEPTS)
            if part.config is EnsembleConfig:
                yield from ((name, json.dumps(settings)) for settings in ENSEMBLES)


KINDS = list(kinds())


@cache
def subject(name: str, settings: str) -> Subject:
    return prepare(name, settings=json.loads(settings))


def test_who_has_no_tiny_preset_needs_a_checkpoint() -> None:
    left_out = set(CAPTIONERS.names()) - {name for name, _ in KINDS}
    assert all(CAPTIONERS.get(name).own_encoder is not None for name in left_out)
    assert len(KINDS) > 20


def test_every_captioner_but_the_ensemble_has_a_recipe() -> None:
    """An ensemble can be trained as a whole, but mostly `tellapart ensemble` joins those that were."""
    recipes = (Path(str(resources.files("tellapart"))) / "recipes").glob("*.toml")
    sections = [tomllib.loads(path.read_text(encoding="utf-8")).get("captioner", {}) for path in recipes]
    assert set(CAPTIONERS.names()) - {section.get("name") for section in sections} == {"ensemble"}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("name", "settings"), KINDS)
def test_law(name: str, settings: str, law: str) -> None:
    check_law(law, subject(name, settings))
