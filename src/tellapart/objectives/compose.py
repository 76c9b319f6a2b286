"""From losses of tokens to objectives of batches: the one place that shifts, and the one that averages.

Every mean is over a whole batch, of which the batch at hand may be a share: the losses of all shares, and so
their gradients, add up to those of the batch, whoever computes them and in how many portions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

import torch
from torch import Tensor

from tellapart.arrays import Bool, Float, Int
from tellapart.objectives.schedules import Weight
from tellapart.types import (
    AnyCaptioner,
    Batch,
    Context,
    Follows,
    Loss,
    Objective,
    Prediction,
    Remembers,
    TokenLoss,
    Vision,
)

NOTHING: Mapping[str, float] = MappingProxyType({})


def token_mean(
    values: Float[Tensor, "b k t"], mask: Bool[Tensor, "b k t"], batch: Batch
) -> Float[Tensor, ""]:
    """Mean over the tokens of a batch, each counting the same whatever its caption's length."""
    return values.masked_fill(~mask, 0).sum() / max(1, batch.totals().tokens)


def caption_mean(values: Float[Tensor, "b k"], there: Bool[Tensor, "b k"], batch: Batch) -> Float[Tensor, ""]:
    """Mean over the captions of a batch."""
    return values.masked_fill(~there, 0).sum() / max(1, batch.totals().captions)


def image_mean(values: Float[Tensor, " b"], batch: Batch) -> Float[Tensor, ""]:
    """Mean over the images of a batch."""
    return values.sum() / max(1, batch.totals().images)


def share_of(batch: Batch) -> float:
    """How much of its whole batch this is: a figure that all images share, times this, adds up to itself."""
    return len(batch.vision) / max(1, batch.totals().images)


def add_up(terms: Mapping[str, Float[Tensor, ""]], more: Mapping[str, float] = NOTHING) -> Loss:
    """The loss that is the sum of these terms; the log tells of each, and of `more`."""
    total = torch.stack(list(terms.values())).sum()
    return Loss(total, {name: term.item() for name, term in terms.items()} | dict(more), terms)


def token_objective(loss: TokenLoss, *, name: str) -> Objective:
    """Teacher forcing: predict each word from those before it, average the losses."""

    def objective(captioner: AnyCaptioner, batch: Batch, context: Context) -> Loss:
        prediction = captioner.predict(batch.vision, batch.tokens[:, :, :-1])
        labels, mask = batch.tokens[:, :, 1:], batch.mask[:, :, 1:]
        return add_up({name: token_mean(loss(prediction.logits, labels, mask), mask, batch)})

    return objective


def log_probabilities(
    captioner: AnyCaptioner, vision: Vision, tokens: Int[Tensor, "b k t"], mask: Bool[Tensor, "b k t"]
) -> Float[Tensor, "b k"]:
    """The log-probability ln p(c|I) of captions, end sign included; 0 for one that is not there."""
    prediction = captioner.predict(vision, tokens[:, :, :-1])
    return caption_log_probabilities(prediction, tokens, mask)


def caption_log_probabilities(
    prediction: Prediction, tokens: Int[Tensor, "b k t"], mask: Bool[Tensor, "b k t"]
) -> Float[Tensor, "b k"]:
    """The same of captions that were read already, all but their last token."""
    chosen = label_log_probabilities(prediction.logits, tokens[:, :, 1:])
    return chosen.masked_fill(~mask[:, :, 1:], 0).sum(-1)


def label_log_probabilities(
    logits: Float[Tensor, "b k t v"], labels: Int[Tensor, "b k t"]
) -> Float[Tensor, "b k t"]:
    """The log-probability of each label: a gather and a reduction, never a second array of words."""
    if logits.dtype == torch.bfloat16:
        logits = logits.float()  # sums over a caption, and their differences, need the digits
    return logits.gather(-1, labels.unsqueeze(-1)).squeeze(-1) - logits.logsumexp(-1)


class Mixture(torch.nn.Module):
    """Several objectives, each with a weight that may change from step to step."""

    def __init__(self, parts: Sequence[tuple[str, Objective, Weight]]) -> None:
        super().__init__()
        self._parts = parts
        for name, objective, _ in parts:
            if isinstance(objective, torch.nn.Module):
                self.add_module(name, objective)  # what it has learnt belongs into checkpoints

    def forward(self, captioner: AnyCaptioner, batch: Batch, context: Context) -> Loss:
        """The weighed sum; a part of weight 0 is not computed."""
        terms: dict[str, Tensor] = {}
        values: dict[str, float] = {}
        for name, objective, weight in self._parts:
            amount = weight(context.step)
            values[f"{name}/weight"] = amount * share_of(batch)
            if amount == 0:
                continue
            loss = objective(captioner, batch, context)
            terms[name] = amount * loss.total
            values |= {f"{name}/{part}": value for part, value in loss.parts.items()}
        if not terms:
            terms["nothing"] = batch.vision.pooled.new_zeros((), requires_grad=True)
        return add_up(terms, values)

    def after_step(self, step: int, add_up: Callable[[Iterable[Tensor]], None]) -> None:
        """Tell those parts that keep something."""
        for objective in self._objectives():
            if isinstance(objective, Remembers):
                objective.after_step(step, add_up)

    def note_best(self, captioner: AnyCaptioner) -> None:
        """Tell those parts that want to know."""
        for objective in self._objectives():
            if isinstance(objective, Follows):
                objective.note_best(captioner)

    def _objectives(self) -> Sequence[object]:
        return [objective for _, objective, _ in self._parts]
