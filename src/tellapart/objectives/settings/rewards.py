"""What a caption may be rewarded for: settings, a class each."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, PositiveInt

from tellapart.registry import Config, ModelName


class CiderReward(Config):
    """CIDEr-D against the image's own captions, the end sign counting as a word.

    Without the end sign captions learn to break off ("… standing in front of a"): facts of many a program.
    """

    name: Literal["cider-d"] = "cider-d"
    weight: NonNegativeFloat = 1.0


class RetrievalReward(Config):
    """How well the caption finds its picture among the pictures most like it."""

    name: Literal["self-retrieval"] = "self-retrieval"
    weight: NonNegativeFloat = 1.0
    retriever: ModelName = Field("reranker", description="name or folder of the retriever that rewards")
    form: Literal["rank", "margin"] = Field(
        "rank", description="rank: 1 / rank; margin: the cosine less that of the closest other picture"
    )
    neighbours: PositiveInt = Field(20, description="pictures that it must be told from")


class ClipReward(Config):
    """CLIPScore: 2.5 · max(cos, 0)."""

    name: Literal["clipscore"] = "clipscore"
    weight: NonNegativeFloat = 1.0
    model: ModelName = Field(description="CLIP's folder or hub name")


RewardConfig = Annotated[CiderReward | RetrievalReward | ClipReward, Field(discriminator="name")]
