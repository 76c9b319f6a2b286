"""The pointwise half of an LSTM, for captioners that do something between its steps."""

from __future__ import annotations

import torch
from torch import Tensor

from tellapart.arrays import Float


def lstm_update(
    gates: Float[Tensor, "*r g"], cell: Float[Tensor, "*r d"]
) -> tuple[Float[Tensor, "*r d"], Float[Tensor, "*r d"]]:
    """Hidden state and cell after a step; `gates` are input, forget, candidate and output before squashing.

    In the order of torch's own LSTM.
    """
    add, keep, candidate, show = gates.chunk(4, dim=-1)
    cell = torch.sigmoid(keep) * cell + torch.sigmoid(add) * torch.tanh(candidate)
    return torch.sigmoid(show) * torch.tanh(cell), cell
