"""Settings of the retrievers that can be trained, and of what trains them: light, to check recipes by."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator
from pydantic_core import PydanticCustomError

from tellapart.registry import Config, Part, Registry

GLOVE_WIDTH = 50


class DualConfig(Config):
    """Sizes as in Lindh et al.: InferSent's sentence encoder, both sides projected to 1,000 numbers."""

    width: PositiveInt = Field(1000, description="numbers of a vector")
    sentences: Literal["bilstm", "minilm"] = Field(
        "bilstm", description="what reads a sentence: InferSent's BiLSTM with max pooling, or MiniLM, frozen"
    )
    word_vectors: Literal["learned", "glove"] = Field(
        "glove", description="of the BiLSTM: learned with it, or GloVe's, which stay as they are"
    )
    word_width: PositiveInt = Field(GLOVE_WIDTH, description="numbers of a word vector; 50 of GloVe")
    more_words: NonNegativeInt = Field(
        0, description="with GloVe: so many of its most frequent words are known beside those of the captions"
    )
    hidden: PositiveInt = Field(2048, description="units of the BiLSTM in each direction")
    classes: bool = Field(False, description="also look at the probabilities of the encoder's named classes")
    dropout: float = Field(
        0.0, ge=0, lt=1, description="of the features, the word vectors and the sentence's state"
    )

    @model_validator(mode="after")
    def _width_of_glove(self) -> DualConfig:
        if self.word_vectors == "glove" and self.word_width != GLOVE_WIDTH:
            raise PydanticCustomError("word_width", "GloVe's vectors have 50 numbers")
        if self.word_vectors == "learned" and self.more_words:
            raise PydanticCustomError("more_words", "words beyond those of the captions need GloVe")
        return self


class PairwiseConfig(Config):
    """SentEval's pairwise ranking."""

    margin: NonNegativeFloat = 0.2
    contrasts: PositiveInt = Field(
        30, description="other pictures, and other sentences, each pair is held against"
    )


class HardestConfig(Config):
    """Only the closest wrong partner counts."""

    margin: NonNegativeFloat = 0.2


class InfoNceConfig(Config):
    """Which of the batch belongs to it, both ways."""

    temperature: PositiveFloat = 0.07


RETRIEVERS: Registry[Part] = Registry(
    "retriever",
    [
        Part(
            name="dual",
            summary="picture and sentence, each by a network of its own, on one unit sphere",
            config=DualConfig,
            build="tellapart.retrievers.dual.network:build",
            paper="Conneau et al. 2017, InferSent; Lindh et al. 2018, section 3.2",
            presets={
                "tiny": {"width": 8, "hidden": 6, "word_vectors": "learned", "word_width": 7},
                "small": {"width": 256, "hidden": 256, "dropout": 0.3, "classes": True},
            },
        )
    ],
    group="tellapart.retrievers",
    holds=Part,
)

RANKINGS: Registry[Part] = Registry(
    "ranking loss",
    [
        Part(
            name="pairwise",
            summary="a pair must be closer by a margin than each with 30 others",
            config=PairwiseConfig,
            build="tellapart.retrievers.ranking:build_pairwise",
            paper="Conneau & Kiela 2018, SentEval, image-caption retrieval",
        ),
        Part(
            name="hardest",
            summary="a pair must be closer by a margin than each with the closest other",
            config=HardestConfig,
            build="tellapart.retrievers.ranking:build_hardest",
            paper="Faghri et al. 2018, VSE++, Eq. 6",
        ),
        Part(
            name="info-nce",
            summary="each must choose its partner among all of the batch, both ways",
            config=InfoNceConfig,
            build="tellapart.retrievers.ranking:build_info_nce",
            paper="van den Oord et al. 2018, Eq. 4; Radford et al. 2021, CLIP, Figure 3",
        ),
    ],
    group="tellapart.rankings",
    holds=Part,
)
