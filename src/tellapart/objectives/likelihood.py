"""Maximum likelihood: plain and varied, as the m-RNN paper writes its cost, and with unlikelihood."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from tellapart.arrays import Bool, Float, Int
from tellapart.data.word_text import WordText
from tellapart.errors import TellapartError
from tellapart.objectives.compose import add_up, token_mean, token_objective
from tellapart.objectives.schedules import build_weight
from tellapart.objectives.settings.likelihood import MLEConfig, MRNNCostConfig, UnlikelihoodConfig
from tellapart.objectives.supplies import Supplies
from tellapart.objectives.tokens import mle, previous_words, unlikelihood
from tellapart.types import AnyCaptioner, Batch, Context, Loss, Objective

WordDropout = Callable[[Batch, Context], Int[Tensor, "b k t"]]  # what a captioner is given to read


def build_mle(config: MLEConfig, supplies: Supplies) -> Objective:
    """Mean negative log-likelihood a token, in nats."""
    drop = build_word_dropout(config, supplies)
    weigh = build_caption_weights(config, supplies) if config.caption_weights else None

    def objective(captioner: AnyCaptioner, batch: Batch, context: Context) -> Loss:
        given = drop(batch, context) if captioner.training else batch.tokens[:, :, :-1]
        labels, mask = batch.tokens[:, :, 1:], batch.mask[:, :, 1:]
        logits = captioner.predict(batch.vision, given).logits
        losses = mle(logits, labels, mask, label_smoothing=config.label_smoothing)
        if weigh:
            losses = losses * weigh(batch).to(losses).unsqueeze(-1)
        return add_up({"mle": token_mean(losses, mask, batch)})

    return objective


def build_mrnn_cost(config: MRNNCostConfig, supplies: Supplies) -> Objective:
    """Eq. 6 of m-RNN: mean -log2-likelihood a word, plus λ_θ times the squared norm of the weights."""
    likelihood = token_objective(mle, name="mle")

    def objective(captioner: AnyCaptioner, batch: Batch, context: Context) -> Loss:
        bits = likelihood(captioner, batch, context).total / math.log(2)
        share = len(batch.vision) / batch.totals().images  # of a penalty that the whole batch pays once
        return add_up({"bits": bits, "l2": config.l2 * share * squared_norm(captioner)})

    return objective


def squared_norm(module: nn.Module) -> Float[Tensor, ""]:
    """‖θ‖², over everything that is trained."""
    norms = [parameter.square().sum() for parameter in module.parameters() if parameter.requires_grad]
    return norms[0].new_tensor(0.0) + sum(norms)


def build_unlikelihood(config: UnlikelihoodConfig, supplies: Supplies) -> Objective:
    """Likelihood of the labels, and -Σ ln(1 - p) of the words that are not to be said, both a token."""
    weight = build_weight(config.weight, supplies.pace)
    listed = supplies.frequent_words(config.frequent) if config.candidates == "frequent" else []
    frequent = torch.tensor(listed, dtype=torch.long)

    def objective(captioner: AnyCaptioner, batch: Batch, context: Context) -> Loss:
        labels, mask = batch.tokens[:, :, 1:], batch.mask[:, :, 1:]
        logits = captioner.predict(batch.vision, batch.tokens[:, :, :-1]).logits
        if config.candidates == "frequent":
            words = frequent.to(labels.device).expand(*labels.shape, -1)
            counted = words != labels.unsqueeze(-1)
        else:
            words, counted = previous_words(labels, mask)
        terms = {
            "mle": token_mean(mle(logits, labels, mask), mask, batch),
            "unlikelihood": weight(context.step)
            * token_mean(unlikelihood(logits, mask, words, counted), mask, batch),
        }
        return add_up(terms)

    return objective


def build_word_dropout(config: MLEConfig, supplies: Supplies) -> WordDropout:
    """How captions are read in training: some words, drawn afresh each time, only as the unknown one."""
    if config.word_dropout == 0:
        return lambda batch, context: batch.tokens[:, :, :-1]
    text, share = supplies.text, build_weight(config.word_dropout, supplies.pace)
    if not isinstance(text, WordText):
        raise TellapartError(
            "objective.word_dropout: the captioner reads pieces of a tokenizer, none of which is the "
            "unknown word",
            hint="set it to 0, or train a captioner that reads words",
        )
    unknown = text.vocabulary.unknown

    def drop(batch: Batch, context: Context) -> Int[Tensor, "b k t"]:
        generators = [context.of_image(row) for row in batch.rows]
        dropped = draw_words(batch.mask, share(context.step), generators)
        return batch.tokens[:, :, :-1].masked_fill(dropped.to(batch.tokens.device), unknown)

    return drop


def draw_words(
    mask: Bool[Tensor, "b k t"], share: float, generators: Sequence[torch.Generator]
) -> Bool[Tensor, "b k t-1"]:
    """Which of the words that are read to drop: each with that probability, never start or end sign.

    Every image draws as many numbers as it has words, so that padding changes nothing.
    """
    words = mask[:, :, 1:].cpu().clone()  # where something is to be expected, a word or the start is read
    words[:, :, 0] = False
    counts = words.flatten(1).sum(1).tolist()
    drawn = torch.cat(
        [torch.rand(count, generator=generator) for count, generator in zip(counts, generators, strict=True)]
    )
    return words.masked_scatter(words, drawn < share)


def build_caption_weights(config: MLEConfig, supplies: Supplies) -> Callable[[Batch], Float[Tensor, "b k"]]:
    """What the captions of a batch count: the less, the better they would fit neighbours of their image."""
    likeness = [torch.as_tensor(found) for found in supplies.likeness(config.neighbours)]
    table = nn.utils.rnn.pad_sequence(likeness, batch_first=True)  # image, caption
    relative = table / table.amax(1, keepdim=True).clamp(min=torch.finfo(table.dtype).tiny)
    weights = config.weight_most - config.weight_fall * relative

    def weigh(batch: Batch) -> Float[Tensor, "b k"]:
        most = batch.tokens.shape[1]
        places = [[*some, *[0] * (most - len(some))] for some in batch.places]
        return weights[torch.tensor(batch.rows).unsqueeze(1), torch.tensor(places)]

    return weigh
