"""Captions that a captioner writes while it is trained, with gradients, and what it may write.

What may stand where is the decoders' rule: no silent token, no end sign in the first place, nothing but the
end sign behind the last word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from tellapart.arrays import Bool, Float, Int
from tellapart.types import AnyCaptioner, Text, Vision

Perturb = Callable[[Float[Tensor, "b v"]], Float[Tensor, "b v"]]  # logits to scores, the greatest is written


@dataclass(frozen=True, slots=True)
class Written:
    """A caption of each image, through which gradients pass to the captioner."""

    one_hot: Float[Tensor, "b t v"]  # 1 for the word that was written; its gradient is the probabilities'
    tokens: Int[Tensor, "b t"]
    mask: Bool[Tensor, "b t"]  # true for words, not for the end sign


class StraightThrough(torch.autograd.Function):
    """Forwards the word that was chosen, backwards the probabilities (Bengio et al. 2013).

    Whoever reads the caption reads the word itself; the gradient with respect to the one-hot word, of chosen
    and other words alike, is passed on as that of the probabilities.
    """

    @staticmethod
    def forward(ctx: Any, probabilities: Tensor, chosen: Tensor) -> Tensor:
        """1 at the chosen word."""
        return torch.zeros_like(probabilities).scatter_(-1, chosen.unsqueeze(-1), 1.0)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """As it comes."""
        return gradients[0], None


def straight_through(probabilities: Float[Tensor, "b v"], chosen: Int[Tensor, " b"]) -> Float[Tensor, "b v"]:
    """The one-hot word whose gradient is that of the probabilities."""
    found: Tensor = StraightThrough.apply(probabilities, chosen)  # type: ignore[no-untyped-call]
    return found


def write(
    captioner: AnyCaptioner,
    vision: Vision,
    *,
    max_words: int,
    perturb: Perturb = lambda logits: logits,
    temperature: float = 1.0,
) -> Written:
    """Write a caption of each image, all images at once, the word of the greatest score at each place.

    Probabilities are the softmax of the scores, divided by the temperature, over what may be written. The
    next word follows on the word as it was written, which lets no gradient through; but all states are
    connected, so that what led to a word is held to account for later ones too.
    """
    text = captioner.text
    state = captioner.begin(vision)
    token = torch.full((len(vision),), text.start, dtype=torch.long, device=vision.pooled.device)
    finished = torch.zeros_like(token, dtype=torch.bool)
    words: list[tuple[Tensor, Tensor, Tensor]] = []
    for forbidden in forbidden_words(text, max_words, token.device, max_words=max_words):
        logits, state = captioner.step(token, state)
        scores = perturb(logits).masked_fill(forbidden, -torch.inf)
        chosen = scores.argmax(-1)
        one_hot = straight_through((scores / temperature).softmax(-1), chosen)
        finished = finished | (chosen == text.end)
        token = chosen.masked_fill(finished, text.pad)
        words.append((one_hot, token, ~finished))
        if finished.all():
            break
    one_hots, tokens, mask = zip(*words, strict=True)
    return Written(torch.stack(one_hots, 1), torch.stack(tokens, 1), torch.stack(mask, 1))


def gumbel_noise(
    generators: Sequence[torch.Generator],
) -> Perturb:
    """Adds to each logit a number of Gumbel's distribution: the greatest sum is then a draw from the softmax.

    Each image draws from its own generator (Jang et al. 2017).
    """

    def perturb(logits: Tensor) -> Tensor:
        uniform = torch.stack(
            [
                torch.rand(logits.size(-1), generator=generator, dtype=torch.float64)
                for generator in generators
            ]
        )
        tiny = torch.finfo(torch.float64).tiny  # of the logarithm of 0 there would be no way back
        noise = -(-uniform.clamp_min(tiny).log()).clamp_min(tiny).log()
        return logits + noise.to(logits)

    return perturb


def forbidden_words(text: Text, places: int, device: torch.device, *, max_words: int) -> Bool[Tensor, "t v"]:
    """What may not stand at each of the first places of a caption."""
    marked = torch.zeros((places, len(text)), dtype=torch.bool)
    marked[:, list(text.silent)] = True
    marked[:1, text.end] = True  # an empty caption describes nothing
    marked[max_words:] = True
    marked[max_words:, text.end] = False
    return marked.to(device)


@contextmanager
def as_used(captioner: AnyCaptioner) -> Iterator[None]:
    """Within the block the captioner is as those see it who use it: in evaluation mode, without dropout."""
    was_training = captioner.training
    captioner.eval()
    try:
        yield
    finally:
        captioner.train(was_training)
