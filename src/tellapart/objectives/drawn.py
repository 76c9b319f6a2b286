"""Captions that the captioner itself writes in training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tellapart.arrays import Bool, Int
from tellapart.objectives.supplies import Sampler
from tellapart.objectives.writing import as_used
from tellapart.types import AnyCaptioner, Vision


@dataclass(frozen=True, slots=True)
class Drawn:
    """Captions as a batch holds them."""

    tokens: Int[Tensor, "b k t"]  # start, words, end, padding
    mask: Bool[Tensor, "b k t"]  # true from start to end


@dataclass(frozen=True, slots=True)
class Drawing:
    """How captions are drawn.

    Without dropout, whose pattern hangs on the batch: an image then draws the same in whatever company.
    """

    sample: Sampler
    count: int
    temperature: float = 1.0

    def __call__(
        self, captioner: AnyCaptioner, vision: Vision, generators: Sequence[torch.Generator]
    ) -> Drawn:
        """So many captions of each image."""
        with as_used(captioner):
            found = self.sample(
                captioner, vision, count=self.count, temperature=self.temperature, generators=generators
            )
        start = torch.full_like(found.tokens[:, :, :1], captioner.text.start)
        there = torch.ones_like(found.mask[:, :, :1])
        return Drawn(torch.cat([start, found.tokens], 2), torch.cat([there, found.mask], 2))
