"""Captioners that see all they need of a picture before the first word."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from torch import Tensor

from tellapart.arrays import Int
from tellapart.types import Captioner, Prediction, S, Vision

Seen = TypeVar("Seen")


class SeesFirst(Captioner[S], Generic[S, Seen]):
    """Looks at a picture once, however many captions of whatever length are read to it."""

    sees_once = True

    @abstractmethod
    def see(self, vision: Vision) -> Seen:
        """All that needs no words."""

    @abstractmethod
    def read(self, seen: Seen, tokens: Int[Tensor, "b k t"]) -> Prediction:
        """What follows after each token of captions of pictures that were seen."""

    def predict(self, vision: Vision, tokens: Int[Tensor, "b k t"]) -> Prediction:
        """See, then read."""
        return self.read(self.see(vision), tokens)

    def predict_each(self, vision: Vision, parts: Sequence[Int[Tensor, "b _ _"]]) -> list[Prediction]:
        """See once, then read every group."""
        seen = self.see(vision)
        return [self.read(seen, tokens) for tokens in parts]
