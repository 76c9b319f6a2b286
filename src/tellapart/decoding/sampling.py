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
from functools import partial

import torch
from torch import Tensor

from tellapart.arrays import Float, Float64, Int
from tellapart.decoding.drafts import Alone, Choice, Draft, write
from tellapart.decoding.rules import Rule
from tellapart.errors import TellapartError
from tellapart.types import AnyCaptioner, Decoded, Vision

FEW = 100  # words that mostly have the share of the probability that is asked for


@dataclass(frozen=True, slots=True)
class Sampling:
    """How many captions an image, and which words chance may choose.

    In this order: words that may not stand at a place are struck out, logits are divided by the temperature,
    the `top_k` likeliest words are kept (0: all), of these the fewest that together have at least the share
    `nucleus` of the probability that is left, and of these again the fewest that have the share `typical` of
    it, this time those first whose surprise, -log p, is nearest to the one to be expected, the entropy
    (Meister et al. 2022). Words that are exactly even are kept together.
    """

    count: int
    temperature: float = 1.0
    top_k: int = 0
    nucleus: float = 1.0
    typical: float = 1.0

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
        for name, share in (("nucleus", self.nucleus), ("typical", self.typical)):
            if not 0 < share <= 1:
                raise TellapartError(f"{name} is {share}", hint="take a share above 0, up to 1 for all words")


def image_generators(image_ids: Iterable[str], *, seed: int) -> list[torch.Generator]:
    """A generator an image, of seed and id alone: an image draws the same in whatever company it comes."""
    return [torch.Generator().manual_seed(_number(f"{seed}:{image_id}")) for image_id in image_ids]


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 1  # torch takes 63 bits


def sample(
    captioner: AnyCaptioner,
    vision: Vision,
    sampling: Sampling,
    *,
    generators: Sequence[torch.Generator],
    max_words: int,
    rules: Sequence[Rule] = (),
) -> Decoded:
    """Draw captions of each image; they stand in the order they were drawn, not best first.

    Log-probabilities are the captioner's own, as those of the searches are: no temperature, nothing struck
    out. They are of the whole caption, with its end sign.
    """
    if len(generators) != len(vision):
        raise TellapartError(
            f"{len(vision)} images, but {len(generators)} generators", hint="each image needs one of its own"
        )
    # A sample competes with no other: each is a group of its own.
    draft = Draft.begin(vision, captioner.text, groups=sampling.count, width=1)
    choose = partial(_draw, sampling=sampling, generators=generators)
    reader = Alone(captioner, vision, captions=sampling.count)
    draft = write(reader, draft, choose, max_words=max_words, rules=rules, of_image=sampling.count)
    return draft.decoded(len(vision))


def _draw(
    allowed: Float[Tensor, "g 1 v"],
    draft: Draft,
    *,
    sampling: Sampling,
    generators: Sequence[torch.Generator],
) -> Choice:
    unfinished = ~draft.finished.squeeze(1)
    numbers = _numbers(generators, draft.place[unfinished], sampling.count)
    token = torch.full_like(draft.finished, draft.text.pad, dtype=torch.long)
    weights = _weights(allowed.squeeze(1)[unfinished], sampling)
    token[unfinished] = _word(weights, numbers).unsqueeze(1)
    return Choice(token)


def _numbers(
    generators: Sequence[torch.Generator], places: Int[Tensor, " r"], count: int
) -> Float64[Tensor, " r"]:
    """Uniform numbers in [0, 1) for the samples in these places, of which each image has `count`.

    A finished sample takes its number too while another of its image goes on; an image whose samples are all
    finished takes none from its generator.
    """
    numbers = torch.zeros(len(generators), count, dtype=torch.float64)
    for row in torch.unique(places // count).tolist():
        generator = generators[row]
        numbers[row] = torch.rand(count, generator=generator, dtype=numbers.dtype, device=generator.device)
    return numbers.flatten().to(places.device)[places]


def _weights(logits: Float[Tensor, "r v"], sampling: Sampling) -> Float64[Tensor, "r v"]:
    """Probabilities of the next word as sampling changes them, which need not add up to 1."""
    logits = logits.double() if sampling.temperature == 1 else logits.double() / sampling.temperature
    weights = logits.softmax(-1)
    if sampling.top_k:
        likeliest = weights.topk(min(sampling.top_k, weights.size(1))).values
        weights = weights.masked_fill(weights < likeliest[:, -1:], 0)
    if sampling.nucleus < 1:
        weights = _fewest(weights, weights, sampling.nucleus)
    if sampling.typical < 1:
        chances = weights / weights.sum(-1, keepdim=True)
        entropy = torch.special.entr(chances).sum(-1, keepdim=True)
        strangeness = (-chances.log() - entropy).abs()  # infinite for words that are out
        weights = _fewest(weights, -strangeness, sampling.typical)
    return weights


def _fewest(
    weights: Float64[Tensor, "r v"], preference: Float64[Tensor, "r v"], share: float
) -> Float64[Tensor, "r v"]:
    """The weights of the fewest words that have this share of them, the most preferred first.

    Words that are even stay or go together: which of them a sort puts first does not decide.
    """
    wanted = share * weights.sum(-1, keepdim=True)
    return weights.masked_fill(preference < _border(weights, preference, wanted, FEW), 0)


def _border(
    weights: Float64[Tensor, "r v"],
    preference: Float64[Tensor, "r v"],
    wanted: Float64[Tensor, "r 1"],
    count: int,
) -> Float64[Tensor, "r 1"]:
    """The preference of the last word that is wanted; looked for among `count` words, then among all."""
    count = min(count, weights.size(1))
    preferred, words = preference.topk(count)
    last = (weights.gather(1, words).cumsum(-1) < wanted).sum(-1, keepdim=True)
    found = preferred.gather(1, last.clamp_max(count - 1))
    further = (last == count).squeeze(1)
    if count < weights.size(1) and bool(further.any()):
        # To sort all words of all captions would cost more than the rest of a step.
        found[further] = _border(weights[further], preference[further], wanted[further], weights.size(1))
    return found


def _word(weights: Float64[Tensor, "r v"], numbers: Float64[Tensor, " r"]) -> Int[Tensor, " r"]:
    """The first word at which the distribution function exceeds the number."""
    reached = weights.cumsum(-1)
    # A number below 1 times the last value stays below it: a word is always found, and never one of weight
    # 0, at which the function does not rise.
    return torch.searchsorted(reached, numbers.unsqueeze(1) * reached[:, -1:], right=True).squeeze(1)
