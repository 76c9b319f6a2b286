"""How much likelier a caption is to the captioner that learns than to one that stays as it is.

G(c, I) = ln p(c|I) - ln p_ref(c|I) is what contrastive learning (Dai & Lin, Eq. 7) and direct preference
optimisation have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional

from tellapart.arrays import Bool, Float, Int
from tellapart.data.batches import pad_captions
from tellapart.objectives.by_length import log_probabilities_by_length
from tellapart.objectives.compose import log_probabilities
from tellapart.objectives.supplies import Supplies, TrainingSet
from tellapart.types import AnyCaptioner, Batch, Vision

BLOCK = 4  # images whose captions are scored together

Kept = Callable[[int], tuple[Int[Tensor, "k n t"], Bool[Tensor, "k n t"]]]
"""Captions that each caption of the image of a row is always compared with."""


class Reference:
    """A captioner that stays as it is, and what it thinks of the training captions.

    It is no module: neither is it trained nor does a checkpoint hold it. Its scores of training captions are
    computed once, always in the same company, whatever the batch that asks for them first: a run that was
    resumed, which has forgotten them, gets the same bits.
    """

    def __init__(self, captioner: AnyCaptioner, training_set: TrainingSet) -> None:
        self.captioner = captioner
        self._version = 0
        self._training_set = training_set
        self._scores: dict[int, Float[Tensor, " k"]] = {}
        self._kept: dict[int, Float[Tensor, "k n"]] = {}

    def use(self, captioner: AnyCaptioner, version: int) -> None:
        """Let another captioner be the reference; the scores are those of one version of it."""
        if version != self._version:
            self._scores.clear()
            self._kept.clear()
        self.captioner, self._version = captioner, version

    @torch.no_grad()
    def of(
        self, vision: Vision, tokens: Int[Tensor, "b k t"], mask: Bool[Tensor, "b k t"]
    ) -> Float[Tensor, "b k"]:
        """Ln p_ref(c|I) of any captions; 0 for one that is not there."""
        return log_probabilities_by_length(self.captioner, vision, tokens, mask)

    @torch.no_grad()
    def of_batch(self, batch: Batch) -> Float[Tensor, "b k"]:
        """Ln p_ref(c|I) of the captions of a batch, remembered where an image is what it was before."""
        imagined = batch.vision.pictured is not None and not batch.vision.pictured.all()
        if imagined or not batch.rows:
            return self.of(batch.vision, batch.tokens, batch.mask)
        for row in batch.rows:
            if row not in self._scores:
                self._score_block(row, batch.tokens.device)
        most = batch.tokens.size(1)
        chosen = [
            self._scores[row][list(places)] for row, places in zip(batch.rows, batch.places, strict=True)
        ]
        return torch.stack([functional.pad(scores, (0, most - len(scores))) for scores in chosen])

    @torch.no_grad()
    def of_kept(self, batch: Batch, kept: Kept) -> Float[Tensor, "b k n"]:
        """Ln p_ref(c|I) of the captions that the captions of a batch keep beside them; remembered as well.

        An image's are computed together, and in no other company.
        """
        for row in batch.rows:
            if row not in self._kept:
                tokens, mask = (each.to(batch.tokens.device) for each in kept(row))
                vision = self._training_set.vision([row]).to(batch.tokens.device)
                found = self.of(vision, tokens.flatten(0, 1)[None], mask.flatten(0, 1)[None])
                self._kept[row] = found.view(mask.shape[:2])
        most = batch.tokens.size(1)
        chosen = [self._kept[row][list(places)] for row, places in zip(batch.rows, batch.places, strict=True)]
        return torch.stack([functional.pad(scores, (0, 0, 0, most - len(scores))) for scores in chosen])

    def _score_block(self, row: int, device: torch.device) -> None:
        at = self._places[row] // BLOCK * BLOCK
        rows = self._order[at : at + BLOCK]
        captions = [self._training_set.captions(other) for other in rows]
        tokens, mask = pad_captions(captions, pad=self.captioner.text.pad)
        vision = self._training_set.vision(rows).to(device)
        scores = log_probabilities(self.captioner, vision, tokens.to(device), mask.to(device))
        for other, group, some in zip(rows, captions, scores, strict=True):
            self._scores[other] = some[: len(group)]

    @cached_property
    def _order(self) -> Sequence[int]:
        """Rows by the length of their longest caption: little padding in a block."""
        rows = range(len(self._training_set))
        return sorted(rows, key=lambda row: max(map(len, self._training_set.captions(row)), default=0))

    @cached_property
    def _places(self) -> dict[int, int]:
        return {row: place for place, row in enumerate(self._order)}


def build_reference(name: str, supplies: Supplies) -> Reference:
    """The captioner of that name or folder; without one, the captioner as it is before the first step."""
    return Reference(supplies.captioner(name) if name else supplies.own_copy(), supplies.training_set)
