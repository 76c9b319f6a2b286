"""Introspective learning: a caption should be likelier before its own image than before another.

Dai & Lin (2017, section 2 and Table 4) compare with it and say of it that the target is compared with
itself, on (I, c) and on (I', c), where I' is chosen beforehand and stays. They name Vedantam et al. 2017, who
decode by the log-ratio ln p(c|I) - ln p(c|I') but do not train by it, and Mao et al. 2016, who do. What is
here is Mao et al.'s, with one other image:

    logistic  -ln [p(c|I) / (p(c|I) + p(c|I'))], their softmax over images; Dai & Lin's h without a reference.
    margin    max(0, M - ln p(c|I) + ln p(c|I')), their hinge.

Both bound what the ratio can gain, which Vedantam et al.'s ratio itself does not. Either is indifferent to
how likely a caption is as such, so the likelihood is a term of its own, as in Mao et al.'s hinge.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from tellapart.arrays import Float, Int32
from tellapart.errors import TellapartError
from tellapart.objectives.compose import (
    add_up,
    caption_mean,
    label_log_probabilities,
    log_probabilities,
    token_mean,
)
from tellapart.objectives.schedules import Weight, build_weight
from tellapart.objectives.settings.contrastive import IntrospectiveConfig
from tellapart.objectives.supplies import Supplies, TrainingSet
from tellapart.types import AnyCaptioner, Batch, Context, Loss, Objective


def build_introspective(config: IntrospectiveConfig, supplies: Supplies) -> Objective:
    """Introspective learning with one other image for each."""
    images = supplies.training_set
    if len(images) < 2:
        raise TellapartError(
            "objective introspective: there is one training image, and each needs another beside it",
            hint="train on more images",
        )
    nearest = images.nearest(config.neighbours) if config.neighbours else None
    return Introspective(config, images, nearest, build_weight(config.mle_weight, supplies.pace))


@dataclass(frozen=True, slots=True)
class Introspective:
    """The captioner compared with itself before another image."""

    config: IntrospectiveConfig
    training_set: TrainingSet
    nearest: Int32[np.ndarray, "n k"] | None  # of which the other image is one; None: any
    weight: Weight  # of the likelihood

    def __call__(self, captioner: AnyCaptioner, batch: Batch, context: Context) -> Loss:
        """The comparison, and the weighed likelihood."""
        labels, mask = batch.tokens[:, :, 1:], batch.mask[:, :, 1:]
        logits = captioner.predict(batch.vision, batch.tokens[:, :, :-1]).logits
        words = label_log_probabilities(logits, labels).masked_fill(~mask, 0)
        others = self.training_set.vision(self.others(batch.rows, context)).to(batch.tokens.device)
        ratios = words.sum(-1) - log_probabilities(captioner, others, batch.tokens, batch.mask)
        there = mask.any(-1)
        terms = {"introspective": caption_mean(self.compare(ratios), there, batch)}
        amount = self.weight(context.step)
        if amount:
            terms["mle"] = -amount * token_mean(words, mask, batch)
        return add_up(terms, {"log_ratio": caption_mean(ratios.detach(), there, batch).item()})

    def compare(self, ratios: Float[Tensor, "b k"]) -> Float[Tensor, "b k"]:
        """The loss of log-ratios ln p(c|I) - ln p(c|I')."""
        if self.config.form == "margin":
            return (self.config.margin - ratios).clamp_min(0)
        return softplus(-ratios)

    def others(self, rows: Sequence[int], context: Context) -> list[int]:
        """The other image of each, which stays unless it is to be redrawn."""
        source = context if self.config.redraw else replace(context, step=0)
        return [self._other(row, source.of_image(row)) for row in rows]

    def _other(self, row: int, generator: torch.Generator) -> int:
        if self.nearest is not None:
            return int(self.nearest[row, _below(self.nearest.shape[1], generator)])
        drawn = _below(len(self.training_set) - 1, generator)
        return drawn + (drawn >= row)


def _below(size: int, generator: torch.Generator) -> int:
    return int(torch.randint(size, (), generator=generator))
