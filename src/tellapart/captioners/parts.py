"""The captioners there are, and their settings. Nothing here imports torch: recipes are checked with it."""

from __future__ import annotations

from pydantic import Field, PositiveInt

from tellapart.registry import Config, Part, Registry


class MRNNConfig(Config):
    """Sizes of the m-RNN; the defaults are the paper's."""

    embedding_one: PositiveInt = Field(128, description="word embedding layer I")
    embedding_two: PositiveInt = Field(256, description="word embedding layer II and recurrent layer")
    multimodal: PositiveInt = Field(512, description="multimodal layer")
    dropout: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="after word embedding II, recurrent and multimodal layer (0.5 in the authors' code)",
    )


CAPTIONERS = Registry(
    "captioner",
    [
        Part(
            name="mrnn",
            summary="multimodal recurrent network: image and words meet in one layer at every word",
            config=MRNNConfig,
            build="tellapart.captioners.mrnn:build",
            paper="Mao et al. 2015, m-RNN, Eq. 2-4",
        ),
    ],
    group="tellapart.captioners",
)
