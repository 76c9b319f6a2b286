"""Captioners with random weights, made-up features and captions for them, and training steps.

    python -m benchmarks.peak python -m benchmarks.captioner_worker NAME [PRESET]

takes two training steps (the second finds the optimiser's memory in place) and does nothing else, so that the
memory of the process is that of training. Without a NAME it only imports.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from benchmarks.random_checkpoints import KINDS, captioner_of
from tellapart.captioner_learner import Step
from tellapart.captioners.folder import build_captioner, load_captioner
from tellapart.captioners.parts import CAPTIONERS
from tellapart.captioners.pretrained.captioner import PretrainedCaptioner
from tellapart.captioners.size import TRAITS, WORDS
from tellapart.captioning import find_captioner
from tellapart.data.text import PRESETS
from tellapart.data.vocabulary import SPECIAL, Vocabulary
from tellapart.data.word_text import WordText
from tellapart.decoding.search import beam, greedy
from tellapart.objectives.compose import token_objective
from tellapart.objectives.tokens import mle
from tellapart.recipe import Recipe
from tellapart.stepping import Moment, build_optimiser, take_step
from tellapart.training import deterministic
from tellapart.types import AnyCaptioner, Batch, Text, Vision
from tellapart.vision.features import PARTS

IMAGES, CAPTIONS, TOKENS = 16, 5, 14  # of a batch: tokens to be expected, the end sign included
STEPS = 2
LENGTH = 12  # words of every caption
WIDTH = 5  # of the beam


@dataclass(frozen=True)
class Unending:
    """A captioner's text whose end is silent: decoders write it only where nothing else is allowed."""

    text: Text

    @property
    def pad(self) -> int:
        """As in the text."""
        return self.text.pad

    @property
    def start(self) -> int:
        """As in the text."""
        return self.text.start

    @property
    def end(self) -> int:
        """As in the text."""
        return self.text.end

    @property
    def silent(self) -> Sequence[int]:
        """With the end."""
        return (*self.text.silent, self.text.end)

    @property
    def fingerprint(self) -> str:
        """As in the text."""
        return self.text.fingerprint

    def __len__(self) -> int:
        return len(self.text)

    def encode(self, caption: str) -> list[int]:
        """As in the text."""
        return self.text.encode(caption)

    def decode(self, tokens: Iterable[int]) -> str:
        """As in the text."""
        return self.text.decode(tokens)

    def beginning(self, words_to_begin_with: str) -> tuple[int, ...]:
        """As in the text."""
        return self.text.beginning(words_to_begin_with)


def use_two_cores() -> None:
    """Two threads, unless the environment says how many."""
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(2)


def build(name: str, preset: str) -> AnyCaptioner:
    """An untrained captioner that knows WORDS words, or those of its own checkpoint; the ensemble ships."""
    if name in KINDS:
        return captioner_of(name)[0]
    if name == "ensemble":
        return load_captioner(find_captioner("default")).captioner
    part = CAPTIONERS.get(name)
    words = tuple(f"word{number}" for number in range(WORDS - len(SPECIAL)))
    text = None if part.own_text else WordText(Vocabulary(words), PRESETS["mrnn"])
    torch.manual_seed(1)
    return build_captioner(name, part.configure({}, preset=preset), text=text, traits=TRAITS).eval()


def make_up_vision(captioner: AnyCaptioner, images: int) -> Vision:
    """Random features of the shapes that it was built for; of a part that is not looked at, none."""
    shapes = {**TRAITS.shapes}
    if isinstance(captioner, PretrainedCaptioner):
        shapes["grid"] = captioner.grid

    def some(part: str) -> Float[Tensor, ...]:
        *places, width = shapes[part]
        return torch.rand(images, *places, width if part in captioner.needs else 0)

    return Vision(*(some(part) for part in PARTS))


def make_up_batch(captioner: AnyCaptioner) -> Batch:
    """IMAGES with CAPTIONS of TOKENS each, every place filled."""
    tokens = torch.randint(len(captioner.text), (IMAGES, CAPTIONS, TOKENS + 1))
    names = tuple(f"image {number}" for number in range(IMAGES))
    return Batch(names, make_up_vision(captioner, IMAGES), tokens, torch.ones_like(tokens, dtype=torch.bool))


def repeat_images(batch: Batch) -> Batch:
    """The same captions, each with an image of its own."""
    rows = torch.arange(len(batch.image_ids)).repeat_interleave(batch.tokens.size(1))
    return Batch(
        tuple(batch.image_ids[row] for row in rows.tolist()),
        batch.vision.select(rows),
        batch.tokens.flatten(0, 1).unsqueeze(1),
        batch.mask.flatten(0, 1).unsqueeze(1),
    )


def write(captioner: AnyCaptioner, vision: Vision, width: int) -> Int[Tensor, "b k t"]:
    """Captions of LENGTH words, by a beam of that width or greedily."""
    if width == 1:
        tokens = greedy(captioner, vision, max_words=LENGTH).tokens
    else:
        tokens = beam(captioner, vision, width=width, max_words=LENGTH).tokens
    assert tokens.shape == (len(vision), width, LENGTH + 1)
    return tokens


def trainer(captioner: AnyCaptioner) -> Callable[[Batch], None]:
    """A step of training as `tellapart train` takes it: likelihood, backward, clipping, Adam."""
    recipe = Recipe()
    step = Step(captioner, token_objective(mle, name="mle"))
    optimiser = build_optimiser(recipe.optimiser, captioner)

    def train(batch: Batch) -> None:
        with deterministic():
            take_step(step.train(), optimiser, [batch], recipe, Moment(0, 1))

    return train


def main() -> None:
    """Take the steps."""
    use_two_cores()
    if sys.argv[1:]:
        name, preset = (*sys.argv[1:], "")[:2]
        captioner = build(name, preset)
        train, batch = trainer(captioner), make_up_batch(captioner)
        for _ in range(STEPS):
            train(batch)


if __name__ == "__main__":
    main()
