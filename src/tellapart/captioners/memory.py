"""What a captioner attends to: the places of the grid and, where it is given them, concept words."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tellapart.arrays import Float, Int
from tellapart.captioners.concepts import ConceptWords
from tellapart.captioners.expect import expect_grid
from tellapart.captioners.settings.kinds import GridConfig
from tellapart.data.word_text import WordText
from tellapart.types import Vision
from tellapart.vision.traits import EncoderTraits

FAINT = 1e-4  # the least probability of a concept word that still makes a difference


@dataclass(frozen=True, slots=True)
class Memory:
    """Rows to attend to: the places of the grid, then the concept words (none without them)."""

    values: Float[Tensor, "b n d"]
    bias: Float[Tensor, "b n"]  # added to every attention score: log-probability of a concept word, else 0
    words: Int[Tensor, "b c"]  # tokens of the last c rows


class Remember(nn.Module):
    """Brings grid and concept words into the captioner's width.

    Concept words are embedded by the captioner's own word embedding. Where only words are known of a picture,
    one learned vector stands at every place of the grid.
    """

    def __init__(
        self, config: GridConfig, *, text: WordText, traits: EncoderTraits, width: int, dropout: float
    ) -> None:
        super().__init__()
        self.places, grid_width = traits.grid()
        self.from_grid = nn.Linear(grid_width, width)
        self.dropout = nn.Dropout(dropout)
        self.concepts: ConceptWords | None = None
        if config.concepts:
            self.concepts = ConceptWords(count=config.concepts, text=text, traits=traits)
            self.absent = nn.Parameter(torch.randn(width) * 0.02)

    def forward(self, vision: Vision, embed: nn.Module) -> Memory:
        """The memory of each picture; `embed` turns tokens into vectors of the captioner's width."""
        expect_grid(vision.grid, places=self.places, width=self.from_grid.in_features)
        grid: Tensor = self.dropout(torch.relu(self.from_grid(vision.grid)))
        if self.concepts is None:
            return Memory(grid, grid.new_zeros(grid.shape[:2]), vision.grid.new_zeros(len(grid), 0).long())
        if vision.pictured is not None:
            grid = torch.where(vision.pictured[:, None, None], grid, self.absent)
        words, weights = self.concepts(vision.classes)
        values = torch.cat([grid, embed(words)], dim=1)
        bias = torch.cat([grid.new_zeros(grid.shape[:2]), weights.clamp(min=FAINT).log()], dim=1)
        return Memory(values, bias, words)


def grid_needs(config: GridConfig) -> frozenset[str]:
    """The parts of Vision that a captioner with such settings reads."""
    return frozenset({"grid", "classes"} if config.concepts else {"grid"})
