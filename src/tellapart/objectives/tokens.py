"""Losses of single tokens: pure functions of logits and labels. `compose` shifts and averages, once."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from tellapart.arrays import Bool, Float, Int


def mle(
    logits: Float[Tensor, "*n t v"],
    labels: Int[Tensor, "*n t"],
    mask: Bool[Tensor, "*n t"],
    *,
    label_smoothing: float = 0.0,
) -> Float[Tensor, "*n t"]:
    """Negative log-likelihood of each label in nats; 0 where there is none.

    With label smoothing, so much of each label's weight is spread evenly over all words.
    """
    rows = precise(logits).flatten(0, -2)
    losses = cross_entropy(rows, labels.flatten(), reduction="none", label_smoothing=label_smoothing)
    return losses.view_as(labels).masked_fill(~mask, 0)  # not a product: 0 times infinity is no number


def distillation(
    logits: Float[Tensor, "*n t v"],
    probabilities: Float[Tensor, "*n t v"],
    mask: Bool[Tensor, "*n t"],
    *,
    temperature: float = 1.0,
) -> Float[Tensor, "*n t"]:
    """Cross-entropy of a student with the probabilities of its teachers (UNKT, Eq. 4); 0 where no label is.

    A temperature softens the student as its teachers were softened. Its square then makes up for gradients
    that fall with it (Hinton et al. 2015, section 2).
    """
    softened = precise(logits).flatten(0, -2) / temperature
    losses = cross_entropy(softened, precise(probabilities).flatten(0, -2), reduction="none")
    return temperature**2 * losses.view_as(mask).masked_fill(~mask, 0)


def unlikelihood(
    logits: Float[Tensor, "*n t v"],
    mask: Bool[Tensor, "*n t"],
    words: Int[Tensor, "*n t c"],
    counted: Bool[Tensor, "*n t c"],
) -> Float[Tensor, "*n t"]:
    """-Σ ln(1 - p) over the unwanted words of each place that count (UNKT, Eq. 2); 0 where no label is.

    Only the likeliest word can have p > ½, where 1 - p loses all its digits. Its 1 - p is therefore summed up
    from the other words, which stays finite whatever the logits, and so do the gradients.
    """
    logits = precise(logits)
    top = logits.argmax(-1, keepdim=True)
    rest = logits.scatter(-1, top, -math.inf).logsumexp(-1, keepdim=True)
    whole = torch.logaddexp(logits.gather(-1, top), rest)
    likeliest = words == top
    below = (logits.gather(-1, words) - whole).masked_fill(likeliest | ~counted, -math.inf)
    above = (rest - whole).squeeze(-1).masked_fill(~(likeliest & counted).any(-1), 0)
    return -(torch.log1p(-below.exp()).sum(-1) + above).masked_fill(~mask, 0)


def precise(numbers: Float[Tensor, "*n"]) -> Float[Tensor, "*n"]:
    """The same in single precision at the least: sums over many words are lost on 8 bits."""
    return numbers.to(torch.promote_types(numbers.dtype, torch.float32))


def previous_words(
    labels: Int[Tensor, "*n t"], mask: Bool[Tensor, "*n t"]
) -> tuple[Int[Tensor, "*n t t"], Bool[Tensor, "*n t t"]]:
    """The words before each place without its label, and which count: each word once, however often it came.

    The candidates of Welleck et al. 2020, Eq. 5.
    """
    places = labels.shape[-1]
    earlier = torch.ones(places, places, dtype=torch.bool, device=labels.device).tril(-1)
    words = labels.unsqueeze(-2).expand(*labels.shape, places)
    return words, earlier & first_seen(labels, mask).unsqueeze(-2) & (words != labels.unsqueeze(-1))


def first_seen(tokens: Int[Tensor, "*n s"], mask: Bool[Tensor, "*n s"]) -> Bool[Tensor, "*n s"]:
    """Where a token stands for the first time in its row, of those that the mask lets through."""
    same = (tokens.unsqueeze(-1) == tokens.unsqueeze(-2)) & mask.unsqueeze(-2)
    return mask & ~same.tril(-1).any(-1)
