"""What belongs to an image, not to each of its half-written captions: computed once, not once a beam."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tellapart.arrays import Int


@dataclass(frozen=True, slots=True)
class PerImage:
    """Tensors with one row an image, shared by `group` rows of a decoder's state that stand together.

    Row r of the state belongs to image r // group. A beam search only ever moves rows within their image, so
    its `select` leaves these tensors alone; any other selection takes the images it asks for.
    """

    tensors: tuple[Tensor, ...]  # each (b, ...)
    group: int = 1

    def select(self, rows: Int[Tensor, " r"]) -> PerImage:
        """The same for these rows of the state."""
        images, counts = torch.unique_consecutive(rows // self.group, return_counts=True)
        group = int(counts[0]) if len(counts) else 1
        if len(counts) and bool((counts != group).any()):
            images, group = rows // self.group, 1  # unequal shares: every row gets a copy of its own
        size = len(self.tensors[0])
        if len(images) == size and bool((images == torch.arange(size, device=images.device)).all()):
            return PerImage(self.tensors, group)
        return PerImage(tuple(tensor[images] for tensor in self.tensors), group)

    def grouped(self, rows: Tensor) -> Tensor:
        """Rows of the state as (images, group, ...), to meet the tensors without copying those."""
        return rows.view(-1, self.group, *rows.shape[1:])
