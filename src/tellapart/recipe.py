"""A recipe: one experiment in TOML, checked in full before torch is imported.

Precedence: defaults, then the file, then `--set section.key=value`. Paths inside `[data]` are relative to
`data.root`, which is the folder named by TELLAPART_DATA where the recipe leaves it out. A recipe with a
section `[retriever]` trains a retriever, one with `[tuning]` tunes an encoder, any other trains a
captioner, after the stages it has (`recipe_stages`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from pydantic import Field, NonNegativeInt

from tellapart.captioners.parts import CAPTIONERS
from tellapart.errors import TellapartError, UnknownName
from tellapart.objectives.parts import OBJECTIVES
from tellapart.recipe_sections import (
    DataConfig,
    DecodingConfig,
    EncoderSection,
    EncoderTrainingConfig,
    OptimiserConfig,
    RetrieverTrainingConfig,
    SourceConfig,
    TrainingConfig,
)
from tellapart.recipe_stages import (
    SHARED,
    EntropyConfig,
    Makes,
    TrainedConfig,
    check_references,
    inherited,
    is_reference,
    laid_over,
    located,
    split_stage,
    stage_tables,
    stages_named,
    without_sources,
)
from tellapart.recipe_text import RecipeText
from tellapart.registry import Config, Registry, suggest
from tellapart.retrievers.settings import RANKINGS, RETRIEVERS
from tellapart.shipped import find_shipped
from tellapart.vision.parts import find_encoder
from tellapart.vision.tuning import TuningConfig, lite_number

PARTS: Mapping[str, Registry[Any]] = {"captioner": CAPTIONERS, "objective": OBJECTIVES}
RETRIEVER_PARTS: Mapping[str, Registry[Any]] = {"retriever": RETRIEVERS, "ranking": RANKINGS}
ALL_PARTS = {**PARTS, **RETRIEVER_PARTS}
WHAT_IS_TRAINED = ("captioner", "retriever", "tuning")  # the section that says so


class Experiment(Config):
    """What every recipe holds, whatever it trains."""

    seed: NonNegativeInt = 1
    data: DataConfig = DataConfig()
    encoder: EncoderSection = EncoderSection()
    optimiser: OptimiserConfig = OptimiserConfig()

    parts: ClassVar[Mapping[str, Registry[Any]]]  # sections that name a registered part

    def part(self, section: str) -> tuple[str, Config]:
        """Name and checked settings of the captioner, objective and so on."""
        settings = dict(getattr(self, section))
        name = settings.pop("name")
        return name, self.parts[section].get(name).config.model_validate(settings)

    def located(self, stages: Path) -> Self:
        """The same where the stages have run: what they made is named by its place in that folder."""
        return type(self).model_validate(located(self.model_dump(exclude={"stages"}), stages))

    def to_toml(self) -> str:
        """Every value, defaults included, as a recipe that reads back as the same."""
        return "\n".join(_toml_lines(self.model_dump(), ())) + "\n"


class Recipe(Experiment):
    """How a captioner is trained."""

    captioner: dict[str, Any] = Field({"name": "mrnn"})
    objective: dict[str, Any] = Field({"name": "mle"})
    training: TrainingConfig = TrainingConfig()
    decoding: DecodingConfig = DecodingConfig()
    stages: dict[str, dict[str, Any]] = Field(
        {}, description="what is made first, in this order: name and settings of each"
    )

    parts = PARTS

    def stage_list(self) -> list[tuple[str, Recipe | RetrieverRecipe | EntropyConfig]]:
        """Name and checked settings of each stage."""
        return [(name, _stage(dict(table))) for name, table in self.stages.items()]

    def needless_stages(self) -> list[str]:
        """Names of the stages that nothing names, or only such stages."""
        named = stages_named(self.model_dump(exclude={"stages"}), self.stages)
        return [name for name in self.stages if name not in named]


class RetrieverRecipe(Experiment):
    """How a retriever is trained."""

    retriever: dict[str, Any] = Field({"name": "dual"})
    ranking: dict[str, Any] = Field({"name": "info-nce"})
    training: RetrieverTrainingConfig = RetrieverTrainingConfig()

    parts = RETRIEVER_PARTS


class EncoderRecipe(Experiment):
    """How an encoder is tuned to captions."""

    tuning: TuningConfig = TuningConfig()
    training: EncoderTrainingConfig = EncoderTrainingConfig()

    parts: ClassVar[Mapping[str, Registry[Any]]] = {}


AnyRecipe = Recipe | RetrieverRecipe | EncoderRecipe
TRAINS: Mapping[type[Experiment], str] = {
    Recipe: "a captioner",
    RetrieverRecipe: "a retriever",
    EncoderRecipe: "an encoder",
}


def _stage(table: dict[str, Any]) -> Recipe | RetrieverRecipe | EntropyConfig:
    if table["kind"] == "entropy":
        return EntropyConfig.model_validate(table)
    sections = {key: value for key, value in table.items() if key not in ("kind", "complete")}
    return (RetrieverRecipe if "retriever" in sections else Recipe).model_validate(sections)


def _toml_lines(table: Mapping[str, Any], at: tuple[str, ...]) -> Iterator[str]:
    """Values first, then the tables inside this one; TOML has no null, so what is None is left out."""
    for key, value in table.items():
        if value is not None and not isinstance(value, dict):
            yield f"{key} = {_toml(value)}"
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield ""
            yield f"[{'.'.join((*at, key))}]"
            yield from _toml_lines(value, (*at, key))


def _toml(value: object) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_toml(inner)}' for key, inner in value.items())} }}"
    # JSON is TOML but for two things: signs beyond 16 bits as pairs of escapes, and a bare delete sign.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def load_recipe(name: str, *, changes: Sequence[str] = ()) -> Recipe:
    """A captioner's recipe by file or built-in name, with `section.key=value` changes, checked in full."""
    recipe = load_experiment(name, changes=changes)
    if not isinstance(recipe, Recipe):
        raise TellapartError(
            f"{name}: trains {TRAINS[type(recipe)]}, not a captioner", hint="name another recipe"
        )
    return recipe


def load_experiment(name: str, *, changes: Sequence[str] = ()) -> AnyRecipe:
    """Any recipe by file or built-in name, with changes, checked before anything starts."""
    text = RecipeText.read(find_recipe(name), changes=changes)
    raw = text.values(parts=ALL_PARTS)
    stages = stage_tables(text, raw.pop("stages", {})) if _kind(raw) is Recipe else {}
    recipe = _experiment(text, dict(raw))
    filled: dict[str, dict[str, Any]] = {}
    makes: dict[str, Makes] = {}
    for number, (stage, table) in enumerate(stages.items()):
        later = list(stages)[number:]
        filled[stage], made = _filled_stage(text.inside("stages", stage), raw, table, makes, later)
        makes[stage] = made
    check_references(text, raw, makes, ())
    return recipe.model_copy(update={"stages": filled}) if filled else recipe


def _filled_stage(
    text: RecipeText,
    recipe: Mapping[str, Any],
    table: Mapping[str, Any],
    before: Mapping[str, Makes],
    later: Sequence[str],
) -> tuple[dict[str, Any], Makes]:
    """A stage with every value checked and written out, and what it makes."""
    if table.get("kind") == "entropy":
        config = text.validate(EntropyConfig, table, at=())
        check_references(text, {**table, "data": recipe.get("data", {})}, before, later)
        return {**config.model_dump(), "retriever": _where(config.retriever)}, "caption files"
    said, sections = split_stage(text, table)
    base: dict[str, Any] = {}
    if said.based_on:
        base = {key: value for key, value in _other_recipe(text, said.based_on).items() if key not in SHARED}
        base |= {key: recipe[key] for key in SHARED if key in recipe}
    elif not said.complete:
        base = inherited(recipe, for_retriever="retriever" in sections)
    whole = laid_over(without_sources(base, sections), sections, parts=ALL_PARTS)
    check_references(text, whole, before, later)
    checked = _experiment(text, whole)
    if isinstance(checked, EncoderRecipe):
        raise text.error(
            (),
            "a stage tunes no encoder",
            hint="tune it first, by a recipe of its own, and name it as encoder.name = 'tuned:FOLDER'",
        )
    kept = {"kind": "train", "complete": True, **checked.model_dump(exclude={"stages"})}
    return kept, "a retriever" if isinstance(checked, RetrieverRecipe) else "a captioner"


def _other_recipe(text: RecipeText, name: str) -> dict[str, Any]:
    try:
        values = RecipeText.read(find_recipe(name), changes=()).values(parts=())
    except UnknownName as error:
        raise text.error(("based_on",), error.problem, hint=error.hint) from error
    if "stages" in values:
        problem = f"{name} has stages of its own"
        raise text.error(("based_on",), problem, hint="write its stages before this one")
    return values


def _kind(raw: Mapping[str, Any]) -> type[AnyRecipe]:
    if "retriever" in raw:
        return RetrieverRecipe
    return EncoderRecipe if "tuning" in raw else Recipe


def _experiment(text: RecipeText, raw: dict[str, Any]) -> AnyRecipe:
    trained = [section for section in WHAT_IS_TRAINED if section in raw]
    if len(trained) > 1:
        problem = f"the recipe has a [{trained[0]}], too, and trains one of them alone"
        raise text.error((trained[1],), problem, hint="leave one of them out")
    if (kind := _kind(raw)) is not Recipe:
        return _check(text, raw, kind)
    recipe = _check(text, raw, Recipe)
    named = {key: _captioner_folder(text, recipe.training, key) for key in ("start_from", "words_of")}
    return recipe.model_copy(update={"training": recipe.training.model_copy(update=named)})


E = TypeVar("E", bound=Experiment)


def _check(text: RecipeText, raw: dict[str, Any], kind: type[E]) -> E:
    """The recipe, every value checked and filled in."""
    for section, registry in kind.parts.items():
        if section in raw:
            raw[section] = _check_part(text, section, registry, raw[section])
    recipe = text.validate(kind, raw, at=())
    encoder = _check_encoder(text, recipe, is_given="name" in raw.get("encoder", {}))
    _check_paths(text, recipe.data)
    filled: dict[str, Any] = {section: _fill(recipe, section) for section in kind.parts}
    filled["encoder"] = recipe.encoder.model_copy(update={"name": encoder})
    if recipe.data.format != "shapes" or recipe.data.extra or recipe.data.words_from:
        # The run's copy of the recipe must mean the same files from whatever folder it is read.
        root = str(recipe.data.resolve("").absolute())
        filled["data"] = recipe.data.model_copy(update={"root": root})
    return recipe.model_copy(update=filled)


def _fill(recipe: Experiment, section: str) -> dict[str, Any]:
    name, config = recipe.part(section)
    return {"name": name, **config.model_dump()}


def _check_part(text: RecipeText, section: str, registry: Registry[Any], raw: object) -> dict[str, Any]:
    """The section with its preset's settings filled in."""
    if not isinstance(raw, dict) or not isinstance(raw.get("name"), str):
        raise text.error((section,), "needs a name", hint=f"there are: {', '.join(registry.names())}")
    try:
        part = registry.get(raw["name"])
    except UnknownName as error:
        raise text.error((section, "name"), error.problem, hint=error.hint) from error
    settings = {key: value for key, value in raw.items() if key not in ("name", "preset")}
    try:
        settings = {**part.preset(str(raw.get("preset", ""))), **settings}
    except UnknownName as error:
        raise text.error((section, "preset"), error.problem, hint=error.hint) from error
    text.validate(part.config, settings, at=(section,))
    for key in getattr(part, "folders", ()):
        settings[key] = _where(settings.get(key, part.config.model_fields[key].default))
    return {"name": raw["name"], **settings}


def _where(model: str | list[str]) -> str | list[str]:
    """A folder as every folder may read it; any other name as it is."""
    if isinstance(model, list):
        return [str(_where(one)) for one in model]
    if not model:
        return model
    return str(Path(model).expanduser().absolute()) if Path(model).expanduser().is_dir() else model


def _check_encoder(text: RecipeText, recipe: Experiment, *, is_given: bool) -> str:
    """The encoder's full name: the captioner's own where it brings one, else the recipe's."""
    own_encoder = None
    if isinstance(recipe, Recipe):
        name, config = recipe.part("captioner")
        own_encoder = CAPTIONERS.get(name).own_encoder
    kind, colon, model = recipe.encoder.name.partition(":")
    named = f"{kind}{colon}{model if find_shipped(model) else _where(model)}" if model else kind
    encoder = own_encoder(config) if own_encoder else named
    if is_given and encoder != named:
        raise text.error(
            ("encoder", "name"),
            f"the captioner {name!r} looks through its own encoder, {encoder}",
            hint="leave encoder.name out",
        )
    try:
        find_encoder(encoder)
        if isinstance(recipe, EncoderRecipe):
            lite_number(encoder)
    except TellapartError as error:
        raise text.error(("encoder", "name"), error.problem, hint=error.hint) from error
    return encoder


def _captioner_folder(text: RecipeText, training: TrainingConfig, key: str) -> str:
    """The captioner that this key of [training] names, if any, as every folder may read it."""
    named: str = getattr(training, key)
    if not named or is_reference(named):
        return named
    folder = Path(named)
    if not folder.is_dir():
        if find_shipped(named):
            return named
        raise text.error(
            ("training", key),
            f"no such folder: {named}",
            hint="name a captioner's folder, a run's, or one that ships",
        )
    return str(folder.absolute())


def _check_paths(text: RecipeText, data: DataConfig) -> None:
    named: list[tuple[str, DataConfig | SourceConfig]] = [("data.extra", extra) for extra in data.extra]
    if data.format != "shapes":
        named.insert(0, ("data", data))
        if not data.path:
            raise text.error(
                ("data", "path"), "is missing", hint="name the caption file, or set format = 'shapes'"
            )
    paths = [
        ((*section.split("."), key), value)
        for section, source in named
        for key, value in (("path", source.path), ("images", source.images))
    ]
    for keys, value in [*paths, *((("data", "words_from"), value) for value in data.words_from)]:
        if value and not is_reference(value) and not data.resolve(value).exists():
            raise text.error(
                keys,
                f"no such file or folder: {data.resolve(value)}",
                hint="set data.root (or TELLAPART_DATA) to the folder it is in: --set data.root=FOLDER",
            )


def built_in_recipes() -> Sequence[str]:
    """Names of the recipes that come with the package."""
    folder = resources.files("tellapart") / "recipes"
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def find_recipe(name: str) -> Path:
    """The file of a recipe: a path, or the name of one that comes with the package."""
    if Path(name).is_file():
        return Path(name)
    if name in built_in_recipes():
        return Path(str(resources.files("tellapart") / "recipes" / f"{name}.toml"))
    raise UnknownName(
        f"no recipe file or built-in recipe is called {name!r}", hint=suggest(name, built_in_recipes())
    )


def schema(kind: type[Experiment] = Recipe) -> dict[str, Any]:
    """JSON schema of a recipe, with the settings of every registered part."""
    whole = kind.model_json_schema()
    for section, registry in kind.parts.items():
        options = []
        for name in registry.names():
            part = registry.get(name)
            option = part.config.model_json_schema()
            whole["$defs"] |= option.pop("$defs", {})  # where references look for them
            presets = {"preset": {"enum": sorted(part.presets)}} if part.presets else {}
            option["properties"] = {"name": {"const": name}, **presets, **option.get("properties", {})}
            options.append(option | {"required": ["name"]})
        whole["properties"][section] = {"oneOf": options}
    if "stages" in whole["properties"]:
        trained = TrainedConfig.model_json_schema() | {"additionalProperties": True}  # sections of a recipe
        options = [EntropyConfig.model_json_schema(), trained]
        whole["properties"]["stages"]["additionalProperties"] = {"oneOf": options}
    return whole
