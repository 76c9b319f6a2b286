"""What the kinds of captioners have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import Field, NonNegativeInt, model_validator
from pydantic_core import PydanticCustomError

from tellapart.registry import Config, Part


@dataclass(frozen=True, slots=True)
class CaptionerPart(Part):
    """A kind of captioner: `build(config, text=..., traits=...)` makes an untrained one."""

    # True: its checkpoint brings the tokenizer; it is built without `text` and says itself what its text is.
    own_text: bool = False
    # Names the encoder that it must be used with, where that is not the recipe's to choose.
    own_encoder: Callable[[Any], str] | None = None


class GridConfig(Config):
    """What every captioner has that attends to the places of a grid."""

    concepts: NonNegativeInt = Field(
        0, description="how many names of the encoder's likeliest classes stand beside the grid, as words"
    )
    copy_words: bool = Field(
        False, description="whether it may also copy such a name straight into the caption"
    )

    @model_validator(mode="after")
    def _something_to_copy(self) -> GridConfig:
        if self.copy_words and not self.concepts:
            raise PydanticCustomError(
                "nothing_to_copy", "copy_words needs concepts to copy, but concepts is 0"
            )
        return self
