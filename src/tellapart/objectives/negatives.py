"""Captions of other images, drawn for each caption of an image."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor

from tellapart.arrays import Bool, Float64, Int, Int32, Int64
from tellapart.errors import TellapartError
from tellapart.objectives.settings.kinds import Compat
from tellapart.objectives.supplies import Supplies, TrainingSet
from tellapart.types import Batch, Context


@dataclass(frozen=True, slots=True)
class CaptionPool:
    """The captions of all training images behind one another, image by image; each is known by its place."""

    tokens: Int32[np.ndarray, " w"]
    starts: Int64[np.ndarray, " c_and_1"]  # of each caption in the tokens, and the end of the last
    firsts: Int64[np.ndarray, " n_and_1"]  # places of each image's first caption, and the number of captions

    def take(
        self, places: Int64[np.ndarray, "b k n"], *, pad: int
    ) -> tuple[Int[Tensor, "b k n t"], Bool[Tensor, "b k n t"]]:
        """The captions at these places, padded; at -1 is none."""
        begin = self.starts[places]
        lengths = np.where(places >= 0, self.starts[places + 1] - begin, 0)
        steps = np.arange(max(2, lengths.max(initial=0)))
        mask = steps < lengths[..., None]
        found = self.tokens[np.where(mask, begin[..., None] + steps, 0)].astype(np.int64)
        return torch.from_numpy(np.where(mask, found, pad)), torch.from_numpy(mask)


def pool_of(training_set: TrainingSet) -> CaptionPool:
    """All captions of a training set."""
    groups = [training_set.captions(row) for row in range(len(training_set))]
    captions = [caption for group in groups for caption in group]
    tokens = np.fromiter((token for caption in captions for token in caption), np.int32)
    starts = np.array([0, *accumulate(map(len, captions))], np.int64)
    return CaptionPool(tokens, starts, np.array([0, *accumulate(map(len, groups))], np.int64))


@dataclass(frozen=True, slots=True)
class Negatives:
    """Draws `count` captions of other images for each caption of an image.

    paper    c_/t, any caption that is not one of the image's own, also not word for word: of two images that
             are described alike, neither description is a mismatch. The `count` captions are all different.
    authors  `count` other images for all captions of the image together; of each a block of captions that
             stand behind one another, one for each of the image's.

    All images and captions are equally likely. The authors walk through a permutation of all images across
    batches; here what an image draws depends on nothing but seed, step and image.
    """

    pool: CaptionPool
    excluded: Sequence[Int64[np.ndarray, " _"]]  # places that an image cannot draw, in order; "paper"
    described: Int64[np.ndarray, " _"]  # rows of images that have captions, in order; "authors"
    count: int
    compat: Compat
    pad: int
    redraw: bool  # at each visit; False: each caption keeps those that it has drawn

    def draw(self, batch: Batch, context: Context) -> tuple[Int[Tensor, "b k n t"], Bool[Tensor, "b k n t"]]:
        """Captions for each caption of a batch; none where the batch has none."""
        places = np.full((len(batch.rows), batch.tokens.size(1), self.count), -1, np.int64)
        for image, (row, own) in enumerate(zip(batch.rows, batch.places, strict=True)):
            if self.redraw:
                places[image, : len(own)] = self._choose(row, len(own), context.of_image(row))
            else:
                places[image, : len(own)] = self._kept(row, context)[list(own)]
        tokens, mask = self.pool.take(places, pad=self.pad)
        return tokens.to(batch.tokens.device), mask.to(batch.tokens.device)

    def kept(self, row: int, context: Context) -> tuple[Int[Tensor, "k n t"], Bool[Tensor, "k n t"]]:
        """The captions that each caption of an image keeps, whichever of them a batch holds."""
        tokens, mask = self.pool.take(self._kept(row, context)[None], pad=self.pad)
        return tokens[0], mask[0]

    def _kept(self, row: int, context: Context) -> Int64[np.ndarray, "k n"]:
        first_step = replace(context, step=0)
        captions = int(self.pool.firsts[row + 1] - self.pool.firsts[row])
        return self._choose(row, captions, first_step.of_image(row))

    def _choose(self, row: int, captions: int, generator: torch.Generator) -> Int64[np.ndarray, "k n"]:
        choose = self._any_captions if self.compat == "paper" else self._blocks
        return choose(row, captions, generator)

    def _any_captions(self, row: int, captions: int, generator: torch.Generator) -> Int64[np.ndarray, "k n"]:
        excluded = self.excluded[row]
        size = int(self.pool.firsts[-1]) - len(excluded)
        chosen = different(_uniform(generator, captions, self.count), size)
        # Counted without the excluded places: each of those that lie before moves it on by one.
        return chosen + np.searchsorted(excluded - np.arange(len(excluded)), chosen, side="right")

    def _blocks(self, row: int, captions: int, generator: torch.Generator) -> Int64[np.ndarray, "k n"]:
        others = self.described[self.described != row]
        numbers = _uniform(generator, 2, self.count)
        rows = others[different(numbers[:1], len(others))[0]]
        firsts, counts = self.pool.firsts[rows], self.pool.firsts[rows + 1] - self.pool.firsts[rows]
        begin = (numbers[1] * (np.maximum(counts - captions, 0) + 1)).astype(np.int64)
        # Where an image has too few captions, from its first again.
        places: Int64[np.ndarray, "k n"] = firsts + (begin + np.arange(captions)[:, None]) % counts
        return places


def _uniform(generator: torch.Generator, *sizes: int) -> Float64[np.ndarray, ...]:
    return torch.rand(sizes, generator=generator, dtype=torch.float64).numpy()


def different(numbers: Float64[np.ndarray, "s n"], size: int) -> Int64[np.ndarray, "s n"]:
    """In each row n different whole numbers below `size`, all sets equally likely (Floyd's algorithm).

    The given numbers are uniform in [0, 1).
    """
    count = numbers.shape[1]
    chosen = np.empty(numbers.shape, np.int64)
    for at in range(count):
        last = size - count + at
        drawn = (numbers[:, at] * (last + 1)).astype(np.int64)
        known = (chosen[:, :at] == drawn[:, None]).any(1)
        chosen[:, at] = np.where(known, last, drawn)
    return chosen


def build_negatives(
    objective: str, count: int, compat: Compat, supplies: Supplies, *, redraw: bool = True
) -> Negatives:
    """The negatives of a training set, which must have enough for each image."""
    pool = pool_of(supplies.training_set)
    excluded = _excluded(supplies.training_set) if compat == "paper" else ()
    described = np.flatnonzero(np.diff(pool.firsts))
    if compat == "paper":
        left, what = int(pool.firsts[-1]) - max(map(len, excluded), default=0), "captions of other images"
    else:
        left, what = len(described) - 1, "other images with captions"
    if left < count:
        raise TellapartError(
            f"objective {objective}: negatives is {count}, and of the training images one has {max(left, 0)} "
            f"{what} to draw from",
            hint="train on more images, or draw fewer negatives",
        )
    return Negatives(pool, excluded, described, count, compat, supplies.text.pad, redraw)


def _excluded(training_set: TrainingSet) -> list[Int64[np.ndarray, " _"]]:
    """For each image the places of its captions, and of all that read the same."""
    groups = [
        [np.array(caption, np.int32).tobytes() for caption in training_set.captions(row)]
        for row in range(len(training_set))
    ]
    alike: dict[bytes, list[int]] = defaultdict(list)
    for place, caption in enumerate(caption for group in groups for caption in group):
        alike[caption].append(place)
    return [
        np.array(sorted(place for caption in set(group) for place in alike[caption]), np.int64)
        for group in groups
    ]
