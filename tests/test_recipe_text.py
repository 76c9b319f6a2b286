"""Whatever is wrong with the text of a recipe is said with the key, the line and the cure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tellapart.errors import TellapartError
from tellapart.recipe import load_recipe

SHAPES = '[data]\nformat = "shapes"\n'


def recipe_file(folder: Path, text: str | bytes) -> str:
    file = folder / "mine.toml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(file)


def refusal(name: str, *changes: str) -> TellapartError:
    with pytest.raises(TellapartError) as caught:
        load_recipe(name, changes=changes)
    assert "\n" not in caught.value.problem + caught.value.hint
    return caught.value


BAD: Mapping[str, tuple[str, str, str]] = {
    "misspelt key": (
        "[training]\nepoch = 3",
        ":4: training.epoch: unknown key 'epoch'",
        "did you mean 'epochs'?",
    ),
    "misspelt section": (
        "[trainig]\nepochs = 3",
        ":3: trainig: unknown key 'trainig'",
        "did you mean 'training'?",
    ),
    "misspelt key of a part": (
        '[captioner]\nname = "mrnn"\n\n# a comment\ndropot = 0.5',
        ":7: captioner.dropot: unknown key 'dropot'",
        "did you mean 'dropout'?",
    ),
    "key of another part": (
        '[objective]\nname = "mle"\nl2 = 1.0',
        ":5: objective.l2: unknown key 'l2'",
        "there are: label_smoothing, ",
    ),
    "dotted key": ("training.epoch = 3", ":3: data.training: unknown key 'training'", "there are: "),
    "table of its own": ("[training.epoch]\nx = 3", ":3: training.epoch: unknown key 'epoch'", "'epochs'"),
    "inline table": (
        "[training]\nepochs = {x = 3}",
        ":4: training.epochs: input should be a valid int",
        "schema",
    ),
    "words for a number": (
        '[training]\nepochs = "many"',
        ":4: training.epochs: input should be a valid integer, got 'm",
        "'tellapart recipe schema' lists",
    ),
    "number for a text": (
        "[encoder]\nname = 3",
        ":4: encoder.name: input should be a valid string, got 3",
        "schema",
    ),
    "list for a number": (
        "[decoding]\nwidth = []",
        ":4: decoding.width: input should be a valid int",
        "schema",
    ),
    "out of range": (
        '[captioner]\nname = "mrnn"\ndropout = 1',
        ":5: captioner.dropout: input should be less",
        "schema",
    ),
    "zero": ("[decoding]\nwidth = 0", ":4: decoding.width: input should be greater than 0, got 0", "schema"),
    "endless": (
        "[optimiser]\nclip_norm = inf",
        ":4: optimiser.clip_norm: input should be a finite number",
        "schema",
    ),
    "no choice": (
        '[optimiser]\nname = "adma"',
        ":4: optimiser.name: input should be 'adam', 'adamw' or 'sgd', got 'adma'",
        "did you mean 'adam'?",
    ),
    "captioner": ('[captioner]\nname = "mrn"', ":4: captioner.name: no captioner is called 'mrn'", "'mrnn'"),
    "objective": ('[objective]\nname = "mel"', ":4: objective.name: no objective is called 'mel'", "'mle'"),
    "encoder": (
        '[encoder]\nname = "efficientnet-lit2"',
        ":4: encoder.name: no encoder is called 'efficientnet-lit2'",
        "'efficientnet-lite2'",
    ),
    "half an encoder": (
        '[encoder]\nname = "timm"',
        ":4: encoder.name: 'timm' is not the full name",
        "timm:MODEL",
    ),
    "captioner without name": ("[captioner]\ndropout = 0.5", ":3: captioner: needs a name", "mrnn"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_is_wrong_is_said_with_key_line_and_cure(kind: str, tmp_path: Path) -> None:
    text, said, advised = BAD[kind]
    name = recipe_file(tmp_path, SHAPES + text + "\n")
    error = refusal(name)
    assert error.problem.startswith(name + said)
    assert advised in error.hint


@pytest.mark.parametrize(
    ("change", "said", "advised"),
    [
        ("training.epoch=3", "--set training.epoch: unknown key 'epoch'", "did you mean 'epochs'?"),
        ("traning.epochs=3", "--set traning: unknown key 'traning'", "did you mean 'training'?"),
        ("training.epochs=many", "--set training.epochs: input should be a valid integer", "schema"),
        ("training.epochs", "--set training.epochs: not of the form section.key=value", "training.epochs=5"),
        ("=3", "--set =3: not of the form section.key=value", "training.epochs=5"),
        ("seed.deep=3", "--set seed.deep: 'seed' is not a section", "schema"),
        ("training=3", "--set training: input should be a valid dictionary", "schema"),
        ("captioner.name=mrn", "--set captioner.name: no captioner is called 'mrn'", "'mrnn'"),
        ("encoder.name=patchs", "--set encoder.name: no encoder is called 'patchs'", "'patches'"),
        ("captioner=mrnn", "--set captioner: needs a name", "mrnn"),
    ],
)
def test_what_is_wrong_with_a_change_is_said_of_the_change(
    change: str, said: str, advised: str, tmp_path: Path
) -> None:
    error = refusal(recipe_file(tmp_path, "seed = 1\n" + SHAPES), change)
    assert error.problem.startswith(said)
    assert advised in error.hint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("seed = = 3", "not TOML: Invalid value (at line 1, column 8)"),
        ("[data\nseed = 3", "not TOML: "),
        ("seed = 1\nseed = 2", "not TOML: "),
        (b'path = "caf\xe9"', "cannot be read ('utf-8' codec can't decode"),
    ],
)
def test_what_is_no_toml_is_refused(text: str | bytes, said: str, tmp_path: Path) -> None:
    name = recipe_file(tmp_path, text)
    assert refusal(name).problem.startswith(f"{name}: {said}")
