"""Weights that change while training goes on. Nothing here imports torch: recipes are checked with it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, NonNegativeFloat
from pydantic_core import PydanticCustomError

from tellapart.registry import Config

Weight = Callable[[int], float]  # of a step, counted from 0


@dataclass(frozen=True, slots=True)
class Pace:
    """How many steps an epoch has, and how many there are in all."""

    steps_per_epoch: int
    steps: int


class ScheduleConfig(Config):
    """How a weight goes from one value to another.

    constant     `start` throughout.
    linear       from `start` to `end` in `epochs` epochs (0: all), `end` from then on.
    cosine       the same along half a cosine.
    progressive  UNKT, section 3.3: linearly from `start` to `end` in `epochs` epochs, and then down by
                 Eq. 10, end · ½(1 + cos(step/T · π/2)), T being the steps that are left; as printed it ends
                 at half of `end`. `half_cosine` takes π for π/2, which ends at 0.
    """

    kind: Literal["constant", "linear", "cosine", "progressive"] = "constant"
    start: NonNegativeFloat = 0.0
    end: NonNegativeFloat = 1.0
    epochs: NonNegativeFloat = Field(0.0, description="how long it takes; 0: until the end of training")
    half_cosine: bool = Field(False, description="progressive: down to 0 instead of half")


Amount = Annotated[float, Field(ge=0)] | ScheduleConfig  # as recipes write a weight
Share = Annotated[float, Field(ge=0, le=1)]  # λ of two terms that share a weight of 1


def _share(amount: float | ScheduleConfig) -> float | ScheduleConfig:
    ends = (amount.start, amount.end) if isinstance(amount, ScheduleConfig) else (amount,)
    for value in ends:
        if not 0 <= value <= 1:
            raise PydanticCustomError("share", "λ should be between 0 and 1, not {value}", {"value": value})
    return amount


ChangingShare = Annotated[float | ScheduleConfig, AfterValidator(_share)]  # the same, or a schedule of it


def build_weight(amount: Amount, pace: Pace) -> Weight:
    """The weight of each step."""
    if not isinstance(amount, ScheduleConfig):
        return lambda step: amount
    if amount.kind == "constant":
        return lambda step: amount.start
    whole = round(amount.epochs * pace.steps_per_epoch) or pace.steps
    return lambda step: _at(amount, step, whole, pace)


def _at(amount: ScheduleConfig, step: int, whole: int, pace: Pace) -> float:
    done = min(1.0, step / whole)
    if amount.kind == "progressive" and step > whole:
        left = max(1, pace.steps - whole)
        turn = math.pi if amount.half_cosine else math.pi / 2
        return amount.end * 0.5 * (1 + math.cos(min(1.0, (step - whole) / left) * turn))
    if amount.kind == "cosine":
        done = 0.5 * (1 - math.cos(math.pi * done))
    return amount.start + (amount.end - amount.start) * done
