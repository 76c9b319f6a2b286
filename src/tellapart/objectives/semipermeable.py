"""SMILE: each label competes with the words of its own caption only (Yue et al. 2023).

A word that the caption does not hold may be as likely as it likes, so that richer words cost nothing; the end
sign is in every caption, so that ending too early does. Subsets are gathered: what is computed grows with the
length of captions, not with the number of words there are.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import softplus

from tellapart.arrays import Bool, Float, Int
from tellapart.objectives.compose import add_up, token_mean
from tellapart.objectives.settings.semipermeable import SMILEConfig
from tellapart.objectives.shifting import find_alternatives, shift_first
from tellapart.objectives.supplies import Supplies
from tellapart.objectives.tokens import first_seen, mle, precise
from tellapart.types import AnyCaptioner, Batch, Context, Loss, Objective

First = Literal["mle", "none"]
AUTHORS_SMOOTHING = 0.1  # BLIP's own loss, which is the MLE part of the authors' mixture


def smile(
    logits: Float[Tensor, "*n t v"],
    labels: Int[Tensor, "*n t"],
    mask: Bool[Tensor, "*n t"],
    *,
    first: First = "mle",
    ends: Sequence[int] = (),
) -> Float[Tensor, "*n t"]:
    """Negative log-likelihood of each label among the tokens of its own caption (Eq. 2-3); 0 where none is.

    Args:
        logits: what is expected at each place, already shifted against the labels.
        labels: words and end sign; whatever stands where the mask is false is no part of a caption.
        mask: where there is a label; one row is one caption.
        first: "mle": the first label of a caption competes with all words.
        ends: ids that compete everywhere even if a caption was cut before its end.
    """
    extra = torch.tensor(list(ends), dtype=labels.dtype, device=labels.device)
    words = torch.cat([labels, extra.expand(*labels.shape[:-1], -1)], -1)
    there = torch.cat([mask, mask.any(-1, keepdim=True).expand(*mask.shape[:-1], len(ends))], -1)
    losses = among(logits, labels, words, first_seen(words, there))
    return _finished(losses, logits, labels, mask, first)


def reverse_smile(
    logits: Float[Tensor, "*n t v"],
    labels: Int[Tensor, "*n t"],
    mask: Bool[Tensor, "*n t"],
    *,
    first: First = "mle",
    padding: int | None = None,
) -> Float[Tensor, "*n t"]:
    """Negative log-likelihood of each label among itself and all words that its caption does not hold.

    The paper's "reverse subsetting"; 0 where there is no label. Padding, where its id is given, is in no
    subset. Here a gather will not do: what is left of a sum without its largest parts cannot be had by
    subtraction. One copy is made, as MLE makes one.
    """
    held = labels.where(mask, labels[..., :1])  # what a caption that is not there excludes does not matter
    index = held.unsqueeze(-2).expand(*labels.shape, -1)
    if padding is not None:
        index = torch.cat([index, torch.full_like(index[..., :1], padding)], -1)
    logits = precise(logits)
    wanted = logits.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    rivals = logits.scatter(-1, index, -math.inf).logsumexp(-1)
    losses = softplus(rivals - wanted)  # -ln(e^wanted / (e^wanted + e^rivals))
    return _finished(losses, logits, labels, mask, first)


def random_smile(
    logits: Float[Tensor, "b k t v"],
    labels: Int[Tensor, "b k t"],
    mask: Bool[Tensor, "b k t"],
    *,
    words: Int[Tensor, "b k s"],
    counted: Bool[Tensor, "b k s"],
    first: First = "mle",
) -> Float[Tensor, "b k t"]:
    """Negative log-likelihood of each label among itself and words drawn for its caption; 0 where none is."""
    return _finished(among(logits, labels, words, counted), logits, labels, mask, first)


def among(
    logits: Float[Tensor, "*n t v"],
    labels: Int[Tensor, "*n t"],
    words: Int[Tensor, "*n s"],
    counted: Bool[Tensor, "*n s"],
) -> Float[Tensor, "*n t"]:
    """Negative log-likelihood of each label among itself and those words of its caption that count."""
    label = labels.unsqueeze(-1)
    rivals = words.unsqueeze(-2).expand(*labels.shape, -1)
    scores = precise(logits.gather(-1, torch.cat([label, rivals], -1)))
    hidden = ~counted.unsqueeze(-2) | (rivals == label)
    hidden = torch.cat([torch.zeros_like(label, dtype=torch.bool), hidden], -1)
    return -scores.masked_fill(hidden, -math.inf).log_softmax(-1)[..., 0]


def _finished(
    losses: Float[Tensor, "*n t"],
    logits: Float[Tensor, "*n t v"],
    labels: Int[Tensor, "*n t"],
    mask: Bool[Tensor, "*n t"],
    first: First,
) -> Float[Tensor, "*n t"]:
    """Nothing where there is no label, and the full competition at the first, where that is wanted."""
    losses = losses.masked_fill(~mask, 0)
    if first == "none":
        return losses
    place = mask.long().argmax(-1, keepdim=True)  # behind a prompt the first label is not at place 0
    row = logits.gather(-2, place.unsqueeze(-1).expand(*place.shape, logits.shape[-1]))
    return losses.scatter(-1, place, mle(row, labels.gather(-1, place), mask.gather(-1, place)))


def build_smile(config: SMILEConfig, supplies: Supplies) -> Objective:
    """λ·MLE + (1-λ)·SMILE (Eq. 4), both a token."""
    loss = _build_loss(config, supplies)
    smoothing = AUTHORS_SMOOTHING if config.compat == "authors" else 0.0
    alternatives = find_alternatives(supplies.text, config.compat) if config.first == "shift" else None

    def objective(captioner: AnyCaptioner, batch: Batch, context: Context) -> Loss:
        given, labels, mask = batch.tokens[:, :, :-1], batch.tokens[:, :, 1:], batch.mask[:, :, 1:]
        if alternatives:
            given, labels = shift_first(given, labels, mask, alternatives)
        logits = captioner.predict(batch.vision, given).logits
        share, terms = config.mle_share, {}
        if share > 0:
            likelihood = mle(logits, labels, mask, label_smoothing=smoothing)
            terms["mle"] = share * token_mean(likelihood, mask, batch)
        if share < 1:
            losses = loss(logits, labels, mask, [context.of_image(row) for row in batch.rows])
            terms["smile"] = (1 - share) * token_mean(losses, mask, batch)
        return add_up(terms)

    return objective


_DrawnLoss = Callable[[Tensor, Tensor, Tensor, Sequence[torch.Generator]], Float[Tensor, "b k t"]]


def _build_loss(config: SMILEConfig, supplies: Supplies) -> _DrawnLoss:
    """The loss of the subset that is asked for; only the random one draws from the images' generators."""
    text = supplies.text
    first: First = "mle" if config.first == "mle" else "none"

    def drawn(
        logits: Tensor, labels: Tensor, mask: Tensor, generators: Sequence[torch.Generator]
    ) -> Float[Tensor, "b k t"]:
        if config.subset == "own":
            return smile(logits, labels, mask, first=first, ends=(text.end,))
        if config.subset == "reverse":
            return reverse_smile(logits, labels, mask, first=first, padding=text.pad)
        words, counted = draw_words(labels, mask, generators, size=logits.shape[-1], padding=text.pad)
        return random_smile(logits, labels, mask, words=words, counted=counted, first=first)

    return drawn


def draw_words(
    labels: Int[Tensor, "b k t"],
    mask: Bool[Tensor, "b k t"],
    generators: Sequence[torch.Generator],
    *,
    size: int,
    padding: int,
) -> tuple[Int[Tensor, "b k t"], Bool[Tensor, "b k t"]]:
    """For each caption as many words of a vocabulary of that size as it has, drawn without repeating.

    The paper draws 10 whatever the caption. Padding is never drawn, and changes nothing of what is drawn.
    """
    counts = first_seen(labels, mask).sum(-1).tolist()
    words = torch.zeros(labels.shape, dtype=labels.dtype)
    for image, generator in enumerate(generators):
        source = random.Random(int(torch.randint(2**62, (1,), generator=generator)))
        for place, count in enumerate(counts[image]):
            found = source.sample(range(size - 1), min(count, size - 1))
            words[image, place, : len(found)] = torch.tensor([word + (word >= padding) for word in found])
    counted = torch.arange(labels.shape[-1]) < torch.tensor(counts).clamp(max=size - 1).unsqueeze(-1)
    return words.to(labels.device), counted.to(labels.device)
