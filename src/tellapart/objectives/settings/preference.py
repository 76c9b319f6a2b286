"""Direct preference optimisation: settings and names."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt

from tellapart.objectives.schedules import Amount
from tellapart.objectives.settings.kinds import ObjectivePart
from tellapart.registry import Config, ModelName


class DPOConfig(Config):
    """Preferences by self-retrieval: of the captions drawn, the one that finds its picture wins."""

    reference: ModelName = Field(
        "", description="name or folder of a captioner with the same words; empty: a copy of the start"
    )
    beta: PositiveFloat = Field(0.1, description="β, how dear it is to leave the reference")
    samples: int = Field(8, ge=2, description="captions drawn of each image")
    temperature: PositiveFloat = Field(1.0, description="of the drawing")
    neighbours: PositiveInt = Field(20, description="pictures that the own one must be told from")
    retriever: ModelName = Field("reranker", description="name or folder of the retriever that prefers")
    prefer: Literal["rank", "margin"] = Field(
        "rank", description="by the own picture's rank, or by its cosine less that of the closest other"
    )
    mle_weight: Amount = Field(0.0, description="weight of the likelihood of people's captions")


PARTS: tuple[ObjectivePart, ...] = (
    ObjectivePart(
        name="dpo",
        summary="captions that find their picture preferred to those that do not",
        config=DPOConfig,
        build="tellapart.objectives.preference:build_dpo",
        paper="Rafailov et al. 2023, Direct Preference Optimization, Eq. 7, on pairs made by self-retrieval",
        captioners=("reference",),
        retrievers=("retriever",),
    ),
)
