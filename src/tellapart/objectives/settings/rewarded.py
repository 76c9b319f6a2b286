"""Training by rewards: settings and names."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, model_validator
from pydantic_core import PydanticCustomError

from tellapart.objectives.schedules import Amount
from tellapart.objectives.settings.kinds import ObjectivePart
from tellapart.objectives.settings.rewards import CiderReward, RewardConfig
from tellapart.registry import Config

SAMPLES = {"greedy": 1, "mean": 5, "running": 1}


class RewardedConfig(Config):
    """Captions are drawn; those with more reward than is usual become likelier, the others less.

    What is usual:

    greedy   the reward of the image's greedy caption (self-critical training).
    mean     the mean reward of the image's other samples.
    running  a running mean of the rewards of the steps before (REINFORCE); 0 in the first step.
    """

    rewards: list[RewardConfig] = Field(
        [CiderReward()], min_length=1, description="name, weight and settings of each; their sum counts"
    )
    baseline: Literal["greedy", "mean", "running"] = Field(
        "greedy", description="what a reward is compared with"
    )
    samples: NonNegativeInt = Field(
        0, description="captions drawn of an image; 0: five with the baseline mean, else one"
    )
    temperature: PositiveFloat = Field(1.0, description="of the draws")
    momentum: float = Field(0.9, ge=0, lt=1, description="of the running mean")
    mle_weight: Amount = Field(0.0, description="of likelihood beside it, where there are captions")

    @model_validator(mode="after")
    def _others_to_compare_with(self) -> RewardedConfig:
        if self.baseline == "mean" and self.samples == 1:
            raise PydanticCustomError(
                "samples", "samples: the baseline 'mean' is that of the other samples: draw two or more"
            )
        return self

    @property
    def drawn(self) -> int:
        """Captions drawn of an image."""
        return self.samples or SAMPLES[self.baseline]


def _judges_without_captions(config: RewardedConfig) -> bool:
    """Whether something other than the image's captions says how good a caption is."""
    return any(not isinstance(reward, CiderReward) and reward.weight > 0 for reward in config.rewards)


PARTS: tuple[ObjectivePart, ...] = (
    ObjectivePart(
        name="reward",
        summary="captions that are drawn and rewarded: self-critical training and REINFORCE",
        config=RewardedConfig,
        build="tellapart.objectives.rewarded:build_rewarded",
        paper="Rennie et al. 2017, Self-critical sequence training",
        without_captions=_judges_without_captions,
    ),
)
