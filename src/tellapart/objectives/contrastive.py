"""Contrastive learning against a reference captioner: Dai & Lin, NeurIPS 2017, section 4.2."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from tellapart.arrays import Bool, Float, Int
from tellapart.objectives.by_length import log_probabilities_by_length
from tellapart.objectives.compose import add_up, caption_mean
from tellapart.objectives.log_ratio import Reference, build_reference
from tellapart.objectives.negatives import Negatives, build_negatives
from tellapart.objectives.replacement import Renewed
from tellapart.objectives.settings.contrastive import ContrastiveConfig
from tellapart.objectives.supplies import Supplies
from tellapart.types import AnyCaptioner, Batch, Context, Loss, Objective


def build_contrastive(config: ContrastiveConfig, supplies: Supplies) -> Objective:
    """Contrastive learning, or the plain difference of probabilities that the paper compares it with."""
    reference = build_reference(config.reference, supplies)
    negatives = None
    if config.parts != "positive":
        negatives = build_negatives(
            "contrastive", config.negatives, config.compat, supplies, redraw=config.redraw
        )
    objective = Contrastive(config, reference, negatives)
    if not config.replace_every:
        return objective
    every = config.replace_every * supplies.pace.steps_per_epoch
    return Renewed(objective, reference, supplies.own_copy(), every=every)


@dataclass(frozen=True, slots=True)
class Contrastive:
    """Own captions should be likelier than to the reference, captions of other images less likely."""

    config: ContrastiveConfig
    reference: Reference
    negatives: Negatives | None  # None: the positive constraint alone, CL(P)

    def __call__(self, captioner: AnyCaptioner, batch: Batch, context: Context) -> Loss:
        """-J(θ), Eq. 10, in two terms; the log has the means of h and of G as well."""
        own, by_reference = self._log_probabilities(captioner, batch, context)
        there = batch.mask[:, :, 1:].any(-1)
        if self.config.loss == "ratio":
            values = ratio_losses(own - by_reference, nu=self.config.nu)
        else:
            values = difference_losses(own, by_reference)
        wanted = {"both": ("positive", "negative")}.get(self.config.parts, (self.config.parts,))
        terms = {name: caption_mean(values[name], there, batch) for name in wanted}
        return add_up(terms, self._told(own.detach() - by_reference, there, batch))

    def _log_probabilities(
        self, captioner: AnyCaptioner, batch: Batch, context: Context
    ) -> tuple[Float[Tensor, "b k n"], Float[Tensor, "b k n"]]:
        """Ln p(c|I) by target and reference: of each caption, then of its K negatives."""
        by_reference = self.reference.of_batch(batch).unsqueeze(2)
        tokens, mask = batch.tokens.unsqueeze(2), batch.mask.unsqueeze(2)
        if self.negatives is not None:
            others, there = self.negatives.draw(batch, context)
            imagined = batch.vision.pictured is not None and not batch.vision.pictured.all()
            if self.negatives.redraw or imagined:
                found = self.reference.of(batch.vision, others.flatten(1, 2), there.flatten(1, 2))
            else:
                found = self.reference.of_kept(batch, partial(self.negatives.kept, context=context))
            by_reference = torch.cat([by_reference, found.view(others.shape[:3])], 2)
            tokens, mask = beside(tokens, others, pad=captioner.text.pad), beside(mask, there, pad=False)
        # All captions that an image is shown with at once, so that the image is looked at once.
        own = log_probabilities_by_length(captioner, batch.vision, tokens.flatten(1, 2), mask.flatten(1, 2))
        return own.view(tokens.shape[:3]), by_reference

    def _told(
        self, ratios: Float[Tensor, "b k n"], there: Bool[Tensor, "b k"], batch: Batch
    ) -> Mapping[str, float]:
        h = (ratios - math.log(self.config.nu)).sigmoid()
        told = {"h_positive": h[:, :, 0], "log_ratio_positive": ratios[:, :, 0]}
        if self.negatives is not None:
            told |= {"h_negative": h[:, :, 1:].mean(2), "log_ratio_negative": ratios[:, :, 1:].mean(2)}
        return {name: caption_mean(values, there, batch).item() for name, values in told.items()}


def ratio_losses(ratios: Float[Tensor, "b k n"], *, nu: float) -> dict[str, Float[Tensor, "b k"]]:
    """-ln h of each caption and the mean of -ln(1 - h) of its negatives, Eq. 8-10.

    G stands first for the caption itself. h = r_ν(G) = 1 / (1 + ν exp(-G)), Eq. 3, is sigmoid(G - ln ν). The
    authors cut h at 1e-20; the logarithm of the sigmoid needs no cut.
    """
    shifted = ratios - math.log(nu)
    return {
        "positive": -logsigmoid(shifted[:, :, 0]),
        "negative": _mean(-logsigmoid(-shifted[:, :, 1:])),
    }


def difference_losses(
    own: Float[Tensor, "b k n"], by_reference: Float[Tensor, "b k n"]
) -> dict[str, Float[Tensor, "b k"]]:
    """-D of each caption and the mean D of its negatives, Eq. 5-6: D is the difference of probabilities.

    Of whole captions these are tiny, about 1e-8, and so are the gradients: the paper tells why it is worse.
    """
    difference = own.exp() - by_reference.exp()
    return {"positive": -difference[:, :, 0], "negative": _mean(difference[:, :, 1:])}


def _mean(values: Float[Tensor, "b k n"]) -> Float[Tensor, "b k"]:
    """Over the negatives of each caption, of which there may be none."""
    return values.sum(2) / max(1, values.size(2))


def beside(
    first: Int[Tensor, "b k m t"] | Bool[Tensor, "b k m t"],
    second: Int[Tensor, "b k n u"] | Bool[Tensor, "b k n u"],
    *,
    pad: int,
) -> Int[Tensor, "b k both longest"] | Bool[Tensor, "b k both longest"]:
    """Captions and further captions, padded to the longest of all."""
    longest = max(first.size(3), second.size(3))
    return torch.cat(
        [torch.nn.functional.pad(part, (0, longest - part.size(3)), value=pad) for part in (first, second)], 2
    )
