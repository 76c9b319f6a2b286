"""Half-written captions of one image as one family: what they have in common is kept once.

All captions of an image are one row of the network's batch, and their tokens stand behind one another in one
sequence; a mask shows each token only what stands before the caption and its own ancestors. So pictures,
prompts and cross-attention are computed and kept once an image, whatever the number of beams or captions,
and choosing among beams moves no keys or values at all: only the mask changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from tellapart.arrays import Bool, Float, Int
from tellapart.captioners.per_image import PerImage


@dataclass(frozen=True, slots=True)
class FamilyState:
    """What was computed for each image so far, and which of its tokens each caption consists of."""

    kept: PerImage  # what its decoder is shown of the image (where it cross-attends), then keys and values
    own: int  # how many of the kept tensors are keys and values of the sequence itself
    ancestors: Bool[Tensor, "r w"]  # of the tokens written for its image, those of this row
    length: int  # tokens of each caption

    def select(self, rows: Int[Tensor, " r"]) -> FamilyState:
        """The state of these rows."""
        return FamilyState(self.kept.select(rows), self.own, self.ancestors[rows], self.length)


def caption_mask(
    before: int, both_ways: int, captions: int, length: int, device: torch.device
) -> Bool[Tensor, "q q"]:
    """Who sees whom among what stands before the captions of an image and, one after another, the captions.

    Args:
        before: how many tokens stand before every caption.
        both_ways: how many of those, the first, see each other whatever their order.
        captions: of an image.
        length: of each caption.
        device: where the mask is needed.
    """
    whole = before + captions * length
    seen = torch.zeros(whole, whole, dtype=torch.bool, device=device)
    seen[:before, :before] = prompt_mask(before, both_ways, device)
    seen[before:, :before] = True
    causal = torch.ones(length, length, device=device).tril()
    seen[before:, before:] = torch.kron(torch.eye(captions, device=device), causal).bool()
    return seen


def prompt_mask(before: int, both_ways: int, device: torch.device) -> Bool[Tensor, "p p"]:
    """Who sees whom before a caption: each what precedes it, and the first `both_ways` each other."""
    seen = torch.ones(before, before, dtype=torch.bool, device=device).tril()
    seen[:both_ways, :both_ways] = True
    return seen


def with_next(state: FamilyState) -> Bool[Tensor, "r w"]:
    """The ancestors of each row once its next token is written: the new tokens stand behind the old ones."""
    group = state.kept.group
    itself = torch.eye(group, dtype=torch.bool, device=state.ancestors.device)
    return torch.cat([state.ancestors, itself.repeat(len(state.ancestors) // group, 1)], dim=1)


def step_mask(before: int, ancestors: Bool[Tensor, "b g w"]) -> Bool[Tensor, "b g s"]:
    """What the next token of each row sees: all that stands before a caption, its ancestors, itself."""
    prompt = torch.ones(*ancestors.shape[:2], before, dtype=torch.bool, device=ancestors.device)
    return torch.cat([prompt, ancestors], dim=2)


def as_bias(seen: Bool[Tensor, "b q w"], dtype: torch.dtype) -> Float[Tensor, "b 1 q w"]:
    """A mask as what is added to attention scores."""
    hidden = torch.zeros(seen.shape, dtype=dtype, device=seen.device)
    return hidden.masked_fill(~seen, torch.finfo(dtype).min).unsqueeze(1)


def make_cache(kept: tuple[Tensor, ...], *, own: int, crosses: bool) -> Any:
    """The library's cache over keys and values that are kept; it grows by itself and leaves them alone."""
    caches = import_module("transformers.cache_utils")  # not at the top: an optional extra
    itself = _filled(caches, kept[:own])
    return caches.EncoderDecoderCache(itself, _filled(caches, kept[own:])) if crosses else itself


def _filled(caches: Any, pairs: tuple[Tensor, ...]) -> Any:
    cache = caches.DynamicCache()
    for keys, values in zip(pairs[::2], pairs[1::2], strict=True):
        layer = caches.DynamicLayer()
        layer.lazy_initialization(keys, values)
        layer.keys, layer.values = keys, values  # not by update(), which would copy them
        cache.layers.append(layer)
    return cache


def kept_of(cache: Any, *, crosses: bool) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Keys and values of a cache, layer by layer: of the sequence itself, and of the cross-attention."""
    if not crosses:
        return _pairs(cache), ()
    return _pairs(cache.self_attention_cache), _pairs(cache.cross_attention_cache)


def _pairs(cache: Any) -> tuple[Tensor, ...]:
    return tuple(tensor for layer in cache.layers for tensor in (layer.keys, layer.values))
