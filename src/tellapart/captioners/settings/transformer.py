"""Transformer captioners: settings and names."""

from __future__ import annotations

from pydantic import Field, PositiveInt, model_validator
from pydantic_core import PydanticCustomError

from tellapart.captioners.settings.kinds import CaptionerPart, GridConfig


class TransformerSizes(GridConfig):
    """What both Transformers have; the defaults are those of their papers."""

    width: PositiveInt = Field(512, description="of every layer's input and output")
    heads: PositiveInt = Field(8, description="attention heads; the width is shared out among them")
    feed_forward: PositiveInt = Field(2048, description="hidden units of the feed-forward layers")
    dropout: float = Field(
        0.1, ge=0, lt=1, description="of the embedded input and of what each sublayer adds"
    )
    tied: bool = Field(True, description="whether words are written by the same table that reads them")

    @model_validator(mode="after")
    def _heads_share_the_width(self) -> TransformerSizes:
        if self.width % (2 * self.heads):
            raise PydanticCustomError(
                "heads",
                "width should be an even number for each of the heads: a multiple of {unit}",
                {"unit": 2 * self.heads},
            )
        return self


class TransformerConfig(TransformerSizes):
    """Sizes of the Transformer; the defaults are those of Vaswani et al. and of UNKT."""

    encoder_layers: PositiveInt = Field(6, description="layers over the grid")
    decoder_layers: PositiveInt = Field(6, description="layers over the words")


class MeshedConfig(TransformerSizes):
    """Sizes of the meshed-memory Transformer; the defaults are the paper's."""

    layers: PositiveInt = Field(3, description="of the encoder, and as many of the decoder")
    slots: PositiveInt = Field(40, description="learned keys and values of each layer of the encoder")


PARTS: tuple[CaptionerPart, ...] = (
    CaptionerPart(
        name="transformer",
        summary="Transformer: words attend to all places of the grid in every layer",
        config=TransformerConfig,
        build="tellapart.captioners.transformer:build",
        paper="Vaswani et al. 2017, Eq. 1-2, section 3.4-3.5, in the sizes of Fei and Huang 2023 (UNKT)",
        presets={
            "small": {
                "encoder_layers": 3,
                "decoder_layers": 3,
                "width": 256,
                "heads": 4,
                "feed_forward": 1024,
            },
            "tiny": {"encoder_layers": 2, "decoder_layers": 2, "width": 8, "heads": 2, "feed_forward": 12},
        },
    ),
    CaptionerPart(
        name="meshed",
        summary="meshed-memory Transformer: words attend to every layer of an encoder with learned memory",
        config=MeshedConfig,
        build="tellapart.captioners.meshed:build",
        paper="Cornia et al. 2020, M² Transformer, Eq. 1-9",
        presets={
            "small": {"width": 256, "heads": 4, "feed_forward": 1024},
            "tiny": {"layers": 2, "width": 8, "heads": 2, "feed_forward": 12, "slots": 3},
        },
    ),
)
