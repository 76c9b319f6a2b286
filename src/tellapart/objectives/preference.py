"""Direct preference optimisation (Rafailov et al. 2023) on pairs that self-retrieval makes.

Of several captions that the captioner writes of an image, a frozen retriever prefers the one that finds the
image best among its nearest neighbours, and likes the one least that finds it worst.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from tellapart.arrays import Bool, Float, Int
from tellapart.objectives.compose import add_up, image_mean, log_probabilities, token_objective
from tellapart.objectives.drawn import Drawing, Drawn
from tellapart.objectives.finding import Finder, build_finder
from tellapart.objectives.log_ratio import Reference, build_reference
from tellapart.objectives.schedules import Weight, build_weight
from tellapart.objectives.settings.preference import DPOConfig
from tellapart.objectives.supplies import Supplies
from tellapart.objectives.tokens import mle
from tellapart.types import AnyCaptioner, Batch, Context, Loss, Objective


def build_dpo(config: DPOConfig, supplies: Supplies) -> Objective:
    """Preference by self-retrieval."""
    finder = build_finder(config.retriever, config.neighbours, supplies)
    drawing = Drawing(supplies.sample, config.samples, supplies.max_words, config.temperature)
    reference = build_reference(config.reference, supplies)
    return Preference(config, finder, drawing, reference, build_weight(config.mle_weight, supplies.pace))


@dataclass(frozen=True, slots=True)
class Preference:
    """The likelier the winner is, and the less likely the loser, compared with the reference, the better."""

    config: DPOConfig
    finder: Finder
    drawing: Drawing
    reference: Reference
    weight: Weight  # of the likelihood

    def __call__(self, captioner: AnyCaptioner, batch: Batch, context: Context) -> Loss:
        """Mean over images; one whose captions find it equally well has no pair, and counts 0."""
        drawn = self.drawing(captioner, batch.vision, [context.of_image(row) for row in batch.rows])
        found = self.finder(batch.rows, drawn.written())
        ranks, margins = (torch.from_numpy(values).to(batch.tokens.device) for values in found)
        pairs, paired = choose_pairs(drawn, ranks, margins, prefer=self.config.prefer)
        ratios = log_probabilities(captioner, batch.vision, pairs.tokens, pairs.mask) - self.reference.of(
            batch.vision, pairs.tokens, pairs.mask
        )
        losses = preference_loss(ratios[:, 0], ratios[:, 1], beta=self.config.beta)
        terms = {"dpo": image_mean(losses.masked_fill(~paired, 0), batch)}
        amount = self.weight(context.step)
        if amount:
            likelihood = token_objective(mle, name="mle")
            terms["mle"] = amount * likelihood(captioner, batch, context).total
        better = (ratios[:, 0] > ratios[:, 1]) & paired
        told = {"pairs": paired, "winner_gains_more": better, "rank": ranks.double().mean(1)}
        means = {name: image_mean(values.to(ratios.dtype), batch).item() for name, values in told.items()}
        return add_up(terms, means)


def preference_loss(
    winner: Float[Tensor, " b"], loser: Float[Tensor, " b"], *, beta: float
) -> Float[Tensor, " b"]:
    """-ln sigmoid(β (G(winner) - G(loser))), Rafailov et al., Eq. 7."""
    return -logsigmoid(beta * (winner - loser))


def choose_pairs(
    drawn: Drawn,
    ranks: Int[Tensor, "b s"],
    margins: Float[Tensor, "b s"],
    *,
    prefer: Literal["rank", "margin"],
) -> tuple[Drawn, Bool[Tensor, " b"]]:
    """Winner and loser of each image, and whether they differ in what is preferred.

    Of captions of the same rank the margin tells which one stands for it, but makes no winner.
    """
    merit = -ranks if prefer == "rank" else margins
    # A margin lies between -2 and 2: an eighth of it never outweighs a rank.
    order = merit + margins / 8 if prefer == "rank" else margins
    ends = torch.stack([order.argmax(1), order.argmin(1)], 1)
    tokens = drawn.tokens.take_along_dim(ends.unsqueeze(-1), 1)
    found = merit.take_along_dim(ends, 1)
    # The same words twice may differ by rounding.
    differ = (found[:, 0] > found[:, 1]) & (tokens[:, 0] != tokens[:, 1]).any(-1)
    return Drawn(tokens, drawn.mask.take_along_dim(ends.unsqueeze(-1), 1)), differ
