"""Additive attention scores, wᵀ tanh(key + query), without ever holding all of the sums at once.

A batch of 32 images with 5 captions of 14 words and 81 places would need 1.5 GB for the tanh of 512 numbers
each, and would wait for memory far longer than for arithmetic. Blocks that fit the cache are computed one
after the other, and again in the backward pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from tellapart.arrays import Float

BLOCK = 2**17  # numbers held at once: 512 KB


def additive_scores(
    keys: Float[Tensor, "b n a"], queries: Float[Tensor, "b q a"], weight: Float[Tensor, " a"]
) -> Float[Tensor, "b q n"]:
    """How well each query and each key of its image go together."""
    scores: Tensor = _AdditiveScores.apply(keys, queries, weight)  # type: ignore[no-untyped-call]
    return scores


class _AdditiveScores(torch.autograd.Function):
    """With tanh(x) = 2 σ(2x) - 1 throughout, because torch computes σ three times as fast on a CPU."""

    @staticmethod
    def forward(ctx: Any, keys: Tensor, queries: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(keys, queries, weight)
        twice_keys, twice_queries, twice_weight = 2 * keys, 2 * queries, 2 * weight
        scores = keys.new_empty(len(keys), queries.size(1), keys.size(1))
        for images, some in _blocks(keys, queries):
            scores[images, some] = _met(twice_keys[images], twice_queries[images, some]) @ twice_weight
        return scores.sub_(weight.sum())

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        keys, queries, weight = ctx.saved_tensors
        twice_keys, twice_queries = 2 * keys, 2 * queries
        of_keys, of_queries = torch.zeros_like(keys), torch.empty_like(queries)
        of_weight = torch.zeros_like(weight)
        for images, some in _blocks(keys, queries):
            met = _met(twice_keys[images], twice_queries[images, some])
            share = gradient[images, some]
            of_weight += share.flatten() @ met.flatten(0, 2)
            inner = torch.ops.aten.sigmoid_backward(share.unsqueeze(-1).expand_as(met), met)
            of_keys[images] += inner.sum(1)
            of_queries[images, some] = inner.sum(2)
        slope = 4 * weight  # tanh'(x) = 4 σ(2x) (1 - σ(2x))
        return of_keys * slope, of_queries * slope, 2 * of_weight - gradient.sum()


def _met(keys: Float[Tensor, "b n a"], queries: Float[Tensor, "b q a"]) -> Float[Tensor, "b q n a"]:
    return (keys.unsqueeze(1) + queries.unsqueeze(2)).sigmoid_()


def _blocks(keys: Tensor, queries: Tensor) -> Iterator[tuple[slice, slice]]:
    """Whole images where several fit a block, else some of the queries of one image."""
    a_query = keys.size(1) * keys.size(2)
    per_image = queries.size(1)
    images = max(1, BLOCK // max(1, a_query * per_image))
    some = per_image if images > 1 else max(1, BLOCK // max(1, a_query))
    for first in range(0, len(keys), images):
        for at in range(0, per_image, some):
            yield slice(first, first + images), slice(at, at + some)
