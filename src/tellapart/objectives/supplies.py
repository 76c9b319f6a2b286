"""What objectives may ask for beyond captioner and batch: they import none of it, it is handed to them.

A builder asks for all it needs, so that whatever is missing is named before the first step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from tellapart.arrays import Bool, Float, Float32, Int32
from tellapart.objectives.schedules import Pace
from tellapart.objectives.settings.rewards import RewardConfig
from tellapart.types import AnyCaptioner, Decoded, Prediction, Text, Vision


@runtime_checkable
class TrainingSet(Protocol):
    """The images that are trained on, by row."""

    def __len__(self) -> int: ...

    def vision(self, rows: Sequence[int]) -> Vision:
        """What the captioner's encoder saw in these images."""
        ...

    def captions(self, row: int) -> Sequence[Sequence[int]]:
        """The tokens of an image's captions, each from start to end; none where it has no caption."""
        ...

    def nearest(self, count: int) -> Int32[np.ndarray, "n k"]:
        """The rows of the images most like each image by their pooled features, the nearest first."""
        ...


@runtime_checkable
class FrozenRetriever(Protocol):
    """A retriever whose weights stay as they are, and through which gradients reach words."""

    @property
    def identity(self) -> str:
        """Its name with a hash of all that gives its vectors their meaning."""
        ...

    def picture_vectors(self, rows: Sequence[int]) -> Float[Tensor, "n d"]:
        """Vectors of pictures of the training set, not scaled to length 1."""
        ...

    def word_vectors(
        self, one_hot: Float[Tensor, "n t v"], mask: Bool[Tensor, "n t"]
    ) -> Float[Tensor, "n d"]:
        """Vectors of captions, not scaled, given as weights of the captioner's tokens; gradients pass.

        The mask is true for words, not for the end sign.
        """
        ...


@dataclass(frozen=True)
class Places:
    """Where a retriever places the training pictures and any sentence: unit rows, without gradients."""

    identity: str
    pictures: Float32[np.ndarray, "n d"]
    read: Callable[[Sequence[str]], Float32[np.ndarray, "m d"]]

    def embed(self, groups: Sequence[Sequence[str]]) -> Float32[np.ndarray, "n k d"]:
        """Where it places sentences, as many of each picture."""
        found = self.read([sentence for group in groups for sentence in group])
        return np.asarray(found.reshape(len(groups), -1, found.shape[-1]))


@runtime_checkable
class Sampler(Protocol):
    """Draws captions from a captioner, without gradients."""

    def __call__(
        self,
        captioner: AnyCaptioner,
        vision: Vision,
        *,
        count: int,
        temperature: float,
        generators: Sequence[torch.Generator],
    ) -> Decoded:
        """So many captions of each image, in the order drawn."""
        ...


Greedy = Callable[[AnyCaptioner, Vision], Decoded]  # the likeliest word at each step, without gradients
Reward = Callable[[Sequence[int], Sequence[Sequence[Sequence[int]]]], Float32[np.ndarray, "n k"]]
"""How good captions of training images are: rows, and for each the tokens of its captions (words and end)."""


@runtime_checkable
class Supplies(Protocol):
    """All that a builder of an objective may ask for."""

    @property
    def text(self) -> Text:
        """The captioner's words."""
        ...

    @property
    def max_words(self) -> int:
        """Words of a caption that is generated, at the most."""
        ...

    @property
    def pace(self) -> Pace:
        """How long training goes on."""
        ...

    @property
    def training_set(self) -> TrainingSet:
        """The images that are trained on."""
        ...

    @property
    def sample(self) -> Sampler:
        """Draws captions."""
        ...

    @property
    def greedy(self) -> Greedy:
        """Writes the likeliest words."""
        ...

    def own_copy(self) -> AnyCaptioner:
        """The captioner as it is before the first step: frozen, in evaluation mode."""
        ...

    def captioner(self, name: str) -> AnyCaptioner:
        """Another captioner by name or folder: frozen, in evaluation mode, with the same words and eyes."""
        ...

    def retriever(self, name: str) -> FrozenRetriever:
        """A retriever by name or folder."""
        ...

    def places(self, name: str) -> Places:
        """What any retriever, CLIP and SigLIP too, says of the training pictures and of captions."""
        ...

    def reward(self, config: RewardConfig) -> Reward:
        """How good captions of training images are, by one measure."""
        ...

    def frequent_words(self, count: int) -> Sequence[int]:
        """The tokens of the commonest words of the training captions."""
        ...

    def glimpse(self, captioner: AnyCaptioner | None = None) -> Prediction:
        """What a captioner, by default the one that is trained, says of one training image.

        It tells whether there are hidden states and attention, and of what sizes.
        """
        ...

    def likeness(self, neighbours: int) -> Sequence[Float32[np.ndarray, " k"]]:
        """Of each caption of each training image, how well it would fit the images most like its own.

        Mean CIDEr-D against the captions of so many neighbours (CIDErBtw, Wang et al. 2020).
        """
        ...
