"""Specificity: settings and names."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat

from tellapart.objectives.schedules import Amount
from tellapart.objectives.settings.kinds import Compat, ObjectivePart
from tellapart.registry import Config, ModelName


class SpecificityConfig(Config):
    """A caption is written in full, and a frozen retriever says how well it fits its picture."""

    loss: Literal["dp", "cos", "cdp", "ccos"] = Field(
        "cdp", description="dot product or cosine; with c against a contrastive picture"
    )
    retriever: ModelName = Field("reranker", description="name or folder of the retriever that teaches")
    share: float = Field(
        0.01, gt=0, le=1, description="cdp, ccos: of the training pictures, those most like a picture"
    )
    margin: NonNegativeFloat = Field(0.0, description="cdp, ccos: by which the own picture must be closer")
    estimator: Literal["straight-through", "gumbel"] = Field(
        "straight-through", description="gumbel: words are drawn by Gumbel noise instead of the likeliest"
    )
    temperature: PositiveFloat = Field(1.0, description="gumbel: of the probabilities that learn")
    mle_weight: Amount = Field(0.0, description="of likelihood beside it, where there are captions")
    compat: Compat = Field(
        "paper",
        description="authors: vectors of length 1, so that dp is cos; nothing learnt of end and unknown word",
    )


PARTS: tuple[ObjectivePart, ...] = (
    ObjectivePart(
        name="specificity",
        summary="captions that a frozen retriever tells their picture by",
        config=SpecificityConfig,
        build="tellapart.objectives.specificity:build_specificity",
        paper="Lindh et al. 2018, Eq. 2-5",
        retrievers=("retriever",),
        without_captions=lambda config: True,
    ),
)
