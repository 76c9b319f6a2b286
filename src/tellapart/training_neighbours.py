"""The training pictures nearest to a picture, and what people said of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from tellapart.arrays import Float
from tellapart.captioning import Describer
from tellapart.corpus import as_vision
from tellapart.data.examples import Example
from tellapart.errors import TellapartError
from tellapart.metrics.counted_captions import CountedCaptions
from tellapart.metrics.ptb.tokenizer import tokenize_all
from tellapart.picture_pools import Pictures, see_pictures
from tellapart.recipe import Recipe, load_recipe
from tellapart.retrievers.neighbours import nearest
from tellapart.retrievers.retriever import Watch, unwatched
from tellapart.sources import read_examples, split_of
from tellapart.types import Vision
from tellapart.vision.encoder import Encoder
from tellapart.vision.features import Features

TOGETHER = 1024  # pictures that a captioner refines at once


@runtime_checkable
class Refines(Protocol):
    """A captioner that has a view of its own of a picture's pooled feature (m-RNN, section 8.1)."""

    def refined(self, vision: Vision) -> Float[Tensor, "b m"]:
        """The pictures as it has learnt to see them."""
        ...


@dataclass(frozen=True, slots=True)
class Sight:
    """By what pictures are compared: an encoder's pooled feature, or what a captioner makes of it."""

    encoder: Encoder
    refiner: Refines | None = None

    def look(self, paths: Sequence[Path], *, watch: Watch = unwatched) -> Pictures:
        """These pictures, all of which must be readable."""
        seen, bad = see_pictures(paths, self.encoder, total=len(paths), watch=watch)
        for error in bad:
            raise error
        if self.refiner is None:
            return seen
        return Pictures(seen.paths, _refined(self.refiner, seen.features), seen.digests)


def refined_sight(describer: Describer) -> Sight:
    """The refined feature of a captioner, or an error where it has none."""
    captioner = describer.saved.captioner
    if not isinstance(captioner, Refines):
        raise TellapartError(
            f"the captioner {describer.name} has no refined image feature",
            hint="compare pictures by the pooled feature, or take an m-RNN",
        )
    return Sight(describer.encoder, captioner)


@torch.inference_mode()
def _refined(refiner: Refines, pooled: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n m"]:
    found = []
    for first in range(0, max(1, len(pooled)), TOGETHER):
        some = pooled[first : first + TOGETHER]
        nothing = np.empty((len(some), 0), some.dtype)
        vision = as_vision(Features(nothing[:, :, None], some, nothing))
        found.append(refiner.refined(vision).numpy())
    return np.concatenate(found)


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """Pictures to learn from with their captions, the same in number and order."""

    ids: tuple[str, ...]
    captions: tuple[tuple[str, ...], ...]  # one or more a picture
    pictures: Pictures
    counted: CountedCaptions  # the same captions, ready to be compared with

    def __len__(self) -> int:
        return len(self.ids)

    def nearest(self, pictures: Pictures, count: int, *, watch: Watch = unwatched) -> list[list[int]]:
        """Rows of the nearest training pictures, the nearest first; all of them where there are no more.

        By Euclidean distance, as m-RNN's authors have it. A picture that was trained on is not its own
        neighbour, nor are copies of it: what is compared is the content of the files.
        """
        if not len(pictures):
            return []
        owners: dict[bytes, set[int]] = {}
        for row, digest in enumerate(self.pictures.digests):
            owners.setdefault(digest, set()).add(row)
        own = [owners.get(digest, set()) for digest in pictures.digests]
        more = max(map(len, own))
        found = nearest(
            pictures.features, self.pictures.features, count + more, distance="euclidean", watch=watch
        )
        rows = [
            [row for row in near if row not in itself][:count]
            for near, itself in zip(found.rows.tolist(), own, strict=True)
        ]
        for path, near in zip(pictures.paths, rows, strict=True):
            if not near:
                raise TellapartError(
                    f"{path}: the training set holds this picture and no other", hint="give a larger one"
                )
        return rows


def read_training_set(recipe: str | Recipe, sight: Sight, *, watch: Watch = unwatched) -> TrainingSet:
    """The captioned pictures that a recipe trains on.

    Args:
        recipe: itself, or its name or file.
        sight: by what its pictures are to be compared.
        watch: told how many pictures are seen, and of how many.
    """
    recipe = load_recipe(recipe) if isinstance(recipe, str) else recipe
    train = split_of(read_examples(recipe.data, seed=recipe.seed), "train")
    return gather_training_set(train, sight, watch=watch)


def gather_training_set(
    examples: Sequence[Example], sight: Sight, *, watch: Watch = unwatched
) -> TrainingSet:
    """Those of the examples that have a picture and a caption."""
    both = [example for example in examples if example.pictured and example.captions]
    if not both:
        raise TellapartError(
            "the training set has no picture with captions",
            hint="name a recipe whose data has pictures and captions in its split 'train'",
        )
    return TrainingSet(
        tuple(example.image_id for example in both),
        tuple(example.captions for example in both),
        sight.look([example.path for example in both], watch=watch),
        CountedCaptions.count([words_of(example.captions) for example in both]),
    )


def words_of(captions: Sequence[str]) -> list[list[str]]:
    """Words as measures take them: tokens that hold a blank ("22 3/4") are several."""
    return [[word for token in tokens for word in token.split()] for tokens in tokenize_all(list(captions))]
