"""From losses of tokens to objectives of batches: the one place that shifts, and the one that averages."""

from __future__ import annotations

from torch import Tensor

from tellapart.arrays import Bool, Float
from tellapart.types import AnyCaptioner, Batch, Context, Loss, Objective, TokenLoss


def masked_mean(values: Float[Tensor, "b k t"], mask: Bool[Tensor, "b k t"]) -> Float[Tensor, ""]:
    """Mean over the tokens that are there, each counting the same whatever its caption's length."""
    return values.masked_fill(~mask, 0).sum() / mask.sum().clamp(min=1)


def token_objective(loss: TokenLoss, *, name: str) -> Objective:
    """Teacher forcing: predict each word from those before it, average the losses."""

    def objective(captioner: AnyCaptioner, batch: Batch, context: Context) -> Loss:
        prediction = captioner.predict(batch.vision, batch.tokens[:, :, :-1])
        labels, mask = batch.tokens[:, :, 1:], batch.mask[:, :, 1:]
        total = masked_mean(loss(prediction.logits, labels, mask), mask)
        return Loss(total, {name: total.item()})

    return objective
