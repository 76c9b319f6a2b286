"""Maximum likelihood and its relatives: settings and names."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, field_validator, model_validator
from pydantic_core import PydanticCustomError

from tellapart.objectives.schedules import Amount, ScheduleConfig, Share
from tellapart.objectives.settings.kinds import ObjectivePart
from tellapart.registry import Config, ModelName


class MLEConfig(Config):
    """Maximum likelihood; all that it may be varied by is off unless set.

    With `caption_weights = "cider-btw"` a caption counts the less, the better it would fit other images:
    λ_w - α_w·v/max(v), v being its CIDErBtw and the maximum that of its image's captions (Wang et al. 2020).
    Their λ_w and α_w are not known to us; by the defaults weights lie between ¾ and 1½.
    """

    label_smoothing: float = Field(0.0, ge=0, lt=1, description="weight that all words share")
    word_dropout: Amount = Field(
        0.0,
        description="share of the words read, in training, that the unknown word stands for; or a schedule",
    )
    caption_weights: Literal["", "cider-btw"] = Field(
        "", description="cider-btw: captions that would fit other images as well count less"
    )
    neighbours: PositiveInt = Field(5, description="images most like its own that a caption is held against")
    weight_most: PositiveFloat = Field(1.5, description="λ_w, weight of a caption that fits no neighbour")
    weight_fall: NonNegativeFloat = Field(0.75, description="α_w, what that falls by at the most")

    @field_validator("word_dropout")
    @classmethod
    def _a_share(cls, value: Amount) -> Amount:
        highest = max(value.start, value.end) if isinstance(value, ScheduleConfig) else value
        if highest > 1:
            raise PydanticCustomError("not_a_share", "is a share of all words: 1 at the most")
        return value

    @model_validator(mode="after")
    def _no_negative_weight(self) -> MLEConfig:
        if self.weight_fall > self.weight_most:
            raise PydanticCustomError("negative_weight", "weight_fall is larger than weight_most")
        return self


class MRNNCostConfig(Config):
    """The cost of m-RNN."""

    l2: float = Field(1e-7, ge=0, description="λ_θ, the weight of the squared norm of all parameters")


class UnlikelihoodConfig(Config):
    """Likelihood of the labels, and a penalty on words that are not to be said."""

    candidates: Literal["previous", "frequent"] = Field(
        "previous",
        description="words of the caption so far, or the commonest of all captions; never the label",
    )
    frequent: PositiveInt = Field(50, description="how many of the commonest words")
    weight: Amount = Field(1.0, description="of the penalty, beside a likelihood of weight 1; or a schedule")


class DistillationConfig(Config):
    """Likelihood of the labels, and agreement with teachers whose probabilities are averaged."""

    teachers: list[ModelName] = Field(
        [], description="captioners by name or folder; none: the captioner's own start"
    )
    temperature: PositiveFloat = Field(1.0, description="softens teachers and student alike")
    mle_share: Share = Field(0.5, description="λ of λ·MLE + (1-λ)·distillation")


PARTS: tuple[ObjectivePart, ...] = (
    ObjectivePart(
        name="mle",
        summary="mean negative log-likelihood a token, in nats",
        config=MLEConfig,
        build="tellapart.objectives.likelihood:build_mle",
    ),
    ObjectivePart(
        name="mrnn-cost",
        summary="mean negative log2-likelihood a token, plus a weighed squared norm of the parameters",
        config=MRNNCostConfig,
        build="tellapart.objectives.likelihood:build_mrnn_cost",
        paper="Mao et al. 2015, m-RNN, Eq. 6",
    ),
    ObjectivePart(
        name="unlikelihood",
        summary="likelihood, with a penalty on words said before or said too often",
        config=UnlikelihoodConfig,
        build="tellapart.objectives.likelihood:build_unlikelihood",
        paper="Welleck et al. 2020; Fei & Huang 2023, UNKT, Eq. 2",
    ),
    ObjectivePart(
        name="distillation",
        summary="likelihood, with agreement with a teacher or the mean of several",
        config=DistillationConfig,
        build="tellapart.objectives.distilling:build_distillation",
        paper="Hinton et al. 2015; Fei & Huang 2023, UNKT, Eq. 4",
        captioners=("teachers",),
    ),
)
