"""Distillation: what other captioners expect, as labels that are not all or nothing."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tellapart.arrays import Float, Int
from tellapart.objectives.compose import add_up, token_mean
from tellapart.objectives.settings.likelihood import DistillationConfig
from tellapart.objectives.supplies import Supplies
from tellapart.objectives.tokens import distillation, mle
from tellapart.types import AnyCaptioner, Batch, Context, Loss, Objective, Vision


def build_distillation(config: DistillationConfig, supplies: Supplies) -> Objective:
    """λ·MLE + (1-λ)·KD, KD being the cross-entropy with the mean of the teachers' probabilities (Eq. 4)."""
    names = config.teachers or [""]
    teachers = [supplies.captioner(name) if name else supplies.own_copy() for name in names]

    def objective(captioner: AnyCaptioner, batch: Batch, context: Context) -> Loss:
        given, labels, mask = batch.tokens[:, :, :-1], batch.tokens[:, :, 1:], batch.mask[:, :, 1:]
        logits = captioner.predict(batch.vision, given).logits
        terms = {}
        if config.mle_share > 0:
            terms["mle"] = config.mle_share * token_mean(mle(logits, labels, mask), mask, batch)
        if config.mle_share < 1:
            wanted = mean_probabilities(teachers, batch.vision, given, temperature=config.temperature)
            losses = distillation(logits, wanted.to(logits), mask, temperature=config.temperature)
            terms["distillation"] = (1 - config.mle_share) * token_mean(losses, mask, batch)
        return add_up(terms)

    return objective


@torch.no_grad()
def mean_probabilities(
    teachers: Sequence[AnyCaptioner], vision: Vision, tokens: Int[Tensor, "b k t"], *, temperature: float
) -> Float[Tensor, "b k t v"]:
    """What captioners expect after each token, each softened, on average."""
    mean = (teachers[0].predict(vision, tokens).logits / temperature).softmax(-1)
    for teacher in teachers[1:]:
        mean += (teacher.predict(vision, tokens).logits / temperature).softmax(-1)
    return mean / len(teachers)
