"""Copying a concept word straight into the caption, so that a name hardly seen in training can be written."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tellapart.arrays import Float
from tellapart.captioners.memory import Memory


class CopyWords(nn.Module):
    """P(w) = (1 - g) · P_vocabulary(w) + g · P_copy(w), after See et al. 2017, Eq. 9.

    g is a gate of the decoder's hidden state; P_copy attends to the concept words alone.
    """

    def __init__(self, *, hidden: int, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(hidden, width)
        self.gate = nn.Linear(hidden, 1)
        nn.init.constant_(self.gate.bias, -2.0)  # copying is the exception until training says otherwise

    def forward(
        self, logits: Float[Tensor, "b q v"], hidden: Float[Tensor, "b q h"], memory: Memory
    ) -> Float[Tensor, "b q v"]:
        """Logits of the mixture.

        P times Z / (1 - g), where Z is the sum of the exponents of the logits, is e^logit for every word but
        the concepts, to whose it adds Z · g / (1 - g) · P_copy: so the whole vocabulary is read once, for Z.
        """
        count = memory.words.size(1)
        keys, bias = memory.values[:, -count:], memory.bias[:, -count:]  # (b, c, d), (b, c)
        scores = self.query(hidden) @ keys.transpose(1, 2) / keys.size(2) ** 0.5 + bias.unsqueeze(1)
        odds = self.gate(hidden)  # log of g / (1 - g), (b, q, 1)
        copied = scores.log_softmax(-1) + odds + logits.logsumexp(-1, keepdim=True)  # (b, q, c)
        places = memory.words.unsqueeze(1).expand_as(copied)
        # No word stands twice among a picture's concepts, so each place is written once.
        return logits.scatter(2, places, torch.logaddexp(logits.gather(2, places), copied))
