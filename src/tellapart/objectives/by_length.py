"""Log-probabilities of many captions an image that are of unlike length."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from tellapart.arrays import Bool, Float, Int
from tellapart.objectives.compose import caption_log_probabilities
from tellapart.types import AnyCaptioner, Vision

# What a group costs beside its captions, in tokens an image. Where the image is looked at anew for each, a
# quarter of a token is added for each place of its grid: what it takes to project the place, and more.
GROUP = 5


def log_probabilities_by_length(
    captioner: AnyCaptioner, vision: Vision, tokens: Int[Tensor, "b k t"], mask: Bool[Tensor, "b k t"]
) -> Float[Tensor, "b k"]:
    """The same as `log_probabilities`, with less work on padding.

    Batches hold images whose own captions are of similar length; captions of other images are not, and the
    longest of hundreds would set the work for all. So each image's captions are put in order of length, and
    cut into as few groups as pay.
    """
    if not tokens.size(1):
        return vision.pooled.new_zeros(tokens.shape[:2])
    lengths = mask.sum(-1)
    order = lengths.argsort(dim=1, stable=True)
    tokens = tokens.take_along_dim(order.unsqueeze(-1), 1)
    mask = mask.take_along_dim(order.unsqueeze(-1), 1)
    longest = lengths.take_along_dim(order, 1).amax(0).clamp_min(2).tolist()
    look = 0 if captioner.sees_once else vision.grid.size(1) // 4
    pieces = [
        (slice(None), slice(first, last), slice(longest[last - 1]))
        for first, last in pairwise([0, *best_cuts(longest, look=GROUP + look)])
    ]
    predictions = captioner.predict_each(vision, [tokens[piece][:, :, :-1] for piece in pieces])
    found = [
        caption_log_probabilities(prediction, tokens[piece], mask[piece])
        for prediction, piece in zip(predictions, pieces, strict=True)
    ]
    return torch.cat(found, 1).take_along_dim(order.argsort(dim=1), 1)


def best_cuts(lengths: Sequence[int], *, look: int) -> list[int]:
    """Where to cut a row of rising lengths, so that padded tokens and looks at the image are fewest.

    Each piece takes as many tokens as its last length times its size, and `look` more for the image. The ends
    of the pieces are returned.
    """
    least = [0]
    before = [0]
    for last, length in enumerate(lengths, start=1):
        costs = [least[first] + (last - first) * length + look for first in range(last)]
        least.append(min(costs))
        before.append(costs.index(least[-1]))
    cuts = [len(lengths)]
    while before[cuts[-1]]:
        cuts.append(before[cuts[-1]])
    return cuts[::-1]
