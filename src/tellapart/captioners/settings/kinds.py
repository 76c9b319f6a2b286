"""What the kinds of captioners have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator
from pydantic_core import PydanticCustomError

from tellapart.registry import Config, Part


@dataclass(frozen=True, slots=True)
class CaptionerPart(Part):
    """A kind of captioner: `build(config, text=..., traits=...)` makes an untrained one."""

    # True: its checkpoint brings the tokenizer; it is built without `text` and says itself what its text is.
    own_text: bool = False
    # Settings that may name a folder: a recipe remembers where that is, whatever folder it is read from.
    folders: tuple[str, ...] = ()
    # Names the encoder that it must be used with, where that is not the recipe's to choose.
    own_encoder: Callable[[Any], str] | None = None
    # Weights of the checkpoint that it takes where none is named; 0: it has none, or nobody has counted.
    checkpoint_weights: int = 0


class LoraSettings(Config):
    """What every captioner has that can be trained by low-rank adapters."""

    lora_rank: PositiveInt = Field(8, description="train 'lora': of the adapters")
    lora_alpha: PositiveFloat = Field(16.0, description="train 'lora': adapters are scaled by alpha / rank")
    lora_dropout: float = Field(0.0, ge=0, lt=1, description="train 'lora': before the adapters")


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
