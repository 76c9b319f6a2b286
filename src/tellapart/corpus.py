"""A data set made ready: captions as tokens, pictures as cached features, batches on demand."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from tellapart.data.batches import choose_captions, pad_captions, plan_epoch
from tellapart.data.examples import Example
from tellapart.data.readers import read_dataset
from tellapart.data.shapes.dataset import VERSION, write_shapes
from tellapart.data.text import TextRules, words
from tellapart.data.vocabulary import Vocabulary
from tellapart.errors import TellapartError
from tellapart.recipe import DataConfig
from tellapart.storage import cache_folder
from tellapart.types import Batch, Vision
from tellapart.vision.cache import FeatureCache
from tellapart.vision.encoder import Encoder, Features
from tellapart.vision.looking import look

Watch = Callable[[int, int], None]  # how many of how many are done


def read_examples(data: DataConfig, *, seed: int) -> Sequence[Example]:
    """The examples that a recipe's data section names; scenes are drawn first where it says so."""
    if data.format == "shapes":
        folder = cache_folder() / "shapes" / f"v{VERSION}-{data.scenes}-{data.look_alikes}-{seed}"
        write_shapes(folder, count=data.scenes, seed=seed, look_alikes=data.look_alikes)
        return read_dataset(folder / "captions.jsonl", format="jsonl", images=folder).strict()
    images = data.resolve(data.images) if data.images else None
    examples = read_dataset(data.resolve(data.path), format=data.format, images=images).strict()
    return examples if any(example.split for example in examples) else split_off(examples, data.val_share)


def split_off(examples: Sequence[Example], share: float) -> Sequence[Example]:
    """Images of a set without splits, a share of them to validate on: the same each time, by their ids."""
    by_hash = sorted(examples, key=lambda example: hashlib.sha256(example.image_id.encode()).digest())
    chosen = {example.image_id for example in by_hash[: max(1, round(share * len(examples)))]}
    return [replace(example, split="val" if example.image_id in chosen else "train") for example in examples]


def split_of(examples: Sequence[Example], split: str) -> Sequence[Example]:
    """The examples of one split, which must not be empty."""
    chosen = [example for example in examples if example.split == split]
    if not chosen:
        there = sorted({example.split or "(none)" for example in examples})
        raise TellapartError(
            f"the data set has no split {split!r}",
            hint=f"its splits: {', '.join(there)}; training needs train and val",
        )
    return chosen


def build_vocabulary(examples: Iterable[Example], rules: TextRules) -> Vocabulary:
    """The words of these captions that are frequent enough."""
    captions = (words(caption, rules) for example in examples for caption in example.captions)
    return Vocabulary.build(captions, min_count=rules.min_count)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Images with tokenised captions, their features in the cache."""

    examples: Sequence[Example]
    digests: Sequence[bytes]
    captions: Sequence[Sequence[Sequence[int]]]  # tokens from start to end
    vocabulary: Vocabulary
    cache: FeatureCache
    parts: Sequence[str]

    def rows(self, first: int, last: int) -> Corpus:
        """The images from `first` up to, not including, `last`."""
        part = slice(first, last)
        return replace(
            self, examples=self.examples[part], digests=self.digests[part], captions=self.captions[part]
        )

    def plan(self, *, images_per_batch: int, seed: int, epoch: int) -> list[list[int]]:
        """The batches of an epoch, as row numbers."""
        lengths = [max(map(len, group)) for group in self.captions]
        return plan_epoch(lengths, images_per_batch=images_per_batch, seed=seed, epoch=epoch)

    def batch(self, rows: Sequence[int], *, captions_per_image: int, seed: int, epoch: int) -> Batch:
        """One batch of the plan."""
        chosen = []
        for row in rows:
            group = self.captions[row]
            places = choose_captions(len(group), wanted=captions_per_image, seed=seed, epoch=epoch, row=row)
            chosen.append([group[place] for place in places])
        tokens, mask = pad_captions(chosen, pad=self.vocabulary.pad)
        return Batch(tuple(self.examples[row].image_id for row in rows), self.vision(rows), tokens, mask)

    def vision(self, rows: Sequence[int]) -> Vision:
        """What the encoder saw in these images."""
        return as_vision(self.cache.read([self.digests[row] for row in rows], self.parts))


def as_vision(features: Features) -> Vision:
    """Features as the tensors that captioners take."""
    return Vision(
        *(torch.from_numpy(part).float() for part in (features.grid, features.pooled, features.classes))
    )


def build_corpus(
    examples: Sequence[Example],
    *,
    vocabulary: Vocabulary,
    rules: TextRules,
    encoder: Encoder,
    parts: Sequence[str],
    watch: Watch,
) -> Corpus:
    """Tokenise the captions and see to it that every picture's features are in the cache."""
    cache = FeatureCache(cache_folder(), encoder)
    captions = [[vocabulary.encode(words(text, rules)) for text in example.captions] for example in examples]
    return Corpus(
        examples, _digests(examples, encoder, parts, cache, watch), captions, vocabulary, cache, parts
    )


def _digests(
    examples: Sequence[Example], encoder: Encoder, parts: Sequence[str], cache: FeatureCache, watch: Watch
) -> list[bytes]:
    paths: list[Path | TellapartError] = [example.path for example in examples]
    digests = []
    for done, (example, seen) in enumerate(
        zip(examples, look(paths, encoder, parts=parts, cache=cache), strict=True)
    ):
        if isinstance(seen, TellapartError):
            raise TellapartError(
                f"{example.where}: {seen.problem}", hint="'tellapart data check' lists all such images"
            )
        digests.append(seen.digest)
        watch(done + 1, len(examples))
    return digests
