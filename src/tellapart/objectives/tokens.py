"""Losses of single tokens: pure functions of logits and labels. `compose` shifts and averages, once."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import cross_entropy

from tellapart.arrays import Bool, Float, Int


def mle(
    logits: Float[Tensor, "b k t v"], labels: Int[Tensor, "b k t"], mask: Bool[Tensor, "b k t"]
) -> Float[Tensor, "b k t"]:
    """Negative log-likelihood of each label in nats; 0 where there is none."""
    losses = cross_entropy(logits.flatten(0, 2), labels.flatten(), reduction="none")
    return losses.view_as(labels).masked_fill(~mask, 0)  # not a product: 0 times infinity is no number
