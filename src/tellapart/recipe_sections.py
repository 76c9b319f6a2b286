"""The sections of a recipe, each checked by itself."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from tellapart.data.readers import FORMATS
from tellapart.data.text import PRESETS, TextRules
from tellapart.registry import Config, ModelName

DATA_FORMATS = ("auto", "shapes", *FORMATS)


def _one_of(value: str, known: Sequence[str]) -> str:
    if value not in known:
        raise PydanticCustomError(
            "unknown_name", "should be one of: {expected}", {"expected": ", ".join(known)}
        )
    return value


class SourceConfig(Config):
    """More captions to train on, with their pictures or without; or pictures without captions."""

    path: str = Field(
        description="caption file, or folder with .txt sidecars; without captions, folder of photographs"
    )
    images: str = Field("", description="folder of the pictures; beside the caption file if empty")
    format: str = Field("auto", json_schema_extra={"enum": ["auto", *FORMATS]})
    captions: bool = Field(
        True, description="false: photographs alone, for objectives that need no captions of them"
    )
    pictures: bool = Field(
        True, description="false: captions alone, whose nouns stand for what an encoder would have named"
    )
    per_epoch: NonNegativeInt = Field(0, description="images drawn afresh each epoch; 0: all of them")
    held_out: NonNegativeInt = Field(
        0, description="so many images are not trained on but kept as the split 'held-out'"
    )

    @field_validator("format")
    @classmethod
    def _known_format(cls, value: str) -> str:
        return _one_of(value, ("auto", *FORMATS))

    @model_validator(mode="after")
    def _pictures_to_measure_on(self) -> SourceConfig:
        if self.held_out and not self.pictures:
            raise PydanticCustomError(
                "held_out", "captions without pictures cannot be held out to measure on"
            )
        return self

    @model_validator(mode="after")
    def _photographs_alone(self) -> SourceConfig:
        if self.captions:
            return self
        if self.held_out:
            raise PydanticCustomError(
                "held_out", "photographs without captions cannot be held out to measure on"
            )
        if not self.pictures:
            raise PydanticCustomError("captions", "neither captions nor pictures: there is nothing to learn")
        if self.images or self.format != "auto":
            raise PydanticCustomError(
                "captions", "of photographs without captions path is the folder: leave out images and format"
            )
        return self


class DataConfig(Config):
    """Which captioned images, and how their text is read."""

    root: str = Field("", description="folder that path and images are relative to; TELLAPART_DATA if empty")
    path: str = Field("", description="caption file, or folder with .txt sidecars")
    images: str = Field("", description="folder of the pictures; beside the caption file if empty")
    format: str = Field("auto", json_schema_extra={"enum": list(DATA_FORMATS)})
    text: str = Field(
        "mrnn",
        description="text preset, after the paper it is from",
        json_schema_extra={"enum": list(PRESETS)},
    )
    min_count: PositiveInt | None = Field(
        None, description="words rarer than this are unknown; preset's if absent"
    )
    max_words: PositiveInt | None = Field(
        None, description="captions are cut at this length; preset's if absent"
    )
    val_share: float = Field(
        0.1, gt=0, lt=1, description="share of the images to validate on, where the data set has no splits"
    )
    extra: list[SourceConfig] = Field([], description="further sources to train on")
    words_from: list[str] = Field(
        [], description="caption files whose training captions say which words are known; if none, its own"
    )
    scenes: PositiveInt = Field(1000, description="format 'shapes': how many scenes are drawn")
    look_alikes: PositiveInt = Field(1, description="format 'shapes': size of the groups of look-alikes")

    @field_validator("format")
    @classmethod
    def _known_format(cls, value: str) -> str:
        return _one_of(value, DATA_FORMATS)

    @field_validator("text")
    @classmethod
    def _known_preset(cls, value: str) -> str:
        return _one_of(value, tuple(PRESETS))

    def rules(self) -> TextRules:
        """The text preset with the recipe's own limits."""
        own = {"min_count": self.min_count, "max_words": self.max_words}
        return PRESETS[self.text].model_copy(update={key: value for key, value in own.items() if value})

    def resolve(self, path: str) -> Path:
        """A path of this section, as a file on this machine."""
        return Path(self.root or os.environ.get("TELLAPART_DATA", ""), path)


class EncoderSection(Config):
    """Which network looks at the pictures, frozen, unless it is what the recipe tunes."""

    name: str = "efficientnet-lite2"
    views: PositiveInt = Field(
        1,
        description="of each photograph to train on, one drawn an epoch: the whole, its mirror image, parts, "
        "mirrored parts; what is computed once, such as a reference's likelihoods, is of the whole. Captions "
        "that tell left from right are wrong of mirror images",
    )


class OptimiserConfig(Config):
    """How the weights move."""

    name: Literal["adam", "adamw", "sgd"] = "adam"
    learning_rate: PositiveFloat = 1e-3
    weight_decay: NonNegativeFloat = 0.0
    momentum: float = Field(0.9, ge=0, lt=1, description="of sgd; the first beta of adam and adamw")
    beta2: float = Field(0.999, ge=0, lt=1, description="second beta of adam and adamw")
    warmup_steps: NonNegativeInt = 0
    decay: Literal["constant", "cosine"] = Field(
        "constant", description="of the learning rate after the warm-up"
    )
    clip_norm: NonNegativeFloat = Field(5.0, description="largest gradient norm; 0: no limit")


class LoopConfig(Config):
    """How long to train, in which portions, and when to stop, whatever is trained."""

    epochs: PositiveInt = 20
    evaluate_every: NonNegativeInt = Field(0, description="steps between validations; 0: once an epoch")
    log_every: PositiveInt = 20
    patience: NonNegativeInt = Field(
        3, description="validations without a better value before stopping; 0: never"
    )
    keep: Literal["best", "last"] = Field(
        "best", description="which validation's weights are kept: the best by stop_metric, or the last"
    )
    core_minutes: NonNegativeFloat = Field(
        0.0, description="processor time to spend at most, all cores together; 0: no limit"
    )
    precision: Literal["single", "fast", "bf16"] = Field(
        "single",
        description="of a training step; weights have 32 bits; fast: matrix products in 16 bits where the "
        "processor knows how, all else in 32; bf16: whatever torch computes in 16 bits",
    )
    average: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="share that stays of the mean of the weights at each step, 0.999 say; the mean is what "
        "is validated and kept; 0: the last weights are",
    )


class TrainingConfig(LoopConfig):
    """How a captioner is trained."""

    images_per_batch: PositiveInt = 64
    captions_per_image: PositiveInt = Field(5, description="drawn afresh each epoch where there are more")
    caption_draw: Literal["uniform", "distinctive"] = Field(
        "uniform", description="distinctive: captions that fit few other pictures are drawn more often"
    )
    draw_by: ModelName = Field(
        "reranker", description="distinctive: name or folder of the retriever that tells"
    )
    draw_temperature: PositiveFloat = Field(
        0.07, description="distinctive: of the softmax over pictures whose entropy is measured"
    )
    draw_spread: PositiveFloat = Field(
        1.0, description="distinctive: τ of exp(-entropy/τ), by which captions are drawn"
    )
    stop_metric: Literal["loss", "perplexity", "accuracy", "cider-d", "mean-rank"] = Field(
        "perplexity",
        description="on the validation split; cider-d: of greedy captions; mean-rank: of the own picture "
        "among all those of the split, by greedy captions",
    )
    rank_by: ModelName = Field(
        "reranker", description="stop_metric mean-rank: name or folder of the retriever"
    )
    portions: PositiveInt = Field(
        1,
        description="parts that a batch is computed in, one after the other; dropout aside, it is the same",
    )
    start_from: str = Field(
        "", description="folder of a captioner or run whose weights and words training starts from"
    )
    words_of: str = Field(
        "",
        description="folder of a captioner or run whose words are taken, so that both can be joined or learn "
        "from one another; start_from brings its own",
    )


class RetrieverTrainingConfig(LoopConfig):
    """How a retriever is trained: on batches of pictures, each with one of its captions."""

    images_per_batch: int = Field(128, ge=2, description="of which each pair must be told from all others")
    passes: PositiveInt = Field(
        1, description="times that an epoch goes through the pictures, each with another caption"
    )
    half: Literal["", "first", "second"] = Field(
        "", description="train on one half of the pictures, so that two retrievers share none"
    )
    stop_metric: Literal["loss", "recall"] = Field(
        "recall", description="on the validation split; recall: the sum of R@1, 5 and 10 both ways"
    )


class EncoderTrainingConfig(LoopConfig):
    """How an encoder is tuned."""

    images_per_batch: PositiveInt = 32
    stop_metric: Literal["loss", "precision"] = Field(
        "precision", description="on the validation split; precision: of words, the average, the mean of all"
    )


class DecodingConfig(Config):
    """How captions are written when the trained captioner is used."""

    width: PositiveInt = Field(3, description="of the beam; 1: greedy")
    max_words: PositiveInt = 20
    length_penalty: NonNegativeFloat = Field(
        0.0, description="power of the length by which a beam divides log-probabilities; 0: the likeliest"
    )
    repeats: bool = Field(
        True, description="whether a caption may say a word twice, function words aside; validation's may"
    )
