"""What a recipe's objective is handed: other captioners, retrievers, neighbours, rewards, decoders.

All of it is made when it is first asked for, which is before the first step, and then kept.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import torch

from tellapart.arrays import Float32, Int32
from tellapart.corpus import Corpus, look_at_all
from tellapart.data.examples import Example
from tellapart.decoding.sampling import Sampling, sample
from tellapart.decoding.search import greedy
from tellapart.errors import TellapartError
from tellapart.frozen_retriever import DualTeacher, load_teacher
from tellapart.objectives.schedules import Pace
from tellapart.objectives.settings.rewards import RewardConfig
from tellapart.objectives.supplies import Greedy, Places, Reward
from tellapart.preparation import Ready, load_beside
from tellapart.recipe import Recipe
from tellapart.retrievers.loading import load_retriever
from tellapart.retrievers.neighbours import nearest_others
from tellapart.types import AnyCaptioner, Decoded, Prediction, Text, Vision
from tellapart.vision.parts import load_encoder


@dataclass(frozen=True)
class TrainedOn:
    """The training images, as objectives ask for them."""

    corpus: Corpus
    encoder: str  # the name of the captioner's
    device: torch.device

    def __len__(self) -> int:
        return len(self.corpus.examples)

    def vision(self, rows: Sequence[int]) -> Vision:
        """What the captioner's encoder saw in these images."""
        return self.corpus.vision(rows).to(self.device)

    def captions(self, row: int) -> Sequence[Sequence[int]]:
        """The tokens of an image's captions."""
        return self.corpus.captions[row]

    def nearest(self, count: int) -> Int32[np.ndarray, "n k"]:
        """The images most like each, by the cosine of pooled features, the nearest first."""
        if count >= len(self):
            raise TellapartError(
                f"the objective wants {count} neighbours of each training image, and there are "
                f"{len(self) - 1} other images",
                hint="train on more images, or ask for fewer neighbours",
            )
        if count not in self._found:
            self._found[count] = nearest_others(self._pooled, count).rows
        return self._found[count]

    @cached_property
    def _found(self) -> dict[int, Int32[np.ndarray, "n k"]]:
        return {}

    @cached_property
    def _pooled(self) -> Float32[np.ndarray, "n d"]:
        examples = pictured(self.corpus.examples)
        cache, encoder = self.corpus.cache, load_encoder(self.encoder)
        digests = look_at_all(
            examples, encoder, parts=("pooled",), cache=cache, watch=lambda done, total: None
        )
        return cache.read(digests, ("pooled",)).pooled.astype(np.float32)


def pictured(examples: Sequence[Example]) -> Sequence[Example]:
    """The examples, all of which must have a picture."""
    for example in examples:
        if not example.pictured:
            raise TellapartError(
                f"{example.where}: captions without pictures, and the objective compares pictures",
                hint="drop that source from data.extra, or take another objective",
            )
    return examples


@dataclass(frozen=True)
class RecipeSupplies:
    """What the objective of a recipe may ask for."""

    recipe: Recipe
    ready: Ready
    pace: Pace
    device: torch.device

    @property
    def text(self) -> Text:
        """The captioner's words."""
        return self.ready.saved.captioner.text

    @property
    def max_words(self) -> int:
        """Words of a caption that is generated, at the most."""
        return self.recipe.decoding.max_words

    @cached_property
    def training_set(self) -> TrainedOn:
        """The images that are trained on."""
        return TrainedOn(self.ready.train_set, self.recipe.encoder.name, self.device)

    def sample(
        self,
        captioner: AnyCaptioner,
        vision: Vision,
        *,
        count: int,
        temperature: float,
        generators: Sequence[torch.Generator],
    ) -> Decoded:
        """Captions drawn by chance."""
        wanted = Sampling(count, temperature)
        return sample(captioner, vision, wanted, generators=generators, max_words=self.max_words)

    @property
    def greedy(self) -> Greedy:
        """Captions of the likeliest words."""
        return partial(greedy, max_words=self.max_words)

    def own_copy(self) -> AnyCaptioner:
        """The captioner as it is now."""
        return self._frozen(copy.deepcopy(self.ready.saved.captioner))

    def captioner(self, name: str) -> AnyCaptioner:
        """Another captioner, which must read and write the same words and look through the same encoder."""
        return self._frozen(load_beside(name, self.ready.saved.settings).captioner)

    def _frozen(self, captioner: AnyCaptioner) -> AnyCaptioner:
        return captioner.requires_grad_(requires_grad=False).eval().to(self.device)

    def retriever(self, name: str) -> DualTeacher:
        """A dual encoder through which gradients pass."""
        if name not in self._retrievers:
            examples = pictured(self.ready.train_set.examples)
            paths = [example.path for example in examples]
            self._retrievers[name] = load_teacher(name, paths, self.text, self.device)
        return self._retrievers[name]

    @cached_property
    def _retrievers(self) -> dict[str, DualTeacher]:
        return {}

    @property
    def taught_by(self) -> tuple[str, ...]:
        """Identities of the retrievers that were asked for: a captioner is trained to please them."""
        asked = [teacher.identity for teacher in self._retrievers.values()]
        return tuple(dict.fromkeys(asked + [teacher.identity for teacher in self._places.values()]))

    def places(self, name: str) -> Places:
        """Any retriever, and where it places the training pictures."""
        if name not in self._places:
            retriever = load_retriever(name)
            paths = [example.path for example in pictured(self.ready.train_set.examples)]
            vectors = retriever.embed_images(paths)
            self._places[name] = Places(retriever.identity, vectors, retriever.embed_texts)
        return self._places[name]

    @cached_property
    def _places(self) -> dict[str, Places]:
        return {}

    def reward(self, config: RewardConfig) -> Reward:
        """How good captions of training images are, by one measure."""
        from tellapart.rewards import build_reward  # itself built on supplies

        return build_reward(config, self)

    def frequent_words(self, count: int) -> Sequence[int]:
        """The tokens of the commonest words of the training captions; of equally common ones the lowest."""
        text = self.text
        signs = {text.pad, text.start, text.end, *text.silent}
        tally = Counter(
            token for group in self.ready.train_set.captions for caption in group for token in caption
        )
        words = sorted(tally.keys() - signs, key=lambda token: (-tally[token], token))
        return words[:count]

    def glimpse(self, captioner: AnyCaptioner | None = None) -> Prediction:
        """What a captioner says of the first training image with a caption."""
        looked_at = captioner or self.ready.saved.captioner
        captions = self.ready.train_set.captions
        row = next(row for row, group in enumerate(captions) if group)
        tokens = torch.tensor([[captions[row][0][:-1]]], device=self.device)
        was_training = looked_at.training
        with torch.no_grad():
            found = looked_at.to(self.device).eval().predict(self.training_set.vision([row]), tokens)
        looked_at.train(was_training)
        return found

    def likeness(self, neighbours: int) -> Sequence[Float32[np.ndarray, " k"]]:
        """CIDErBtw of each training caption."""
        from tellapart.reweighting import cider_between  # itself built on supplies

        return cider_between(self.training_set, self.text, neighbours)
