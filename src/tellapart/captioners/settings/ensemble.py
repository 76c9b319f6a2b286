"""Several captioners as one: settings and names."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from tellapart.captioners.settings.kinds import CaptionerPart
from tellapart.errors import UnknownName
from tellapart.registry import Config

Mean = Literal["probabilities", "log-probabilities"]


class EnsembleConfig(Config):
    """The members, each with its name and settings, and what their mean is taken of."""

    members: list[dict[str, Any]] = Field(
        [{"name": "mrnn"}, {"name": "mrnn"}],
        min_length=1,
        description="name and settings of each captioner",
        validate_default=True,
    )
    mean: Mean = Field("probabilities", description="of what the members' mean is taken")

    @field_validator("members")
    @classmethod
    def _known_members(cls, members: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Every setting written out, so that a saved ensemble does not change when a default does."""
        return [_filled(number, dict(section)) for number, section in enumerate(members, start=1)]


def _filled(number: int, section: dict[str, Any]) -> dict[str, Any]:
    # The captioners there are include the ensemble itself: its settings cannot import them while they load.
    from tellapart.captioners.parts import CAPTIONERS

    name = section.pop("name", None)
    if not isinstance(name, str):
        raise _bad(number, "needs a name")
    try:
        config = CAPTIONERS.get(name).config.model_validate(section)
    except UnknownName as error:
        raise _bad(number, f"{error.problem}; {error.hint}") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise _bad(number, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    return {"name": name, **config.model_dump()}


def _bad(number: int, problem: str) -> PydanticCustomError:
    return PydanticCustomError(
        "bad_member", "member {number}: {problem}", {"number": number, "problem": problem}
    )


PARTS = (
    CaptionerPart(
        name="ensemble",
        summary="several captioners that share their words: the mean of what they expect next",
        config=EnsembleConfig,
        build="tellapart.captioners.ensemble:build",
        presets={
            "tiny": {
                "members": [
                    {"name": "mrnn", "embedding_one": 4, "embedding_two": 6, "multimodal": 8},
                    {"name": "mrnn", "embedding_one": 3, "embedding_two": 5, "multimodal": 7},
                ]
            }
        },
    ),
)
