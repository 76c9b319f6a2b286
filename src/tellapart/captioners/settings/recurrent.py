"""Recurrent captioners with an LSTM: settings and names."""

from __future__ import annotations

from pydantic import Field, PositiveInt

from tellapart.captioners.settings.kinds import CaptionerPart, GridConfig
from tellapart.registry import Config


class NeuralTalkConfig(Config):
    """Sizes of NeuralTalk2; the defaults are those of its code, the only place that states them."""

    embedding: PositiveInt = Field(512, description="words and picture, as the LSTM takes them in")
    hidden: PositiveInt = Field(512, description="the LSTM")
    dropout: float = Field(0.5, ge=0, lt=1, description="of the LSTM's output")


class AdaptiveConfig(GridConfig):
    """Sizes of adaptive attention; the defaults are the paper's."""

    width: PositiveInt = Field(512, description="LSTM, words, places of the grid and sentinel, which add up")
    attention: PositiveInt = Field(49, description="the space in which place and LSTM are compared")
    dropout: float = Field(0.5, ge=0, lt=1, description="of words, places and what the last layer reads")


class TopDownConfig(GridConfig):
    """Sizes of top-down attention; the defaults are Anderson et al.'s, and the dropout Lindh et al.'s."""

    width: PositiveInt = Field(1000, description="both LSTMs, words and places of the grid")
    attention: PositiveInt = Field(512, description="the space in which place and LSTM are compared")
    dropout: float = Field(0.5, ge=0, lt=1, description="of words, places and what the last layer reads")


PARTS: tuple[CaptionerPart, ...] = (
    CaptionerPart(
        name="neuraltalk",
        summary="LSTM that takes the picture in as its first word",
        config=NeuralTalkConfig,
        build="tellapart.captioners.neuraltalk:build",
        paper="Karpathy 2015, NeuralTalk2 (after Vinyals et al. 2015, Eq. 10-12)",
        presets={"tiny": {"embedding": 6, "hidden": 8}, "small": {"dropout": 0.3}},
    ),
    CaptionerPart(
        name="adaptive",
        summary="LSTM with spatial attention, and a sentinel for words that need no look at the picture",
        config=AdaptiveConfig,
        build="tellapart.captioners.adaptive:build",
        paper="Lu et al. 2017, Knowing When to Look, Eq. 4-16",
        presets={
            "tiny": {"width": 8, "attention": 6},
            "small": {"width": 512, "attention": 256, "dropout": 0.3},
        },
    ),
    CaptionerPart(
        name="topdown",
        summary="one LSTM that looks at places of the grid, a second one that writes",
        config=TopDownConfig,
        build="tellapart.captioners.topdown:build",
        paper="Anderson et al. 2018, Eq. 1-7, over a grid as in Lindh et al. 2018",
        presets={
            "tiny": {"width": 8, "attention": 6},
            "small": {"width": 384, "attention": 256, "dropout": 0.3},
        },
    ),
)
