"""A recipe is checked in full before anything starts, and every complaint says where and what to do."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tellapart.errors import TellapartError
from tellapart.recipe import Recipe, built_in_recipes, find_recipe, load_experiment, load_recipe, schema
from tellapart.recipe_sections import DataConfig, OptimiserConfig

SHAPES = '[data]\nformat = "shapes"\n'


def recipe_file(folder: Path, text: str) -> str:
    file = folder / "mine.toml"
    file.write_text(text, encoding="utf-8")
    return str(file)


def refusal(name: str, *changes: str) -> TellapartError:
    with pytest.raises(TellapartError) as caught:
        load_recipe(name, changes=changes)
    assert "\n" not in caught.value.problem + caught.value.hint
    return caught.value


def test_paths_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TELLAPART_DATA", raising=False)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "there.json").touch()
    name = recipe_file(tmp_path, '[data]\nroot = "gone"\npath = "there.json"\nimages = "photos"\n')
    root = f"data.root={tmp_path / 'data'}"

    assert refusal(name).problem == f"{name}:3: data.path: no such file or folder: gone/there.json"
    wrong = refusal(name, root)
    assert wrong.problem == f"{name}:4: data.images: no such file or folder: {tmp_path / 'data' / 'photos'}"
    assert "--set data.root=" in wrong.hint
    assert refusal(name, root, "data.images=x").problem.startswith(
        "--set data.images: no such file or folder"
    )
    (tmp_path / "data" / "photos").mkdir()
    assert load_recipe(name, changes=[root]).data.path == "there.json"
    # Where the recipe says no root, the environment does.
    assert "data.path: no such file" in refusal(name, "data.root=").problem
    monkeypatch.setenv("TELLAPART_DATA", str(tmp_path / "data"))
    assert load_recipe(name, changes=["data.root="]).data.resolve("there.json").is_file()


def test_a_recipe_needs_data(tmp_path: Path) -> None:
    name = recipe_file(tmp_path, "seed = 3\n")
    assert refusal(name).problem == f"{name}: data.path: is missing"
    name = recipe_file(tmp_path, 'seed = 3\n[data]\ntext = "mrnn"\n')
    assert refusal(name).problem == f"{name}:2: data.path: is missing"
    assert refusal(name, "data.root=/").problem == f"{name}:2: data.path: is missing"
    assert "format = 'shapes'" in refusal(name).hint


def test_names_of_recipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert refusal("mrnn-flickr").hint == "did you mean 'mrnn-flickr8k'?"
    assert refusal("quite something else").hint == f"there are: {', '.join(built_in_recipes())}"
    assert "no recipe file" in refusal(str(tmp_path)).problem
    # A file of one's own goes before a built-in recipe of the same name.
    monkeypatch.chdir(tmp_path)
    Path("mrnn-shapes").write_text(SHAPES)
    assert find_recipe("mrnn-shapes") == Path("mrnn-shapes")


def test_defaults_then_file_then_changes(tmp_path: Path) -> None:
    name = recipe_file(tmp_path, SHAPES + "min_count = 2\n[training]\nepochs = 7\nlog_every = 9\n")
    recipe = load_recipe(
        name, changes=["training.epochs=8", "training.epochs=9", 'data.text="unkt"', "seed = 5"]
    )
    assert (recipe.training.epochs, recipe.training.log_every, recipe.training.patience) == (9, 9, 3)
    assert recipe.seed == 5
    rules = recipe.data.rules()
    assert (rules.min_count, rules.max_words) == (2, 20), "the recipe's own limit, and the preset's"
    assert recipe.captioner == {
        "name": "mrnn", "embedding_one": 128, "embedding_two": 256, "multimodal": 512, "dropout": 0.0
    }  # fmt: skip


ALONE = """
import sys
from tellapart.recipe import load_recipe, schema
load_recipe("mrnn-shapes", changes=["training.epochs=2"])
schema()
print("torch" in sys.modules)
"""


def test_checking_a_recipe_does_not_import_torch() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("name", built_in_recipes())
def test_a_built_in_recipe_opens_with_what_it_does_and_how_to_run_it(name: str) -> None:
    text = find_recipe(name).read_text(encoding="utf-8")
    opening = text[: text.index("seed")]
    assert all(line.startswith("#") for line in opening.splitlines())
    assert f"tellapart train {name}" in opening
    assert "minute" in opening or "hour" in opening


@pytest.mark.parametrize("name", [name for name in built_in_recipes() if name.endswith("shapes")])
def test_recipes_of_drawn_scenes_load_anywhere(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TELLAPART_DATA", raising=False)
    assert load_experiment(name).data.format == "shapes"


@pytest.mark.parametrize("name", built_in_recipes())
def test_every_recipe_loads_where_its_data_is(name: str, real_data: Path) -> None:
    recipe = load_experiment(name, changes=[f"data.root={real_data}"])
    assert recipe.data.root == str(real_data)
    for section in recipe.parts:
        assert recipe.part(section)[0] == getattr(recipe, section)["name"]


@given(
    root=st.text(),
    rate=st.floats(min_value=0, exclude_min=True, allow_infinity=False, allow_nan=False),
    seed=st.integers(min_value=0, max_value=2**63 - 1),
    dropout=st.floats(min_value=0, max_value=1, exclude_max=True),
    rare=st.none() | st.integers(min_value=1, max_value=99),
)
def test_any_recipe_reads_back_as_the_same(
    root: str, rate: float, seed: int, dropout: float, rare: int | None
) -> None:
    recipe = Recipe(
        seed=seed,
        data=DataConfig(root=root, min_count=rare),
        optimiser=OptimiserConfig(learning_rate=rate),
        captioner={"name": "mrnn", "dropout": dropout},
    )
    assert Recipe.model_validate(tomllib.loads(recipe.to_toml())) == recipe


def nodes(value: object) -> Iterator[dict[str, Any]]:
    """Every object in a JSON value."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from nodes(inner)


TYPES = {"object", "array", "string", "integer", "number", "boolean", "null"}


def test_the_schema_is_sound_and_mentions_every_key() -> None:
    whole = json.loads(json.dumps(schema()))
    for node in nodes(whole):
        if isinstance(node.get("$ref"), str):
            assert node["$ref"].removeprefix("#/$defs/") in whole["$defs"]
        if isinstance(node.get("type"), str):
            assert node["type"] in TYPES
    sections = {
        section: whole["$defs"][content["$ref"].removeprefix("#/$defs/")]["properties"]
        for section, content in whole["properties"].items()
        if "$ref" in content
    }
    values = load_recipe("mrnn-shapes").model_dump()
    for section, keys in values.items():
        assert section in whole["properties"]
        if section in ("captioner", "objective"):
            options = {
                option["properties"]["name"]["const"]: option
                for option in whole["properties"][section]["oneOf"]
            }
            assert set(keys) == set(options[keys["name"]]["properties"]) - {"preset"}
        elif isinstance(keys, dict) and section != "stages":
            assert set(keys) == set(sections[section])
    assert whole["additionalProperties"] is False


@pytest.mark.parametrize(
    ("change", "nearest"),
    [
        ("optimiser.name=adm", "adam"),
        ("optimiser.decay=cosin", "cosine"),
        ("data.format=shpes", "shapes"),
        ("data.text=smle", "smile"),
        ("training.stop_metric=perplexty", "perplexity"),
    ],
)
def test_a_mistyped_choice_gets_the_nearest_right_one(change: str, nearest: str) -> None:
    with pytest.raises(TellapartError) as caught:
        load_recipe("mrnn-shapes", changes=[change])
    assert caught.value.hint == f"did you mean {nearest!r}?"


def test_another_part_does_not_inherit_the_settings_of_the_one_before() -> None:
    recipe = load_recipe("mrnn-shapes", changes=["objective.name=mrnn-cost", "objective.l2=0.5"])
    assert recipe.objective == {"name": "mrnn-cost", "l2": 0.5}
    again = load_recipe("mrnn-shapes", changes=["captioner.name=mrnn", "captioner.multimodal=8"])
    assert again.captioner["dropout"] == 0.1  # the same part keeps them


def test_a_preset_fills_in_what_the_recipe_leaves_open(tmp_path: Path) -> None:
    name = recipe_file(tmp_path, SHAPES + '[captioner]\nname = "mrnn"\npreset = "tiny"\nmultimodal = 9\n')
    recipe = load_recipe(name)
    assert recipe.captioner["embedding_one"] == 4
    assert recipe.captioner["multimodal"] == 9, "what the recipe says comes last"
    assert "preset" not in recipe.captioner
    wrong = refusal(name, "captioner.preset=tini")
    assert wrong.problem == "--set captioner.preset: 'mrnn' has no preset called 'tini'"
    assert wrong.hint == "did you mean 'tiny'?"


def test_extra_sources_are_checked_and_written_back(tmp_path: Path) -> None:
    (tmp_path / "captions.jsonl").touch()
    text = (
        f'[data]\nroot = "{tmp_path}"\npath = "captions.jsonl"\n'
        '[[data.extra]]\npath = "captions.jsonl"\npictures = false\nper_epoch = 3\n'
    )
    name = recipe_file(tmp_path, text)
    recipe = load_recipe(name)
    assert [(extra.pictures, extra.per_epoch) for extra in recipe.data.extra] == [(False, 3)]
    again = load_recipe(recipe_file(tmp_path, recipe.to_toml()))
    assert again == recipe
    missing = refusal(
        recipe_file(tmp_path, text.replace('path = "captions.jsonl"\npictures', 'path = "gone"\npictures'))
    )
    assert "data.extra.path: no such file or folder" in missing.problem
    unknown = refusal(recipe_file(tmp_path, text + "pictur = true\n"))
    assert "unknown key 'pictur'" in unknown.problem


def test_copying_needs_something_to_copy(tmp_path: Path) -> None:
    name = recipe_file(tmp_path, SHAPES + '[captioner]\nname = "transformer"\ncopy_words = true\n')
    assert "copy_words needs concepts to copy" in refusal(name).problem
    assert load_recipe(name, changes=["captioner.concepts=5"]).captioner["copy_words"] is True


def test_captions_alone_cannot_be_measured_on(tmp_path: Path) -> None:
    (tmp_path / "captions.jsonl").touch()
    text = (
        f'[data]\nroot = "{tmp_path}"\npath = "captions.jsonl"\n'
        '[[data.extra]]\npath = "captions.jsonl"\npictures = false\nheld_out = 3\n'
    )
    problem = refusal(recipe_file(tmp_path, text)).problem
    assert problem.endswith("captions without pictures cannot be held out to measure on")


def test_extra_sources_stand_beside_drawn_scenes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELLAPART_DATA", str(tmp_path))
    name = recipe_file(tmp_path, SHAPES + '[[data.extra]]\npath = "captions.jsonl"\n')
    assert "data.extra.path: no such file or folder" in refusal(name).problem
    (tmp_path / "captions.jsonl").touch()
    assert load_recipe(name).data.root == str(tmp_path)


def test_a_section_that_is_no_section_is_refused(tmp_path: Path) -> None:
    name = recipe_file(tmp_path, "captioner = 3\n" + SHAPES)
    assert "captioner: needs a name" in refusal(name).problem
    assert "is not a section" in refusal(name, "captioner.name=mrnn").problem


@pytest.mark.parametrize(
    ("recipe", "change"),
    [
        ("mrnn-shapes", "tuning.rank=3"),
        ("mrnn-shapes", "retriever.width=64"),
        ("retriever-shapes", "tuning.rank=3"),
        ("eyes-shapes", "captioner.name=mrnn"),
    ],
)
def test_a_recipe_trains_one_thing(recipe: str, change: str) -> None:
    """Else the sections of the other would be refused as unknown keys, one by one."""
    with pytest.raises(TellapartError, match="trains one of them alone"):
        load_experiment(recipe, changes=[change])


def test_the_schema_knows_presets() -> None:
    options = {
        option["properties"]["name"]["const"]: option
        for option in schema()["properties"]["captioner"]["oneOf"]
    }
    assert options["transformer"]["properties"]["preset"] == {"enum": ["small", "tiny"]}
