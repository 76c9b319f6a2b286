"""A reference that the best target so far replaces every few epochs (Dai & Lin, section 4.3)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from itertools import chain

import torch
from torch import Tensor, nn

from tellapart.objectives.log_ratio import Reference
from tellapart.types import AnyCaptioner, Batch, Context, Loss, Objective


class Renewed(nn.Module):
    """An objective whose reference is renewed.

    Two copies of the target belong to it, and so to checkpoints: the best so far, and the one that is the
    reference now. Neither is trained; both stay in evaluation mode.
    """

    def __init__(
        self, objective: Objective, reference: Reference, target: AnyCaptioner, *, every: int
    ) -> None:
        super().__init__()
        self._objective, self._reference = objective, reference
        self._first = (reference.captioner,)  # in a tuple, or it would belong to checkpoints as well
        self._every = every  # steps
        self.best = target
        self.current = copy.deepcopy(target)
        self.register_buffer("noted", torch.tensor(False))  # whether there is a best yet
        self.register_buffer("period", torch.tensor(0))
        self.register_buffer("replaced", torch.tensor(0))  # how often
        self.noted: Tensor
        self.period: Tensor
        self.replaced: Tensor

    def forward(self, captioner: AnyCaptioner, batch: Batch, context: Context) -> Loss:
        """The loss by the reference of this step."""
        self._renew(context.step)
        times = int(self.replaced)
        self._reference.use(self.current if times else self._first[0], times)
        return self._objective(captioner, batch, context)

    def after_step(self, step: int, add_up: Callable[[Iterable[Tensor]], None]) -> None:
        """Renew also where nothing was computed: by a process without a share, or under a weight of 0."""
        self._renew(step)

    def note_best(self, captioner: AnyCaptioner) -> None:
        """Keep the captioner as it is now."""
        _copy(captioner, self.best)
        self.noted.fill_(True)

    def train(self, mode: bool = True) -> Renewed:
        """References are always in evaluation mode."""
        return super().train(mode=False)

    def _renew(self, step: int) -> None:
        """In the first step of a period: the validation that ends an epoch comes after its last step."""
        if step // self._every <= int(self.period):
            return
        self.period.fill_(step // self._every)
        if self.noted:
            _copy(self.best, self.current)
            self.replaced.add_(1)


@torch.no_grad()
def _copy(source: nn.Module, target: nn.Module) -> None:
    values = chain(source.parameters(), source.buffers())
    for value, place in zip(values, chain(target.parameters(), target.buffers()), strict=True):
        place.copy_(value)
