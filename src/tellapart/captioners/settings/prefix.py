"""A visual prefix before a language model: settings and names."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator
from pydantic_core import PydanticCustomError

from tellapart.captioners.settings.kinds import CaptionerPart, LoraSettings

SMOLLM2 = "smollm2"  # the one that a wheel brings
BYTES = "bytes"  # a tiny untrained one that writes letter by letter, and needs no file


class PrefixConfig(LoraSettings):
    """Sizes of the mapping network, the language model, and what of it is trained; sizes are the paper's."""

    language_model: str = Field(
        SMOLLM2,
        min_length=1,
        description=f"{SMOLLM2!r}, a folder that holds a causal language model, or a hub name; "
        f"{BYTES!r}: a tiny untrained one",
    )
    train: Literal["mapping", "lora", "all"] = Field(
        "lora",
        description="what is trained: the mapping alone, also low-rank changes of the language model, or all",
    )
    look: Literal["pooled", "grid"] = Field("pooled", description="the feature that becomes the prefix")
    mapping: Literal["mlp", "transformer"] = Field(
        "mlp", description="the network that makes the prefix of the feature; a grid needs the Transformer"
    )
    prefix_length: PositiveInt = Field(10, description="vectors before the caption")
    mlp_width: NonNegativeInt = Field(
        0, description="hidden layer of the MLP; 0: half the numbers of a prefix, as in the paper"
    )
    mapping_layers: PositiveInt = Field(8, description="layers of the Transformer")
    mapping_heads: PositiveInt = Field(8, description="heads of the Transformer")

    @model_validator(mode="after")
    def _a_grid_needs_the_transformer(self) -> PrefixConfig:
        if self.look == "grid" and self.mapping == "mlp":
            raise PydanticCustomError(
                "grid", 'look = "grid" needs mapping = "transformer": the MLP takes a single vector'
            )
        return self


PARTS = (
    CaptionerPart(
        name="prefix",
        summary="a language model that continues a few vectors made of the image, as ClipCap",
        config=PrefixConfig,
        build="tellapart.captioners.prefix.captioner:build",
        paper="Mokady et al. 2021, ClipCap, section 3; Hu et al. 2022, LoRA, Eq. 3",
        presets={
            "tiny": {
                "language_model": BYTES,
                "train": "all",
                "prefix_length": 3,
                "mlp_width": 8,
                "mapping_layers": 1,
                "mapping_heads": 2,
                "lora_rank": 2,
            }
        },
        own_text=True,
        folders=("language_model",),
        checkpoint_weights=155_259_648,  # the mapping, the adapters that are trained, and SmolLM2
    ),
)
