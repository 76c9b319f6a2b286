"""The objectives there are, and their settings. Nothing here imports torch: recipes are checked with it."""

from __future__ import annotations

from pydantic import Field

from tellapart.registry import Config, Part, Registry


class MLEConfig(Config):
    """Plain maximum likelihood has no settings."""


class MRNNCostConfig(Config):
    """The cost of m-RNN."""

    l2: float = Field(1e-7, ge=0, description="λ_θ, the weight of the squared norm of all parameters")


OBJECTIVES: Registry[Part] = Registry(
    "objective",
    [
        Part(
            name="mle",
            summary="mean negative log-likelihood a token, in nats",
            config=MLEConfig,
            build="tellapart.objectives.likelihood:build_mle",
        ),
        Part(
            name="mrnn-cost",
            summary="mean negative log2-likelihood a token, plus a weighed squared norm of the parameters",
            config=MRNNCostConfig,
            build="tellapart.objectives.likelihood:build_mrnn_cost",
            paper="Mao et al. 2015, m-RNN, Eq. 6",
        ),
    ],
    group="tellapart.objectives",
    holds=Part,
)
