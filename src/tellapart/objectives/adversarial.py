"""The conditional GAN for captions: Dai, Fidler, Urtasun and Lin, ICCV 2017.

An evaluator learns to tell people's captions of an image from drawn ones and from captions of other images;
the captioner learns, by policy gradient, to write what the evaluator takes for a person's. Where the paper
leaves a choice or was made for another captioner, the plain form was taken:

  - chance is in the drawing of words, where their generator is fed a random vector besides the image;
  - the reward is that of the whole caption, less the mean reward of the image's other samples (without bias,
    and with no more drawing), where they finish each half-written caption several times to reward each word;
  - both learn in each step, with one optimiser and its rate: the objective owns the evaluator, so that it
    is trained and kept in checkpoints. A schedule of `policy` gives the evaluator a start.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from tellapart.arrays import Float
from tellapart.errors import TellapartError
from tellapart.objectives.compose import add_up, caption_mean, image_mean, token_objective
from tellapart.objectives.drawn import Drawing, Drawn
from tellapart.objectives.evaluator import Evaluator, picture_of
from tellapart.objectives.negatives import Negatives, build_negatives
from tellapart.objectives.schedules import Weight, build_weight
from tellapart.objectives.settings.contrastive import GANConfig
from tellapart.objectives.supplies import Supplies
from tellapart.objectives.tokens import mle
from tellapart.types import AnyCaptioner, Batch, Context, Loss


def build_gan(config: GANConfig, supplies: Supplies) -> ConditionalGAN:
    """Captioner against evaluator."""
    wide = picture_of(supplies.training_set.vision([0])).size(-1)
    if not wide:
        raise TellapartError(
            "objective gan: the captioner sees nothing of an image, so the evaluator would neither",
            hint="take a captioner that looks at images",
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(
            torch.initial_seed()
        )  # the recipe's, whatever was drawn since: alike in all processes
        evaluator = Evaluator(words=len(supplies.text), picture=wide, width=config.width)
    weights = Weights(
        build_weight(config.policy, supplies.pace), build_weight(config.mle_weight, supplies.pace)
    )
    drawing = Drawing(supplies.sample, config.samples, supplies.max_words)
    return ConditionalGAN(config, evaluator, drawing, build_negatives("gan", 1, "paper", supplies), weights)


@dataclass(frozen=True, slots=True)
class Weights:
    """Of the captioner's terms."""

    policy: Weight
    mle: Weight


class ConditionalGAN(nn.Module):
    """The evaluator's loss and the captioner's; neither sends a gradient to the other."""

    def __init__(
        self,
        config: GANConfig,
        evaluator: Evaluator,
        drawing: Drawing,
        negatives: Negatives,
        weights: Weights,
    ) -> None:
        super().__init__()
        self._config, self._drawing, self._negatives, self._weights = config, drawing, negatives, weights
        self._likelihood = token_objective(mle, name="mle")
        self.evaluator = evaluator

    def forward(self, captioner: AnyCaptioner, batch: Batch, context: Context) -> Loss:
        """What both learn from a batch."""
        drawn = self._drawing(captioner, batch.vision, [context.of_image(row) for row in batch.rows])
        scores = self.evaluator(batch.vision, drawn.tokens, drawn.mask)
        chances = scores.detach().sigmoid()
        terms, told = self._judge(batch, scores, context)
        told["taken_for_real/drawn"] = image_mean(chances.mean(1), batch).item()
        amounts = self._weights.policy(context.step), self._weights.mle(context.step)
        if amounts[0]:
            terms["policy"] = amounts[0] * self._policy(captioner, batch, drawn, chances)
        if amounts[1]:
            terms["mle"] = amounts[1] * self._likelihood(captioner, batch, context).total
        return add_up(terms, told)

    def _policy(
        self, captioner: AnyCaptioner, batch: Batch, drawn: Drawn, rewards: Float[Tensor, "b s"]
    ) -> Float[Tensor, ""]:
        """REINFORCE: the gradient of the expected reward."""
        likely = self._drawing.log_probabilities(captioner, batch.vision, drawn)
        return -image_mean((advantages(rewards) * likely).mean(1), batch)

    def _judge(
        self, batch: Batch, drawn: Float[Tensor, "b s"], context: Context
    ) -> tuple[dict[str, Tensor], dict[str, float]]:
        """-[ln r(I, c) + α ln(1 - r(I, drawn)) + β ln(1 - r(I, another's))], Dai et al. 2017, Eq. 3."""
        # From a source of their own, or they would follow the words that were drawn.
        tokens, mask = self._negatives.draw(batch, context.apart("negatives"))
        there = batch.mask[:, :, 1:].any(-1)
        real = self.evaluator(batch.vision, batch.tokens, batch.mask)
        wrong = self.evaluator(batch.vision, tokens.squeeze(2), mask.squeeze(2))
        terms = {
            "evaluator/real": caption_mean(softplus(-real), there, batch),
            "evaluator/drawn": self._config.generated * image_mean(softplus(drawn).mean(1), batch),
            "evaluator/wrong": self._config.wrong * caption_mean(softplus(wrong), there, batch),
        }
        told = {
            "taken_for_real/real": caption_mean(real.detach().sigmoid(), there, batch).item(),
            "taken_for_real/wrong": caption_mean(wrong.detach().sigmoid(), there, batch).item(),
        }
        return terms, told


def advantages(rewards: Float[Tensor, "b s"]) -> Float[Tensor, "b s"]:
    """Each reward less the mean of the other samples' of its image."""
    count = rewards.size(1)
    return (rewards - rewards.mean(1, keepdim=True)) * count / (count - 1)
