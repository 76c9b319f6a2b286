"""Contrastive learning, introspective learning and the conditional GAN: settings and names."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from tellapart.objectives.schedules import Amount
from tellapart.objectives.settings.kinds import Compat, ObjectivePart
from tellapart.registry import Config, ModelName


class ContrastiveConfig(Config):
    """Contrastive learning against a reference; the defaults are the paper's."""

    reference: ModelName = Field(
        "", description="name or folder of a captioner with the same words; empty: a copy of the start"
    )
    negatives: PositiveInt = Field(5, description="K, captions of other images for each caption")
    nu: PositiveFloat = Field(1.0, description="ν, how much likelier than the reference h = ½ is")
    redraw: bool = Field(
        True,
        description="other negatives at each visit; false: each caption keeps its own, and from the second "
        "epoch on what the reference says of them is known",
    )
    parts: Literal["both", "positive", "negative"] = Field(
        "both", description="which of the two constraints: all, CL(P) or CL(N)"
    )
    loss: Literal["ratio", "difference"] = Field(
        "ratio", description="ratio: Eq. 7-10; difference: of plain probabilities, Eq. 5-6"
    )
    replace_every: NonNegativeInt = Field(
        0, description="epochs after which the best target so far becomes the reference; 0: never"
    )
    compat: Compat = Field(
        "paper",
        description="negatives: any captions but the image's own; authors: blocks of other images' captions",
    )


class IntrospectiveConfig(Config):
    """Introspective learning: the captioner against itself before another image."""

    form: Literal["logistic", "margin"] = Field(
        "logistic", description="logistic: -ln of the own image's share; margin: a hinge on the log-ratio"
    )
    margin: PositiveFloat = Field(1.0, description="form margin: nats by which the own image should lead")
    neighbours: NonNegativeInt = Field(
        0, description="the other image is one of so many nearest ones; 0: any"
    )
    redraw: bool = Field(False, description="another one at each visit, instead of one throughout")
    mle_weight: Amount = Field(1.0, description="weight of the likelihood, which keeps captions well-formed")


class GANConfig(Config):
    """The conditional GAN: an evaluator that learns beside the captioner."""

    width: PositiveInt = Field(128, description="of the evaluator's words, states and joint space")
    samples: int = Field(
        5, ge=2, description="captions drawn of each image; each is a baseline of the others"
    )
    generated: NonNegativeFloat = Field(
        1.0, description="α, weight of drawn captions in the evaluator's loss"
    )
    wrong: NonNegativeFloat = Field(1.0, description="β, weight of other images' captions in it")
    policy: Amount = Field(
        1.0, description="weight of the captioner's reward; on a schedule it may come later"
    )
    mle_weight: Amount = Field(0.0, description="weight of the likelihood")


PARTS: tuple[ObjectivePart, ...] = (
    ObjectivePart(
        name="contrastive",
        summary="own captions likelier, those of other images less likely than to a reference",
        config=ContrastiveConfig,
        build="tellapart.objectives.contrastive:build_contrastive",
        paper="Dai & Lin 2017, Contrastive Learning for Image Captioning, Eq. 7-10",
        captioners=("reference",),
    ),
    ObjectivePart(
        name="introspective",
        summary="a caption likelier before its own image than before another",
        config=IntrospectiveConfig,
        build="tellapart.objectives.introspective:build_introspective",
        paper="Vedantam et al. 2017 and Mao et al. 2016, as Dai & Lin 2017 compare (IL)",
    ),
    ObjectivePart(
        name="gan",
        summary="captions that an evaluator, trained alongside, takes for people's own",
        config=GANConfig,
        build="tellapart.objectives.adversarial:build_gan",
        paper="Dai et al. 2017, Towards Diverse and Natural Image Descriptions via a Conditional GAN",
    ),
)
