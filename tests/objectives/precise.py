"""A learner's captioner, supplies and batches in double precision, for laws that ask for equality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from tests.objectives.material import doubled

from tellapart.captioner_learner import CaptionerLearner
from tellapart.objectives.compose import log_probabilities
from tellapart.objectives.parts import OBJECTIVES
from tellapart.supplies import RecipeSupplies, TrainedOn
from tellapart.types import AnyCaptioner, Batch, Objective, Vision


@dataclass(frozen=True)
class DoubleSet(TrainedOn):
    """Training images in double precision."""

    def vision(self, rows: Sequence[int]) -> Vision:
        seen = super().vision(rows)
        return Vision(seen.grid.double(), seen.pooled.double(), seen.classes.double(), seen.pictured)


@dataclass(frozen=True)
class DoubleSupplies(RecipeSupplies):
    """Supplies in double precision."""

    @cached_property
    def training_set(self) -> DoubleSet:
        return DoubleSet(self.ready.train_set, self.recipe.encoder.name, self.device)

    def captioner(self, name: str) -> AnyCaptioner:
        return super().captioner(name).double()


@dataclass(frozen=True)
class Precise:
    """A learner in double precision and evaluation mode."""

    learner: CaptionerLearner

    def __post_init__(self) -> None:
        self.network.double().eval()

    @property
    def network(self) -> AnyCaptioner:
        return self.learner.network

    @cached_property
    def supplies(self) -> DoubleSupplies:
        real = self.learner.supplies
        return DoubleSupplies(real.recipe, real.ready, real.pace, real.device)

    def batch(self, step: int = 0) -> Batch:
        return doubled(self.learner.batch(step))

    def objective(self) -> Objective:
        name, config = self.learner.recipe.part("objective")
        built: Objective = OBJECTIVES.get(name).builder()(config, self.supplies)
        return built

    def weights(self) -> list[torch.Tensor]:
        return [weight for weight in self.network.parameters() if weight.requires_grad]


def move(network: AnyCaptioner, seed: int = 0, amount: float = 0.1) -> None:
    """Let a captioner differ from its copies."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in network.parameters():
            noise = torch.randn(weight.shape, generator=generator, dtype=torch.float64)
            weight.add_(noise.to(weight), alpha=amount)


def likelihoods(network: AnyCaptioner, batch: Batch, captions: torch.Tensor, pad: int) -> torch.Tensor:
    """ln p of captions (b, n, t) of a batch's images, one caption at a time and without padding."""
    found = torch.zeros(captions.shape[:2], dtype=torch.float64)
    for image in range(captions.size(0)):
        vision = batch.vision.select(torch.tensor([image]))
        for place, caption in enumerate(captions[image]):
            tokens = caption[caption != pad].view(1, 1, -1)
            if tokens.size(2) > 1:
                value = log_probabilities(network, vision, tokens, torch.ones_like(tokens, dtype=torch.bool))
                found[image, place] = value.squeeze()
    return found
