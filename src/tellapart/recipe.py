"""A recipe: one experiment in TOML, checked in full before torch is imported.

Precedence: defaults, then the file, then `--set section.key=value`. Paths inside `[data]` are relative to
`data.root`, which is the folder named by TELLAPART_DATA where the recipe leaves it out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from tellapart.captioners.parts import CAPTIONERS
from tellapart.data.readers import FORMATS
from tellapart.data.text import PRESETS, TextRules
from tellapart.errors import TellapartError, UnknownName
from tellapart.objectives.parts import OBJECTIVES
from tellapart.recipe_text import RecipeText
from tellapart.registry import Config, Registry, suggest
from tellapart.vision.parts import find_encoder

DATA_FORMATS = ("auto", "shapes", *FORMATS)
PARTS: Mapping[str, Registry[Any]] = {"captioner": CAPTIONERS, "objective": OBJECTIVES}


def _one_of(value: str, known: Sequence[str]) -> str:
    if value not in known:
        raise PydanticCustomError(
            "unknown_name", "should be one of: {expected}", {"expected": ", ".join(known)}
        )
    return value


class SourceConfig(Config):
    """More captions to train on, with their pictures or without."""

    path: str = Field(description="caption file, or folder with .txt sidecars")
    images: str = Field("", description="folder of the pictures; beside the caption file if empty")
    format: str = Field("auto", json_schema_extra={"enum": ["auto", *FORMATS]})
    pictures: bool = Field(
        True, description="false: captions alone, whose nouns stand for what an encoder would have named"
    )
    per_epoch: NonNegativeInt = Field(0, description="images drawn afresh each epoch; 0: all of them")
    held_out: NonNegativeInt = Field(
        0, description="so many images are not trained on but kept as the split 'held-out'"
    )

    @field_validator("format")
    @classmethod
    def _known_format(cls, value: str) -> str:
        return _one_of(value, ("auto", *FORMATS))

    @model_validator(mode="after")
    def _pictures_to_measure_on(self) -> SourceConfig:
        if self.held_out and not self.pictures:
            raise PydanticCustomError(
                "held_out", "captions without pictures cannot be held out to measure on"
            )
        return self


class DataConfig(Config):
    """Which captioned images, and how their text is read."""

    root: str = Field("", description="folder that path and images are relative to; TELLAPART_DATA if empty")
    path: str = Field("", description="caption file, or folder with .txt sidecars")
    images: str = Field("", description="folder of the pictures; beside the caption file if empty")
    format: str = Field("auto", json_schema_extra={"enum": list(DATA_FORMATS)})
    text: str = Field(
        "mrnn",
        description="text preset, after the paper it is from",
        json_schema_extra={"enum": list(PRESETS)},
    )
    min_count: PositiveInt | None = Field(
        None, description="words rarer than this are unknown; preset's if absent"
    )
    max_words: PositiveInt | None = Field(
        None, description="captions are cut at this length; preset's if absent"
    )
    val_share: float = Field(
        0.1, gt=0, lt=1, description="share of the images to validate on, where the data set has no splits"
    )
    extra: list[SourceConfig] = Field([], description="further sources to train on")
    scenes: PositiveInt = Field(1000, description="format 'shapes': how many scenes are drawn")
    look_alikes: PositiveInt = Field(1, description="format 'shapes': size of the groups of look-alikes")

    @field_validator("format")
    @classmethod
    def _known_format(cls, value: str) -> str:
        return _one_of(value, DATA_FORMATS)

    @field_validator("text")
    @classmethod
    def _known_preset(cls, value: str) -> str:
        return _one_of(value, tuple(PRESETS))

    def rules(self) -> TextRules:
        """The text preset with the recipe's own limits."""
        own = {"min_count": self.min_count, "max_words": self.max_words}
        return PRESETS[self.text].model_copy(update={key: value for key, value in own.items() if value})

    def resolve(self, path: str) -> Path:
        """A path of this section, as a file on this machine."""
        return Path(self.root or os.environ.get("TELLAPART_DATA", ""), path)


class EncoderSection(Config):
    """Which frozen network looks at the pictures."""

    name: str = "efficientnet-lite2"


class OptimiserConfig(Config):
    """How the weights move."""

    name: Literal["adam", "adamw", "sgd"] = "adam"
    learning_rate: PositiveFloat = 1e-3
    weight_decay: NonNegativeFloat = 0.0
    momentum: float = Field(0.9, ge=0, lt=1, description="of sgd; the first beta of adam and adamw")
    beta2: float = Field(0.999, ge=0, lt=1, description="second beta of adam and adamw")
    warmup_steps: NonNegativeInt = 0
    decay: Literal["constant", "cosine"] = Field(
        "constant", description="of the learning rate after the warm-up"
    )
    clip_norm: NonNegativeFloat = Field(5.0, description="largest gradient norm; 0: no limit")


class TrainingConfig(Config):
    """How long, in which portions, and when to stop."""

    epochs: PositiveInt = 20
    images_per_batch: PositiveInt = 64
    captions_per_image: PositiveInt = Field(5, description="drawn afresh each epoch where there are more")
    evaluate_every: NonNegativeInt = Field(0, description="steps between validations; 0: once an epoch")
    log_every: PositiveInt = 20
    stop_metric: Literal["loss", "perplexity", "accuracy", "cider-d"] = Field(
        "perplexity", description="on the validation split; cider-d: of greedy captions"
    )
    patience: NonNegativeInt = Field(
        3, description="validations without a better value before stopping; 0: never"
    )
    core_minutes: NonNegativeFloat = Field(
        0.0, description="processor time to spend at most, all cores together; 0: no limit"
    )
    start_from: str = Field(
        "", description="folder of a captioner or run whose weights and words training starts from"
    )


class DecodingConfig(Config):
    """How captions are written when the trained captioner is used."""

    width: PositiveInt = Field(3, description="of the beam; 1: greedy")
    max_words: PositiveInt = 20


class Recipe(Config):
    """The whole experiment."""

    seed: NonNegativeInt = 1
    data: DataConfig = DataConfig()
    encoder: EncoderSection = EncoderSection()
    captioner: dict[str, Any] = Field({"name": "mrnn"})
    objective: dict[str, Any] = Field({"name": "mle"})
    optimiser: OptimiserConfig = OptimiserConfig()
    training: TrainingConfig = TrainingConfig()
    decoding: DecodingConfig = DecodingConfig()

    def part(self, section: str) -> tuple[str, Config]:
        """Name and checked settings of the captioner or objective."""
        settings = dict(getattr(self, section))
        name = settings.pop("name")
        return name, PARTS[section].get(name).config.model_validate(settings)

    def to_toml(self) -> str:
        """Every value, defaults included, as a recipe that reads back as the same."""
        return "\n".join(_toml_lines(self.model_dump(), ())) + "\n"


def _toml_lines(table: Mapping[str, Any], at: tuple[str, ...]) -> Iterator[str]:
    """Values first, then the tables inside this one; TOML has no null, so what is None is left out."""
    for key, value in table.items():
        if value is not None and not isinstance(value, dict):
            yield f"{key} = {_toml(value)}"
    for key, value in table.items():
        if isinstance(value, dict):
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
    """A recipe by file or built-in name, with `section.key=value` changes, checked before anything starts."""
    text = RecipeText.read(find_recipe(name), changes=changes)
    raw = text.values(parts=PARTS)
    for section, registry in PARTS.items():
        if section in raw:
            raw[section] = _check_part(text, section, registry, raw[section])
    recipe = text.validate(Recipe, raw, at=())
    encoder = _check_encoder(text, recipe, is_given="name" in raw.get("encoder", {}))
    _check_paths(text, recipe.data)
    filled: dict[str, Any] = {section: _fill(recipe, section) for section in PARTS}
    filled["encoder"] = EncoderSection(name=encoder)
    if recipe.training.start_from:
        filled["training"] = _with_start(text, recipe.training)
    if recipe.data.format != "shapes" or recipe.data.extra:
        # The run's copy of the recipe must mean the same files from whatever folder it is read.
        root = str(recipe.data.resolve("").absolute())
        filled["data"] = recipe.data.model_copy(update={"root": root})
    return recipe.model_copy(update=filled)


def _fill(recipe: Recipe, section: str) -> dict[str, Any]:
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


def _where(model: str) -> str:
    """A folder as every folder may read it; any other name as it is."""
    return str(Path(model).expanduser().absolute()) if Path(model).expanduser().is_dir() else model


def _check_encoder(text: RecipeText, recipe: Recipe, *, is_given: bool) -> str:
    """The encoder's full name: the captioner's own where it brings one, else the recipe's."""
    name, config = recipe.part("captioner")
    own_encoder = CAPTIONERS.get(name).own_encoder
    kind, colon, model = recipe.encoder.name.partition(":")
    named = f"{kind}{colon}{_where(model)}" if model else kind
    encoder = own_encoder(config) if own_encoder else named
    if is_given and encoder != named:
        raise text.error(
            ("encoder", "name"),
            f"the captioner {name!r} looks through its own encoder, {encoder}",
            hint="leave encoder.name out",
        )
    try:
        find_encoder(encoder)
    except TellapartError as error:
        raise text.error(("encoder", "name"), error.problem, hint=error.hint) from error
    return encoder


def _with_start(text: RecipeText, training: TrainingConfig) -> TrainingConfig:
    """The folder to start from, as every folder may read it."""
    folder = Path(training.start_from)
    if not folder.is_dir():
        raise text.error(
            ("training", "start_from"),
            f"no such folder: {training.start_from}",
            hint="name a captioner's folder, or a run's",
        )
    return training.model_copy(update={"start_from": str(folder.absolute())})


def _check_paths(text: RecipeText, data: DataConfig) -> None:
    named: list[tuple[str, DataConfig | SourceConfig]] = [("data.extra", extra) for extra in data.extra]
    if data.format != "shapes":
        named.insert(0, ("data", data))
        if not data.path:
            raise text.error(
                ("data", "path"), "is missing", hint="name the caption file, or set format = 'shapes'"
            )
    for section, source in named:
        for key in ("path", "images"):
            value = getattr(source, key)
            if value and not data.resolve(value).exists():
                raise text.error(
                    (*section.split("."), key),
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


def schema() -> dict[str, Any]:
    """JSON schema of a recipe, with the settings of every registered part."""
    whole = Recipe.model_json_schema()
    for section, registry in PARTS.items():
        options = []
        for name in registry.names():
            part = registry.get(name)
            option = part.config.model_json_schema()
            presets = {"preset": {"enum": sorted(part.presets)}} if part.presets else {}
            option["properties"] = {"name": {"const": name}, **presets, **option.get("properties", {})}
            options.append(option | {"required": ["name"]})
        whole["properties"][section] = {"oneOf": options}
    return whole
