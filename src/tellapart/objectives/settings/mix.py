"""Several objectives as one: settings and name."""

from __future__ import annotations

from typing import Any

from pydantic import Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from tellapart.errors import UnknownName
from tellapart.objectives.schedules import Amount
from tellapart.objectives.settings.kinds import ObjectivePart
from tellapart.registry import Config


class MixConfig(Config):
    """The objectives, each with its name, its settings and its weight."""

    parts: list[dict[str, Any]] = Field(
        [{"name": "mle"}],
        min_length=1,
        description="name, settings and weight of each; a weight is a number or a schedule",
        validate_default=True,
    )

    @field_validator("parts")
    @classmethod
    def _known_parts(cls, parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Every setting written out, as in a recipe's own sections."""
        return [_filled(number, dict(section)) for number, section in enumerate(parts, start=1)]


class WeightConfig(Config):
    """The weight of one part of a mixture."""

    weight: Amount = 1.0


def _filled(number: int, section: dict[str, Any]) -> dict[str, Any]:
    # The objectives there are include the mixture itself: its settings cannot import them while they load.
    from tellapart.objectives.parts import OBJECTIVES

    name, weight = section.pop("name", None), section.pop("weight", 1.0)
    if not isinstance(name, str):
        raise _bad(number, "needs a name")
    try:
        config = OBJECTIVES.get(name).config.model_validate(section)
        checked = WeightConfig(weight=weight)
    except UnknownName as error:
        raise _bad(number, f"{error.problem}; {error.hint}") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise _bad(number, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    return {"name": name, **checked.model_dump(), **config.model_dump()}


def _bad(number: int, problem: str) -> PydanticCustomError:
    return PydanticCustomError("bad_part", "part {number}: {problem}", {"number": number, "problem": problem})


def _any_without_captions(config: MixConfig) -> bool:
    """Whether one of the parts learns from photographs without captions: that is enough."""
    from tellapart.objectives.parts import OBJECTIVES

    return any(
        part.without_captions(part.config.model_validate(settings))
        for section in config.parts
        for settings in [{key: value for key, value in section.items() if key not in ("name", "weight")}]
        for part in [OBJECTIVES.get(section["name"])]
    )


PARTS: tuple[ObjectivePart, ...] = (
    ObjectivePart(
        name="mix",
        summary="several objectives, each weighed and on a schedule of its own",
        config=MixConfig,
        build="tellapart.objectives.mixing:build_mix",
        without_captions=_any_without_captions,
    ),
)
