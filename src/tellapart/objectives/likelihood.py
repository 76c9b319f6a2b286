"""Maximum likelihood: plain, and as the m-RNN paper writes its cost."""

from __future__ import annotations

import math

from torch import Tensor, nn

from tellapart.arrays import Float
from tellapart.objectives.compose import token_objective
from tellapart.objectives.parts import MLEConfig, MRNNCostConfig
from tellapart.objectives.tokens import mle
from tellapart.types import AnyCaptioner, Batch, Context, Loss, Objective


def build_mle(config: MLEConfig) -> Objective:
    """Mean negative log-likelihood a token, in nats."""
    return token_objective(mle, name="mle")


def build_mrnn_cost(config: MRNNCostConfig) -> Objective:
    """Eq. 6 of m-RNN: mean -log2-likelihood a word, plus λ_θ times the squared norm of the weights."""
    likelihood = token_objective(mle, name="mle")

    def objective(captioner: AnyCaptioner, batch: Batch, context: Context) -> Loss:
        bits = likelihood(captioner, batch, context).total / math.log(2)
        penalty = config.l2 * squared_norm(captioner)
        return Loss(bits + penalty, {"bits": bits.item(), "l2": penalty.item()})

    return objective


def squared_norm(module: nn.Module) -> Float[Tensor, ""]:
    """‖θ‖², over everything that is trained."""
    norms = [parameter.square().sum() for parameter in module.parameters() if parameter.requires_grad]
    return norms[0].new_tensor(0.0) + sum(norms)
