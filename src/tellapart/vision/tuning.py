"""What is changed of an encoder that is tuned to captions, and which encoders can be: light, for recipes."""

from __future__ import annotations

from pydantic import Field, PositiveInt

from tellapart.errors import TellapartError
from tellapart.registry import Config

WHAT = "encoder"  # what a folder of such changes is called
NUMBERS = (0, 1, 2)  # of the Lite networks that there are


class TuningConfig(Config):
    """What is changed of an encoder, and how it learns it."""

    first_block: PositiveInt = Field(
        11, description="the first block that is tuned; those before it are looked through once and stay"
    )
    rank: PositiveInt = Field(32, description="of the change of each matrix")
    min_images: PositiveInt = Field(
        20, description="words that captions of fewer pictures hold are not learnt, nor are function words"
    )
    keep_classes: float = Field(
        1.0, ge=0, description="how much it counts that classes stay as likely as they were"
    )
    dropout: float = Field(0.3, ge=0, lt=1, description="of the pooled feature")
    left_out: float = Field(
        0.2, ge=0, lt=1, description="how often a block is left out for a picture: the last one's, were it so"
    )


def lite_number(name: str) -> int:
    """The number of a Lite network; another encoder cannot be tuned."""
    kind, _, number = name.rpartition("-lite")
    if kind != "efficientnet" or not number.isdigit() or int(number) not in NUMBERS:
        raise TellapartError(
            f"the encoder {name} cannot be tuned",
            hint="tune efficientnet-lite0, efficientnet-lite1 or efficientnet-lite2",
        )
    return int(number)
