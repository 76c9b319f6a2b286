"""Captions that the captioner itself draws in training, and how likely it was to draw them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tellapart.arrays import Bool, Float, Int
from tellapart.objectives.compose import label_log_probabilities
from tellapart.objectives.supplies import Sampler
from tellapart.objectives.writing import as_used, forbidden_words
from tellapart.types import AnyCaptioner, Vision


@dataclass(frozen=True, slots=True)
class Drawn:
    """Captions as a batch holds them."""

    tokens: Int[Tensor, "b k t"]  # start, words, end, padding
    mask: Bool[Tensor, "b k t"]  # true from start to end

    def written(self) -> list[list[list[int]]]:
        """The tokens of each: words and end."""
        return token_lists(self.tokens[:, :, 1:], self.mask[:, :, 1:])


@dataclass(frozen=True, slots=True)
class Drawing:
    """How captions are drawn.

    Without dropout, whose pattern hangs on the batch: an image then draws the same in whatever company.
    """

    sample: Sampler
    count: int
    max_words: int
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

    def log_probabilities(
        self, captioner: AnyCaptioner, vision: Vision, drawn: Drawn
    ) -> Float[Tensor, "b k"]:
        """The log-probability with which captions were drawn, with gradients: one pass over all of them.

        It is that of the distribution they come from, the softmax of the divided logits over what may be
        written; so Σ p(c) over all captions is 1, and the gradient of rewards has no bias.
        """
        labels, there = drawn.tokens[:, :, 1:], drawn.mask[:, :, 1:]
        logits = captioner.predict(vision, drawn.tokens[:, :, :-1]).logits
        logits = logits if self.temperature == 1 else logits / self.temperature
        forbidden = forbidden_words(captioner.text, labels.size(-1), logits.device, max_words=self.max_words)
        # Padding may not be written; the end sign may, so that all numbers behind the end are finite too.
        labels = labels.masked_fill(~there, captioner.text.end)
        chosen = label_log_probabilities(logits.masked_fill(forbidden, -torch.inf), labels)
        return chosen.masked_fill(~there, 0).sum(-1)


def token_lists(tokens: Int[Tensor, "b k t"], mask: Bool[Tensor, "b k t"]) -> list[list[list[int]]]:
    """The tokens of captions without padding."""
    lengths = mask.sum(-1).tolist()
    return [
        [caption[:length] for caption, length in zip(group, sizes, strict=True)]
        for group, sizes in zip(tokens.tolist(), lengths, strict=True)
    ]
