"""SMILE: settings and names."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tellapart.objectives.schedules import Share
from tellapart.objectives.settings.kinds import Compat, ObjectivePart
from tellapart.registry import Config

Subset = Literal["own", "reverse", "random"]


class SMILEConfig(Config):
    """Likelihood among a few words instead of all.

    It is for captioners that maximum likelihood has trained already. The authors' published mixture has
    `mle_share = 0.01`, which finds its picture best (their Table 5).

    first    mle    the first word competes with all words.
             shift  it takes a form that no caption begins with, and competes with the caption's words.
             none   nothing special is done.
    subset   own      the words of the caption and the end sign.
             reverse  the label and all words that the caption does not hold.
             random   the label and as many words as the caption holds, drawn afresh each time.
    compat   Where the authors' code differs from their paper: its MLE part smooths labels by 0.1, and a first
             word without a second form becomes the unknown word.
    """

    first: Literal["mle", "shift", "none"] = Field("mle", description="what keeps the first word right")
    subset: Subset = Field("own", description="the words that a label competes with")
    mle_share: Share = Field(0.0, description="λ of λ·MLE + (1-λ)·SMILE")
    compat: Compat = Field("paper", description="as printed, or as the authors' code has it")


PARTS: tuple[ObjectivePart, ...] = (
    ObjectivePart(
        name="smile",
        summary="likelihood of each label among the words of its own caption: longer, richer captions",
        config=SMILEConfig,
        build="tellapart.objectives.semipermeable:build_smile",
        paper="Yue et al. 2023, SMILE, Eq. 2-4",
    ),
)
