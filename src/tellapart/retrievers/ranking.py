"""Losses that bring a picture and its sentence together and keep them from the others of the batch.

All take the similarities of a batch, row i a picture and column j a sentence, of which the pairs (i, i)
belong together and no other does; they give the loss of each pair, which is 0 in a batch of one.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from tellapart.arrays import Bool, Float
from tellapart.retrievers.settings import HardestConfig, InfoNceConfig, PairwiseConfig

RankingLoss = Callable[[Float[Tensor, "b b"], torch.Generator], Float[Tensor, " b"]]


def pairwise(
    similarities: Float[Tensor, "b b"], *, margin: float, contrasts: int, generator: torch.Generator
) -> Float[Tensor, " b"]:
    """SentEval's pairwise ranking: hinges against so many other pictures and other sentences, summed.

    The others are drawn afresh for each pair from the batch, without repeating; a smaller batch gives all.
    """
    others = _draw_others(len(similarities), contrasts, generator)
    sentences = (_hinges(similarities, margin) * others).sum(1)
    pictures = (_hinges(similarities.T, margin) * _draw_others(len(similarities), contrasts, generator)).sum(
        1
    )
    return sentences + pictures


def hardest(similarities: Float[Tensor, "b b"], *, margin: float) -> Float[Tensor, " b"]:
    """VSE++, Eq. 6: the hinges against the closest wrong sentence and the closest wrong picture."""
    own = torch.eye(len(similarities), dtype=torch.bool)
    sentences = _hinges(similarities, margin).masked_fill(own, 0).amax(1)
    pictures = _hinges(similarities.T, margin).masked_fill(own, 0).amax(1)
    return sentences + pictures


def info_nce(similarities: Float[Tensor, "b b"], *, temperature: float) -> Float[Tensor, " b"]:
    """Cross-entropy of the right partner among all of the batch, the mean of both directions."""
    logits = similarities / temperature
    right = torch.arange(len(logits))
    chosen = functional.cross_entropy(logits, right, reduction="none")
    return (chosen + functional.cross_entropy(logits.T, right, reduction="none")) / 2


def _hinges(similarities: Float[Tensor, "b b"], margin: float) -> Float[Tensor, "b b"]:
    return (margin - similarities.diagonal()[:, None] + similarities).clamp_min(0)


def _draw_others(count: int, wanted: int, generator: torch.Generator) -> Bool[Tensor, "b b"]:
    """For each row so many columns, never its own."""
    chances = torch.rand(count, count, generator=generator).fill_diagonal_(-1)
    chosen = chances.topk(min(wanted, count - 1), dim=1).indices
    return torch.zeros(count, count, dtype=torch.bool).scatter_(1, chosen, value=True)


def build_pairwise(config: PairwiseConfig) -> RankingLoss:
    """As it is registered."""
    return lambda similarities, generator: pairwise(
        similarities, margin=config.margin, contrasts=config.contrasts, generator=generator
    )


def build_hardest(config: HardestConfig) -> RankingLoss:
    """As it is registered."""
    return lambda similarities, generator: hardest(similarities, margin=config.margin)


def build_info_nce(config: InfoNceConfig) -> RankingLoss:
    """As it is registered."""
    return lambda similarities, generator: info_nce(similarities, temperature=config.temperature)
