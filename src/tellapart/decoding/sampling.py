"""Captions drawn by chance from any captioner, under the same rules as the searches.

Every image has a generator of its own, and takes one uniform number a sample and place from it while one of
its captions is unfinished: neither the other images of a batch nor their order change what it draws, nor
what its generator gives afterwards. A number becomes a word by the inverse of the distribution function over
the vocabulary, in double precision.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tellapart.arrays import Bool, Float, Float64, Int
from tellapart.decoding.search import forbidden_places, start_tokens, written
from tellapart.errors import TellapartError
from tellapart.types import AnyCaptioner, Decoded, Vision


@dataclass(frozen=True, slots=True)
class Sampling:
    """How many captions an image, and which words chance may choose.

    In this order: words that may not stand at a place are struck out, logits are divided by the temperature,
    the `top_k` likeliest words are kept (0: all), and of these the fewest that together have at least the
    share `nucleus` of the probability that is left.
    """

    count: int
    temperature: float = 1.0
    top_k: int = 0
    nucleus: float = 1.0

    def __post_init__(self) -> None:
        if self.count < 1:
            raise TellapartError(f"count is {self.count}", hint="draw at least 1 sample an image")
        if not 0 < self.temperature < math.inf:
            raise TellapartError(
                f"temperature is {self.temperature}", hint="take a number above 0; 1 changes nothing"
            )
        if self.top_k < 0:
            raise TellapartError(
                f"top_k is {self.top_k}", hint="take the number of words to choose from, or 0 for all"
            )
        if not 0 < self.nucleus <= 1:
            raise TellapartError(
                f"nucleus is {self.nucleus}", hint="take a share above 0, up to 1 for all words"
            )


def image_generators(image_ids: Iterable[str], *, seed: int) -> list[torch.Generator]:
    """A generator an image, of seed and id alone: an image draws the same in whatever company it comes."""
    return [torch.Generator().manual_seed(_number(f"{seed}:{image_id}")) for image_id in image_ids]


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 1  # torch takes 63 bits


@torch.no_grad()
def sample(
    captioner: AnyCaptioner,
    vision: Vision,
    sampling: Sampling,
    *,
    generators: Sequence[torch.Generator],
    max_words: int,
    prefix: Sequence[int] = (),
) -> Decoded:
    """Draw captions of each image; they stand in the order they were drawn, not best first.

    Log-probabilities are the captioner's own, as those of the searches are: no temperature, nothing struck
    out. They are of the whole caption, with its end sign and the given first words.
    """
    if len(generators) != len(vision):
        raise TellapartError(
            f"{len(vision)} images, but {len(generators)} generators", hint="each image needs one of its own"
        )
    text, images = captioner.text, len(vision)
    rows = torch.arange(images, device=vision.pooled.device).repeat_interleave(sampling.count)
    state = captioner.begin(vision).select(rows)
    token = start_tokens(vision, text)[rows]
    total = vision.pooled.new_zeros(len(rows))
    finished = torch.zeros_like(token, dtype=torch.bool)
    chosen: list[Tensor] = []
    for forbidden in forbidden_places(text, token.device, max_words=max_words, prefix=prefix):
        logits, state = captioner.step(token, state)
        numbers = _numbers(generators, ~finished.view(images, -1)).flatten()
        drawn = _word(_weights(logits.masked_fill(forbidden, -torch.inf), sampling), numbers)
        score = logits.log_softmax(-1).gather(1, drawn.unsqueeze(1)).squeeze(1)
        token = drawn.masked_fill(finished, text.pad)
        total = total + score.masked_fill(finished, 0)
        chosen.append(token)
        finished = finished | (token == text.end)
        if finished.all():
            break
    tokens = torch.stack(chosen, dim=1).view(images, sampling.count, -1)
    return Decoded(tokens, written(tokens, text), total.view(images, -1))


def _numbers(
    generators: Sequence[torch.Generator], unfinished: Bool[Tensor, "b k"]
) -> Float64[Tensor, "b k"]:
    """Uniform numbers in [0, 1); an image whose captions are all finished takes none from its generator."""
    numbers = torch.zeros(unfinished.shape, dtype=torch.float64)
    for row, goes_on in enumerate(unfinished.any(1).tolist()):
        if goes_on:
            generator = generators[row]
            numbers[row] = torch.rand(
                numbers.size(1), generator=generator, dtype=numbers.dtype, device=generator.device
            )
    return numbers.to(unfinished.device)


def _weights(logits: Float[Tensor, "r v"], sampling: Sampling) -> Float64[Tensor, "r v"]:
    """Probabilities of the next word as sampling changes them, which need not add up to 1."""
    weights = (logits.double() / sampling.temperature).softmax(-1)
    if not sampling.top_k and sampling.nucleus == 1:
        return weights
    likeliest, words = weights.topk(min(sampling.top_k or weights.size(1), weights.size(1)))
    before = likeliest.cumsum(-1) - likeliest
    likeliest[before >= sampling.nucleus * likeliest.sum(-1, keepdim=True)] = 0
    # Back at their places in the vocabulary: two words that are nearly even may change ranks by rounding,
    # which must not decide between them.
    return torch.zeros_like(weights).scatter(1, words, likeliest)


def _word(weights: Float64[Tensor, "r v"], numbers: Float64[Tensor, " r"]) -> Int[Tensor, " r"]:
    """The first word at which the distribution function exceeds the number."""
    reached = weights.cumsum(-1)
    # Divided by its own last value it ends at exactly 1, which no number reaches: a word is always found,
    # and never one of weight 0, at which the function does not rise.
    reached = reached / reached[:, -1:]
    return torch.searchsorted(reached, numbers.unsqueeze(1), right=True).squeeze(1)
