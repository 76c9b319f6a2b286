"""Stages of a recipe: what is to be made before it can be trained, and how its settings name that.

    [stages.halves]                              # the training captions, divided by retrieval entropy
    kind = "entropy"

    [stages.teacher]                             # this recipe's captioner by likelihood, on other captions
    data.path = "stage:halves/high.jsonl"

    [objective]
    name = "unkt"
    teacher = "stage:teacher"

Stages run in the order in which they stand; one that nothing names does not run. One that is trained takes
seed, data and encoder from the recipe it stands in, and the rest from the recipe that `based_on` names;
without one, captioner, optimiser, training and decoding are also those of the recipe it stands in, and the
objective is likelihood. What it sets itself goes before all that, and with a caption file of its own it
learns from no extra sources but its own. Nothing here imports torch.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from tellapart.recipe_text import Keys, RecipeText
from tellapart.registry import Config, suggest

SIGN = "stage:"
KINDS = ("train", "entropy")
HALVES = ("high.jsonl", "low.jsonl")  # captions of high and of low entropy
SHARED = ("seed", "data", "encoder")
_OWN_KEYS = ("kind", "based_on", "complete")
_RETRIEVER_KEYS = ("retriever", "rank_by", "draw_by")
Makes = Literal["a captioner", "a retriever", "caption files"]


class EntropyConfig(Config):
    """The recipe's training captions, divided into generic and specific ones (UNKT, section 3.1)."""

    kind: Literal["entropy"] = "entropy"
    retriever: str = Field(
        "reranker", description="name or folder of the retriever, or stage that trains one"
    )
    temperature: PositiveFloat = Field(0.07, description="what cosines are divided by, as in its training")
    top_n: PositiveInt | None = Field(None, description="closest pictures that take part; all if absent")


class TrainedConfig(Config):
    """What a stage that is trained says besides the sections of its recipe."""

    kind: Literal["train"] = "train"
    based_on: str = Field("", description="recipe file or built-in name; empty: the recipe it stands in")
    complete: bool = Field(False, description="whether all its settings stand here, as in a run's recipe")


def stage_tables(text: RecipeText, stages: object) -> Mapping[str, dict[str, Any]]:
    """The stages by name: tables, each with a name that is fit for a folder."""
    if not isinstance(stages, dict):
        raise text.error(("stages",), "should hold a table for each stage", hint="write [stages.NAME]")
    for name, table in stages.items():
        if not isinstance(table, dict):
            raise text.error(("stages", name), "should be a table", hint=f"write [stages.{name}]")
        if not re.fullmatch(r"\w[\w-]*", name, re.ASCII):
            raise text.error(
                ("stages", name), "a folder is to be called so", hint="take letters, digits, '-' and '_'"
            )
        kind = table.get("kind", "train")
        if kind not in KINDS:
            raise text.error(
                ("stages", name, "kind"), f"no stage is of the kind {kind!r}", hint=suggest(str(kind), KINDS)
            )
    return stages


def split_stage(text: RecipeText, table: Mapping[str, Any]) -> tuple[TrainedConfig, dict[str, Any]]:
    """What a stage that is trained says of itself, and the sections of its recipe."""
    own = {key: table[key] for key in _OWN_KEYS if key in table}
    said = text.validate(TrainedConfig, own, at=())
    return said, {key: value for key, value in table.items() if key not in _OWN_KEYS}


def laid_over(base: Mapping[str, Any], over: Mapping[str, Any], *, parts: Collection[str]) -> dict[str, Any]:
    """The base with what is set over it; a section of `parts` that gets another name loses its settings."""
    merged = dict(base)
    for key, value in over.items():
        before: Any = merged.get(key)
        goes_on = isinstance(before, dict) and isinstance(value, dict)
        if goes_on and key in parts:
            goes_on = value.get("name", before.get("name")) == before.get("name")
        merged[key] = laid_over(before, value, parts=()) if goes_on else value
    return merged


def inherited(recipe: Mapping[str, Any], *, for_retriever: bool) -> dict[str, Any]:
    """What a stage that is based on no other recipe takes from the one it stands in."""
    if for_retriever:
        return {key: recipe[key] for key in (*SHARED, "optimiser") if key in recipe}
    base = {key: value for key, value in recipe.items() if key not in ("objective", "stages")}
    if isinstance(base.get("training"), dict):
        base["training"] = {
            key: value
            for key, value in base["training"].items()
            # What it starts from, or has its words from, may be this very stage.
            if key != "start_from" and not (key == "words_of" and is_reference(str(value)))
        }
    return base


def without_sources(base: Mapping[str, Any], sections: Mapping[str, Any]) -> dict[str, Any]:
    """The base without its extra sources where a stage has a caption file of its own: halves hold them."""
    if "path" not in sections.get("data", {}) or not isinstance(base.get("data"), dict):
        return dict(base)
    return {**base, "data": {key: value for key, value in base["data"].items() if key != "extra"}}


def check_references(
    text: RecipeText, values: Mapping[str, Any], before: Mapping[str, Makes], later: Collection[str]
) -> None:
    """Every "stage:NAME" must be of a stage that comes before, and that makes what is wanted.

    Args:
        text: to complain with.
        values: the settings to look through.
        before: what each stage that comes before makes.
        later: the names of this stage and of those that come after it.
    """
    for keys, value in _strings(values, ()):
        if not is_reference(value):
            continue
        name, inside = split_reference(value)
        if name in later:
            raise text.error(
                keys, f"the stage {name!r} is not over yet", hint=f"move [stages.{name}] before what names it"
            )
        if name not in before:
            raise text.error(keys, f"no stage is called {name!r}", hint=suggest(name, list(before)))
        wanted = wanted_by(keys)
        if before[name] != wanted:
            raise text.error(
                keys,
                f"{wanted} is wanted, and the stage {name!r} makes {before[name]}",
                hint=suggest(name, [other for other, makes in before.items() if makes == wanted]),
            )
        files = HALVES if wanted == "caption files" else ("",)
        if inside not in files:
            names = " or ".join(f"{SIGN}{name}/{file}".rstrip("/") for file in files)
            raise text.error(keys, f"the stage {name!r} makes no {inside!r}", hint=f"write {names}")


def wanted_by(keys: Keys) -> Makes:
    """What a setting names."""
    if keys[0] == "data":
        return "caption files"
    return "a retriever" if keys[-1] in _RETRIEVER_KEYS else "a captioner"


def is_reference(value: str) -> bool:
    """Whether a setting names what a stage makes."""
    return value.startswith(SIGN)


def split_reference(value: str) -> tuple[str, str]:
    """The stage's name, and what is meant of it: "" for all."""
    name, _, inside = value.removeprefix(SIGN).partition("/")
    return name, inside


def _strings(value: object, at: Keys) -> Iterator[tuple[Keys, str]]:
    """All texts among the settings, with the keys they stand under."""
    if isinstance(value, str):
        yield at, value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item, at)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _strings(inner, (*at, key))


def references(values: Mapping[str, Any]) -> list[Keys]:
    """The keys of all settings that name something a stage makes."""
    return [keys for keys, value in _strings(values, ()) if is_reference(value)]


def stages_named(recipe: Mapping[str, Any], stages: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """The stages that a recipe names, and those that these name in turn."""
    named: set[str] = set()
    # A stage is named by what comes after it alone.
    for name, settings in (("", recipe), *reversed(list(stages.items()))):
        if name in named or not name:
            named |= {split_reference(value)[0] for _, value in _strings(settings, ()) if is_reference(value)}
    return named


def without_references(value: Any) -> Any:
    """The same settings as if those that name what a stage makes had been left empty."""
    if isinstance(value, str):
        return "" if is_reference(value) else value
    if isinstance(value, list | tuple):
        kept = (item for item in value if not (isinstance(item, str) and is_reference(item)))
        return type(value)(without_references(item) for item in kept)
    if isinstance(value, dict):
        return {key: without_references(inner) for key, inner in value.items()}
    return value


def located(value: Any, stages: Path) -> Any:
    """The same settings with "stage:NAME" replaced by where it lies, `stages` being the folder of all."""
    if isinstance(value, str) and is_reference(value):
        return str(stages.absolute().joinpath(*split_reference(value)))
    if isinstance(value, list | tuple):
        return type(value)(located(item, stages) for item in value)
    if isinstance(value, dict):
        return {key: located(inner, stages) for key, inner in value.items()}
    return value
