"""Which images and captions go into which batch: a function of the seed and the epoch alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from tellapart.arrays import Bool, Float64, Int

POOL = 16  # batches whose images are sorted by length together: less padding, order still random


def plan_epoch(lengths: Sequence[int], *, images_per_batch: int, seed: int, epoch: int) -> list[list[int]]:
    """Batches of row numbers, every row once, rows of similar length together, in random order."""
    random = np.random.default_rng([seed, epoch])
    order = random.permutation(len(lengths))
    keys = np.asarray(lengths)
    batches: list[list[int]] = []
    for start in range(0, len(order), images_per_batch * POOL):
        pool = order[start : start + images_per_batch * POOL]
        pool = pool[np.argsort(keys[pool], kind="stable")]
        batches += [pool[at : at + images_per_batch].tolist() for at in range(0, len(pool), images_per_batch)]
    return [batches[place] for place in random.permutation(len(batches))]


def choose_captions(count: int, *, wanted: int, seed: int, epoch: int, row: int) -> list[int]:
    """Which of an image's captions to take this epoch: all, or as many as wanted, drawn without repeating."""
    if count <= wanted:
        return list(range(count))
    return [int(place) for place in np.random.default_rng([seed, epoch, row]).permutation(count)[:wanted]]


def prefer_captions(
    preference: Float64[np.ndarray, " k"], *, wanted: int, seed: int, epoch: int, row: int
) -> list[int]:
    """The same, one after the other with probability in proportion to exp(preference) of those left.

    The greatest sums of preferences and Gumbel noise are such a draw.
    """
    if len(preference) <= wanted:
        return list(range(len(preference)))
    noise = np.random.default_rng([seed, epoch, row]).gumbel(size=len(preference))
    return [int(place) for place in np.argsort(-(preference + noise), kind="stable")[:wanted]]


def pad_captions(
    captions: Sequence[Sequence[Sequence[int]]], *, pad: int
) -> tuple[Int[Tensor, "b k t"], Bool[Tensor, "b k t"]]:
    """Token lists of each image's captions as one tensor, with the mask of what is really there."""
    most = max(1, *(len(group) for group in captions))  # of pictures without captions, one that is not there
    longest = max([2, *(len(tokens) for group in captions for tokens in group)])
    tokens = torch.full((len(captions), most, longest), pad, dtype=torch.long)
    mask = torch.zeros((len(captions), most, longest), dtype=torch.bool)
    for image, group in enumerate(captions):
        for place, caption in enumerate(group):
            tokens[image, place, : len(caption)] = torch.tensor(caption)
            mask[image, place, : len(caption)] = True
    return tokens, mask
