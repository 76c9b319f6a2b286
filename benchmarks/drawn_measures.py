"""Figures of captions of drawn scenes: how long, how true, how telling, how varied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import mean

import numpy as np
import torch

from tellapart.captioning import Wish, describe, load
from tellapart.corpus import build_corpus
from tellapart.data.examples import Example
from tellapart.data.shapes.dataset import read_truth
from tellapart.data.shapes.language import SIZE_WORDS, is_true
from tellapart.data.shapes.scenes import COLOURS, SHAPES, Scene
from tellapart.data.text import PRESETS
from tellapart.decoding.sampling import Sampling, image_generators, sample
from tellapart.metrics.retrieval import ranks
from tellapart.recipe_sections import DataConfig
from tellapart.retrievers.loading import load_retriever
from tellapart.sources import read_examples
from tellapart.vision.features import in_order

SAMPLES = 5
POOL = 100  # scenes among which a caption must find its own
TOGETHER = 100  # scenes that are described together
_SIZES = {word: size for size, words in SIZE_WORDS.items() for word in words}


@dataclass(frozen=True, slots=True)
class Figures:
    """Of greedy captions of unseen scenes, and of samples."""

    words: float  # of a caption
    details: float  # share of the shapes, colours and sizes named that the scene has, as often as named
    true: float  # share of the captions that are sentences of the language and true
    found: float  # R@1: share of the captions by which the judge finds their scene first in its pool
    varied: float  # Div-1 of five samples of each scene

    def row(self) -> str:
        """As cells of a table."""
        shares = (f"{100 * value:.1f} %" for value in (self.details, self.true, self.found))
        return " | ".join((f"{self.words:.1f}", *shares, f"{self.varied:.3f}"))

    def __sub__(self, other: Figures) -> Figures:
        return Figures(*(getattr(self, one.name) - getattr(other, one.name) for one in fields(self)))


@dataclass(frozen=True, slots=True)
class Unseen:
    """Scenes that no captioner has learnt from, and a judge that has taught none."""

    examples: Sequence[Example]
    scenes: Sequence[Scene]
    judge: Path
    pool: int = POOL
    temperature: float = 1.0  # of the samples

    @classmethod
    def drawn(cls, count: int, *, seed: int, besides: DataConfig, known: int, judge: Path) -> Unseen:
        """Scenes of a seed, without those that are in the data of the seed `known`; whole pools of them."""
        seen = set(_scenes(read_examples(besides, seed=known)))
        data = DataConfig(format="shapes", scenes=count)
        examples = read_examples(data, seed=seed)
        fresh = [pair for pair in zip(examples, _scenes(examples), strict=True) if pair[1] not in seen]
        kept = fresh[: len(fresh) // POOL * POOL]
        return cls([example for example, _ in kept], [scene for _, scene in kept], judge)

    def figures(self, captioner: Path) -> Figures:
        """What a captioner writes of them, measured."""
        written, drawn = self._write(captioner)
        return Figures(
            words=mean(len(caption.split()) for caption in written),
            details=share_of_true_details(written, self.scenes),
            true=mean(map(is_true, written, self.scenes)),
            found=self._found(written),
            varied=mean(map(distinct_words, drawn)),
        )

    @torch.inference_mode()
    def _write(self, captioner: Path) -> tuple[list[str], list[list[str]]]:
        describer = load(captioner)
        saved = describer.saved
        corpus = build_corpus(
            self.examples,
            text=saved.captioner.text,
            rules=PRESETS["mrnn"],
            encoder=describer.encoder,
            parts=in_order(saved.captioner.needs),
            watch=lambda done, total: None,
        )
        written, drawn, longest = list[str](), list[list[str]](), saved.settings.max_words
        wanted = Sampling(SAMPLES, self.temperature)
        for first in range(0, len(self.examples), TOGETHER):
            rows = range(first, min(first + TOGETHER, len(self.examples)))
            vision, names = corpus.vision(rows), [self.examples[row].image_id for row in rows]
            written += [best.caption for best, *_ in describe(saved, vision, Wish(1, longest))]
            generators = image_generators(names, seed=1)
            chance = sample(saved.captioner, vision, wanted, generators=generators, max_words=longest)
            drawn += [[saved.captioner.text.decode(ids) for ids in group] for group in chance.tokens.tolist()]
        return written, drawn

    def _found(self, captions: Sequence[str]) -> float:
        judge = load_retriever(self.judge)
        pictures = judge.embed_images([example.path for example in self.examples])
        scores = judge.embed_texts(captions) @ pictures.T
        pools = [slice(first, first + self.pool) for first in range(0, len(captions), self.pool)]
        return mean(float((ranks(scores[pool, pool], np.arange(self.pool)) == 0).mean()) for pool in pools)


def _scenes(examples: Sequence[Example]) -> list[Scene]:
    """What is drawn on the pictures of a set of shapes."""
    truth = read_truth(examples[0].path.parent.parent)
    return [truth[example.image_id] for example in examples]


def share_of_true_details(captions: Sequence[str], scenes: Sequence[Scene]) -> float:
    """Of the shapes, colours and sizes that captions name, those the scene has, as often as it has them."""
    named = right = 0
    for caption, scene in zip(captions, scenes, strict=True):
        words = [_SIZES.get(word, word) for word in caption.split()]
        said = Counter(word for word in words if word in {*SHAPES, *COLOURS, *SIZE_WORDS})
        there = Counter(word for thing in scene.things for word in (thing.shape, thing.colour, thing.size))
        named += said.total()
        right += (said & there).total()
    return right / max(1, named)


def distinct_words(captions: Sequence[str]) -> float:
    """Div-1: distinct words over words, of all captions of a scene."""
    words = [word for caption in captions for word in caption.split()]
    return len(set(words)) / max(1, len(words))
