"""Scores by a captioner whose words and picture meet late: words are read once, whatever the pictures."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tellapart.arrays import Float
from tellapart.retrievers.likelihood.prefixes import Prefixes
from tellapart.types import MeetsLate, Vision

ROWS = 512  # of the last layer's input: their logits, of some thousand words, stay within the cache
ALIGNED = 16  # numbers of a cache line: a product whose rows fill whole ones takes two thirds of the time


class LateScorer:
    """What captions add before the last layer, kept; for each picture, the last layer is all that is left."""

    together = 8  # pictures

    def __init__(self, captioner: MeetsLate, captions: Sequence[Sequence[int]], *, logits: int) -> None:
        self.captioner = captioner
        self.prefixes = Prefixes.of(captions)
        self.heard = hear_all(captioner, self.prefixes)  # (p, m)
        self.weight, self.bias = aligned(captioner.softmax)
        self.rows = max(1, min(ROWS, logits // (len(self.bias) * self.bias.element_size())))

    def __call__(self, vision: Vision) -> Float[Tensor, "c b"]:
        """The score of each caption for each of a few pictures."""
        seen = self.captioner.see(vision)
        steps = seen.new_empty(len(self.prefixes), len(seen), dtype=torch.float64)
        count = max(1, self.rows // len(seen))
        logits = seen.new_empty(count * len(seen), len(self.bias))
        for first in range(0, len(self.heard), count):
            met = self.captioner.join(self.heard[first : first + count, None], seen)  # (p, b, d)
            here = logits[: len(met) * len(seen)]
            torch.addmm(self.bias, met.flatten(0, 1), self.weight.T, out=here)
            then = self.prefixes.following(first, first + count)
            places = self.prefixes.after[then] - first
            here = here.view(len(met), len(seen), -1)
            own = here[places, :, self.prefixes.tokens[then]]
            steps[then] = own.double() - spend(here)[places]
        return self.prefixes.totals(steps).to(seen.dtype)


def spend(logits: Float[Tensor, "*b v"]) -> Float[Tensor, "*b"]:
    """The logarithm of the sum of exponentials, within the memory of the logits, which are lost.

    Fresh memory for each block, as torch's own takes, costs more than the exponentials.
    """
    top = logits.amax(-1, keepdim=True)
    return logits.sub_(top).exp_().sum(-1).log_().add_(top.squeeze(-1))


def hear_all(captioner: MeetsLate, prefixes: Prefixes) -> Float[Tensor, "p m"]:
    """What the words of each beginning add where they meet the picture: each is read once."""
    heard: list[Tensor] = []
    state: Tensor | None = None
    for level in prefixes.levels():
        now, state = captioner.hear(level.tokens, None if state is None else state[level.parents])
        heard.append(now)
    return torch.cat(heard)


def aligned(layer: nn.Linear) -> tuple[Float[Tensor, "v d"], Float[Tensor, " v"]]:
    """Weight and bias of a last layer with words added, never expected, until a row fills cache lines."""
    words, width = layer.weight.shape
    rows = -(-words // ALIGNED) * ALIGNED
    weight, bias = layer.weight.new_zeros(rows, width), layer.weight.new_full((rows,), -torch.inf)
    weight[:words], bias[:words] = layer.weight, layer.bias
    return weight, bias
