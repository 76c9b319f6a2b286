"""UNKT: settings and names."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, PositiveFloat, field_validator, model_validator
from pydantic_core import PydanticCustomError

from tellapart.objectives.schedules import ChangingShare, ScheduleConfig
from tellapart.objectives.settings.kinds import ObjectivePart
from tellapart.registry import Config, ModelName

PROGRESSIVE = ScheduleConfig(kind="progressive", start=0.0, end=1.0, epochs=5.0)  # section 3.3 and 4.1


class UNKTConfig(Config):
    """Unlikely negative knowledge transferring: away from a teacher that learnt generic captions.

    Tables 3, 6 and 8 of the paper: leave out `predictions`, `hidden` or `attention`; `targets`; a number for
    `weight`. Tables 4 and 5: a teacher that learnt the other half.
    """

    teacher: ModelName = Field(
        "", description="folder of the captioner to move away from; empty: the captioner as it starts"
    )
    weight: ChangingShare = Field(
        PROGRESSIVE,
        description="λ of Eq. 9, a number or a schedule; of a schedule, what is left out is as in the paper, "
        "and `end` caps it",
    )
    predictions: bool = Field(True, description="whether the words that the teacher expects are unlearnt")
    hidden: bool = Field(True, description="whether the hidden states of all layers move away from its own")
    attention: bool = Field(True, description="whether the attention of all layers moves away from its own")
    targets: Literal["soft", "hard", "random"] = Field(
        "soft",
        description="soft: all words, as likely as the teacher finds them; hard: its likeliest word alone; "
        "random: any word of the training captions",
    )
    temperature: PositiveFloat = Field(1.0, description="t of both softmaxes of Eq. 5")

    @field_validator("weight", mode="before")
    @classmethod
    def _as_in_the_paper(cls, weight: Any) -> Any:
        return {**PROGRESSIVE.model_dump(), **weight} if isinstance(weight, dict) else weight

    @model_validator(mode="after")
    def _something_to_transfer(self) -> UNKTConfig:
        if not (self.predictions or self.hidden or self.attention):
            raise PydanticCustomError(
                "nothing",
                "predictions, hidden and attention are all left out: that is likelihood alone, called 'mle'",
            )
        return self


PARTS: tuple[ObjectivePart, ...] = (
    ObjectivePart(
        name="unkt",
        summary="likelihood, and away from a teacher of generic captions in words, states and attention",
        config=UNKTConfig,
        build="tellapart.objectives.negative_transfer:build_unkt",
        paper="Fei and Huang 2023, UNKT, Eq. 5-10",
        captioners=("teacher",),
    ),
)
