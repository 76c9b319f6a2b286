"""The few records that travel between the parts, and what a captioner is.

Letters of the shapes: b images, k captions an image, t places in a caption, v words, n places in a grid,
d features, l layers, h heads, r rows of a decoder's state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from tellapart.arrays import Bool, Float, Int


@dataclass(frozen=True, slots=True)
class Vision:
    """What the encoder saw. A part that nobody asked for has size 0."""

    grid: Float[Tensor, "b n d"]
    pooled: Float[Tensor, "b p"]
    classes: Float[Tensor, "b c"]
    # False where only words are known of a picture: grid and pooled are then zeros. None: all are pictured.
    pictured: Bool[Tensor, " b"] | None = None

    def __len__(self) -> int:
        return len(self.pooled)

    def select(self, rows: Int[Tensor, " r"]) -> Vision:
        """The images of these rows, in this order; a row may come twice."""
        pictured = None if self.pictured is None else self.pictured[rows]
        return Vision(self.grid[rows], self.pooled[rows], self.classes[rows], pictured)

    def to(self, device: torch.device) -> Vision:
        """The same on another device."""
        pictured = None if self.pictured is None else self.pictured.to(device)
        return Vision(self.grid.to(device), self.pooled.to(device), self.classes.to(device), pictured)


@dataclass(frozen=True, slots=True)
class Totals:
    """How much a whole batch holds, where a process or a portion sees only a share of it."""

    images: int
    captions: int
    tokens: int  # words and end signs to be expected


@dataclass(frozen=True, slots=True)
class Batch:
    """Images with their captions: each image is seen once, whatever the number of its captions."""

    image_ids: tuple[str, ...]
    vision: Vision
    tokens: Int[Tensor, "b k t"]  # start, words, end, padding
    mask: Bool[Tensor, "b k t"]  # true from start to end; a caption that is not there is false throughout
    rows: tuple[int, ...] = ()  # of the images in the training set; () where they are from none
    places: tuple[tuple[int, ...], ...] = ()  # of the captions among all those of their image
    whole: Totals | None = None  # of the batch that this is a share of; None: of this one

    def totals(self) -> Totals:
        """What losses are averaged over: those of all shares of a batch then add up to that of the batch."""
        if self.whole is not None:
            return self.whole
        expected = self.mask[:, :, 1:]
        return Totals(len(self.vision), int(expected.any(-1).sum()), int(expected.sum()))

    def to(self, device: torch.device) -> Batch:
        """The same where the network is."""
        return replace(
            self, vision=self.vision.to(device), tokens=self.tokens.to(device), mask=self.mask.to(device)
        )


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a captioner expects after each token it was given."""

    logits: Float[Tensor, "b k t v"]
    hidden: tuple[Float[Tensor, "b k t d"], ...] = ()  # one a decoder layer
    attention: tuple[Float[Tensor, "b k h t n"], ...] = ()  # one a decoder layer; rows sum to 1


@dataclass(frozen=True, slots=True)
class Decoded:
    """Captions found by a decoder, best first, without the start sign."""

    tokens: Int[Tensor, "b k t"]  # words and end sign, then padding
    mask: Bool[Tensor, "b k t"]  # true for words and end sign
    log_probabilities: Float[Tensor, "b k"]  # of the whole caption under the captioner, end sign included


@dataclass(frozen=True, slots=True)
class Loss:
    """What is minimised, and what it is made of for the log.

    Of a share of a batch, both are its share of the whole batch's values: over all shares they add up.
    """

    total: Float[Tensor, ""]
    parts: Mapping[str, float]
    terms: Mapping[str, Float[Tensor, ""]] = field(default_factory=dict)  # weighed; they add up to the total


@dataclass(frozen=True, slots=True)
class Context:
    """What changes from step to step: the step's number and its sources of randomness."""

    step: int
    generator: torch.Generator
    seed: int = 0

    def of_image(self, row: int) -> torch.Generator:
        """An image's own source in this step: what it draws does not depend on the rest of its batch."""
        (number,) = np.random.SeedSequence([self.seed, self.step, row]).generate_state(1, np.uint64)
        return torch.Generator().manual_seed(int(number >> np.uint64(1)))  # torch takes 63 bits

    def apart(self, purpose: str) -> Context:
        """The same step for those who draw for a second purpose: images then have other sources."""
        (number,) = np.random.SeedSequence([self.seed, *purpose.encode()]).generate_state(1, np.uint64)
        return replace(self, seed=int(number))


@runtime_checkable
class Text(Protocol):
    """How captions become a captioner's tokens and back: words of a vocabulary, or pieces of a tokenizer."""

    @property
    def pad(self) -> int:
        """What fills short captions up; never written."""
        ...

    @property
    def start(self) -> int:
        """What stands before the first token of a caption."""
        ...

    @property
    def end(self) -> int:
        """What closes a caption."""
        ...

    @property
    def silent(self) -> Sequence[int]:
        """Tokens that no decoder may write."""
        ...

    @property
    def fingerprint(self) -> str:
        """A hash of all that gives tokens their meaning."""
        ...

    def __len__(self) -> int: ...

    def encode(self, caption: str) -> list[int]:
        """The tokens of a caption, from start to end."""
        ...

    def decode(self, tokens: Iterable[int]) -> str:
        """The caption of tokens, up to the end sign."""
        ...

    def beginning(self, words_to_begin_with: str) -> tuple[int, ...]:
        """The tokens of words that a caption is to begin with; an error where it cannot write them."""
        ...


@runtime_checkable
class State(Protocol):
    """What a captioner remembers of each half-written caption: its own business."""

    def select(self, rows: Int[Tensor, " r"]) -> State:
        """The state of these rows, in this order; a row may come twice."""
        ...


S = TypeVar("S", bound=State)


class Captioner(nn.Module, ABC, Generic[S]):
    """A network that continues a caption of an image, word by word.

    Objectives and decoders use nothing but these calls, `select` of the state and the attributes.
    """

    text: Text
    needs: frozenset[str]  # the parts of Vision it reads: "grid", "pooled", "classes"
    longest: int | None = None  # tokens of a caption that it reads at the most, the start sign included
    sees_once: bool = False  # whether `predict_each` does what it does for an image once for all groups

    @abstractmethod
    def predict(self, vision: Vision, tokens: Int[Tensor, "b k t"]) -> Prediction:
        """Teacher forcing: what follows after each given token (start sign included)."""

    def predict_each(self, vision: Vision, parts: Sequence[Int[Tensor, "b _ _"]]) -> list[Prediction]:
        """The same of several groups of captions of these images, each as long as its own longest.

        A captioner that does much for an image before the first word should do that once, and say so.
        """
        return [self.predict(vision, tokens) for tokens in parts]

    @abstractmethod
    def begin(self, vision: Vision) -> S:
        """The state before the first token, one row an image."""

    @abstractmethod
    def step(self, token: Int[Tensor, " r"], state: S) -> tuple[Float[Tensor, "r v"], S]:
        """Take one token a row; give the logits of the next and the state after it."""


@runtime_checkable
class MeetsLate(Protocol):
    """A captioner that may read words without the image: they first meet in the layer below the softmax.

    All that stands before a word then needs to be read once, whatever the number of images.
    """

    @property
    def meets_late(self) -> bool:
        """Whether this one does; if not, the rest has no meaning."""
        ...

    @property
    def softmax(self) -> nn.Linear:
        """The last layer: from where they have met to the logits."""
        ...

    def hear(
        self, token: Int[Tensor, " r"], before: Float[Tensor, "r d"] | None
    ) -> tuple[Float[Tensor, "r m"], Float[Tensor, "r d"]]:
        """Take one token a row: what all words so far add where they meet the image, and the state."""
        ...

    def see(self, vision: Vision) -> Float[Tensor, "b m"]:
        """What each image adds there."""
        ...

    def join(self, heard: Float[Tensor, "*p #b m"], seen: Float[Tensor, "b m"]) -> Float[Tensor, "*p b d"]:
        """What the last layer reads of each of these words with each of these images."""
        ...


@runtime_checkable
class Remembers(Protocol):
    """An objective that keeps something from one step to the next.

    What it keeps are buffers or parameters of a module, so that checkpoints hold it.
    """

    def after_step(self, step: int, add_up: Callable[[Iterable[Tensor]], None]) -> None:
        """A step is over; `add_up` replaces tensors by their sums over all processes."""
        ...


@runtime_checkable
class Follows(Protocol):
    """An objective that wants to know when the captioner is the best so far."""

    def note_best(self, captioner: AnyCaptioner) -> None:
        """It is."""
        ...


AnyCaptioner = Captioner[Any]  # whatever its state: those who call it only hand the state back
Objective = Callable[[AnyCaptioner, Batch, Context], Loss]
TokenLoss = Callable[
    [Float[Tensor, "b k t v"], Int[Tensor, "b k t"], Bool[Tensor, "b k t"]], Float[Tensor, "b k t"]
]
