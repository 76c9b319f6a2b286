"""`tellapart recipe`: a recipe is copied, shown and described; a bad one is refused in a line."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tellapart.recipe import built_in_recipes, find_recipe, load_recipe, schema

if TYPE_CHECKING:
    from tests.conftest import Outcome

    Tellapart = Callable[..., Outcome]

SHAPES = '[data]\nformat = "shapes"\n'


def refused(outcome: Outcome) -> tuple[str, str]:
    assert (outcome.code, outcome.out) == (1, "")
    problem, hint = outcome.err.splitlines()
    assert problem.startswith("error: ")
    assert hint.startswith("  hint: ")
    return problem.removeprefix("error: "), hint.removeprefix("  hint: ")


def test_what_is_shown_is_a_recipe_of_the_same_values(tellapart: Tellapart, tmp_path: Path) -> None:
    shown = tellapart("recipe", "show", "mrnn-shapes")
    assert (shown.code, shown.err) == (0, "")
    mine = tmp_path / "mine.toml"
    mine.write_text(shown.out, encoding="utf-8")
    assert load_recipe(str(mine)) == load_recipe("mrnn-shapes")
    assert tellapart("recipe", "show", mine).out == shown.out
    values = tomllib.loads(shown.out)
    assert values["training"]["patience"] == 3, "a default is written out"
    assert values["captioner"] == {
        "name": "mrnn", "embedding_one": 128, "embedding_two": 256, "multimodal": 512, "dropout": 0.1
    }  # fmt: skip


def test_changes_win_over_the_file(tellapart: Tellapart) -> None:
    changes = ["--set", "training.epochs=3", "--set", "optimiser.name=sgd", "--set", "captioner.dropout=0.25"]
    shown = json.loads(tellapart("recipe", "show", "mrnn-shapes", *changes, "--json").out)
    assert shown["training"]["epochs"] == 3
    assert shown["optimiser"]["name"] == "sgd"
    assert shown["captioner"]["dropout"] == 0.25
    assert shown["training"]["images_per_batch"] == 32
    assert shown["data"]["max_words"] is None


@pytest.mark.parametrize(
    ("text", "changes", "said", "advised"),
    [
        (
            SHAPES + "[training]\nepoch = 3\n",
            [],
            "{file}:4: training.epoch: unknown key 'epoch'",
            "did you mean 'epochs'?",
        ),
        (SHAPES, ["seeed=3"], "--set seeed: unknown key 'seeed'", "did you mean 'seed'?"),
        (SHAPES, ["training.epochs"], "--set training.epochs: not of the form", "--set training.epochs=5"),
        ('[data]\npath = "gone.json"\n', [], "{file}:2: data.path: no such file or folder: ", "data.root"),
    ],
)
def test_a_bad_recipe_costs_one_line(
    text: str, changes: list[str], said: str, advised: str, tellapart: Tellapart, tmp_path: Path
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text, encoding="utf-8")
    options = [word for change in changes for word in ("--set", change)]
    for verb in (("recipe", "show"), ("train",)):
        problem, hint = refused(tellapart(*verb, file, *options))
        assert problem.startswith(said.format(file=file))
        assert advised in hint
    assert [path.name for path in tmp_path.iterdir()] == ["mine.toml"]


@pytest.mark.parametrize("name", built_in_recipes())
def test_a_new_recipe_keeps_the_comments(
    name: str, tellapart: Tellapart, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = tellapart("recipe", "new", name)
    assert (outcome.code, outcome.err) == (0, "")
    assert f"tellapart train {name}.toml" in outcome.out
    original = find_recipe(name).read_text(encoding="utf-8")
    assert (tmp_path / f"{name}.toml").read_text(encoding="utf-8") == original
    elsewhere = tellapart("recipe", "new", name, "deep/er/mine.toml", "--json")
    assert json.loads(elsewhere.out) == {"recipe": "deep/er/mine.toml"}
    assert (tmp_path / "deep/er/mine.toml").read_text(encoding="utf-8") == original


def test_a_new_recipe_overwrites_nothing(tellapart: Tellapart, tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text("# mine")
    problem, _ = refused(tellapart("recipe", "new", "mrnn-shapes", mine))
    assert problem == f"{mine}: this file exists already"
    assert mine.read_text() == "# mine"
    problem, _ = refused(tellapart("recipe", "new", "mrnn-shapes", mine / "inside.toml"))
    assert str(mine) in problem
    assert mine.read_text() == "# mine"


@pytest.mark.parametrize("verb", ["new", "show"])
def test_an_unknown_recipe_is_named_with_the_nearest_spelling(verb: str, tellapart: Tellapart) -> None:
    problem, hint = refused(tellapart("recipe", verb, "mrnn-shape"))
    assert problem == "no recipe file or built-in recipe is called 'mrnn-shape'"
    assert hint == "did you mean 'mrnn-shapes'?"


def test_the_schema_is_printed_in_words_and_as_json(tellapart: Tellapart) -> None:
    assert json.loads(tellapart("recipe", "schema", "--json").out) == schema()
    outcome = tellapart("recipe", "schema")
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert "seed = 1" in lines
    assert "epochs = 20  # integer" in lines
    assert '[captioner]  # name = "mrnn"' in lines
    assert '[objective]  # name = "mrnn-cost"' in lines
    assert not any(line.startswith("name = null") for line in lines)
    assert any(
        line.startswith("first_block = 11")
        for line in tellapart("recipe", "schema", "--encoder").out.splitlines()
    )
    values = load_recipe("mrnn-shapes").model_dump()
    for section, keys in values.items():
        if isinstance(keys, dict):
            assert any(line.startswith((f"[{section}]", f"[{section}.NAME]")) for line in lines)
            # The name of an exchangeable part stands beside its section.
            wanted = set(keys) - ({"name"} if section in ("captioner", "objective") else set())
            assert wanted <= {line.partition(" = ")[0] for line in lines}
