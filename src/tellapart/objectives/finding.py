"""How well captions find their picture among those most like it, as a retriever sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tellapart.arrays import Float32, Int32, Int64
from tellapart.objectives.supplies import Places, Supplies
from tellapart.types import Text


@dataclass(frozen=True, slots=True)
class Finder:
    """Holds captions against their picture and its nearest neighbours."""

    places: Places
    near: Int32[np.ndarray, "all m"]  # rows of the pictures most like each
    text: Text

    def __call__(
        self, rows: Sequence[int], captions: Sequence[Sequence[Sequence[int]]]
    ) -> tuple[Int64[np.ndarray, "n k"], Float32[np.ndarray, "n k"]]:
        """Ranks, 0 the best, and margins: the own picture's cosine less that of the closest other.

        Another picture that is as close stands before the own one. Captions are given by their tokens.
        """
        said = self.places.embed([[self.text.decode(tokens) for tokens in group] for group in captions])
        among = np.concatenate([np.array(rows)[:, None], self.near[list(rows)]], 1)
        cosines = np.einsum("nkd,nmd->nkm", said, self.places.pictures[among])
        own, others = cosines[:, :, :1], cosines[:, :, 1:]
        return (others >= own).sum(-1), own[:, :, 0] - others.max(-1)


def build_finder(retriever: str, neighbours: int, supplies: Supplies) -> Finder:
    """By the retriever of that name or folder, CLIP and SigLIP too, among so many neighbours."""
    return Finder(supplies.places(retriever), supplies.training_set.nearest(neighbours), supplies.text)
