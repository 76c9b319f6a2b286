"""The mean of the weights over the steps of training, which is measured and kept in place of the last ones.

The last weights have just learnt from one batch; a mean that forgets slowly is closer to what all batches
agree on (Polyak & Juditsky 1992).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class Averages:
    """The mean of a network's trained weights; with a decay of 0 there is none, and the last ones count."""

    def __init__(self, network: nn.Module, *, decay: float) -> None:
        self._decay = decay
        self._weights = {name: some for name, some in network.named_parameters() if some.requires_grad}
        self._means = {name: some.detach().clone() for name, some in self._weights.items()} if decay else {}

    @torch.no_grad()
    def note(self, steps: int) -> None:
        """Take in the weights after so many steps.

        At first the mean forgets faster, or the weights at the start would stay in it for long.
        """
        decay = min(self._decay, (1 + steps) / (10 + steps))
        for name, mean in self._means.items():
            mean.lerp_(self._weights[name], 1 - decay)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Within the block, the network has the mean for its weights."""
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    def state(self) -> dict[str, Tensor]:
        """For a checkpoint."""
        return dict(self._means)

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a checkpoint."""
        for name, mean in self._means.items():
            mean.copy_(state[name])

    @torch.no_grad()
    def _exchange(self) -> None:
        for name, mean in self._means.items():
            weight = self._weights[name]
            before = weight.detach().clone()
            weight.copy_(mean)
            mean.copy_(before)
