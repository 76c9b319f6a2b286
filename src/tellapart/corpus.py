"""A data set made ready: captions as tokens, pictures as cached features, batches on demand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from tellapart.arrays import Bool, Float16, Float32, Float64
from tellapart.data.batches import choose_captions, pad_captions, plan_epoch, prefer_captions
from tellapart.data.examples import Example
from tellapart.data.imagined import imagine_classes
from tellapart.data.text import TextRules, words
from tellapart.data.views import WHOLE, draw_view
from tellapart.errors import TellapartError
from tellapart.storage import cache_folder
from tellapart.types import Batch, Text, Totals, Vision
from tellapart.vision.cache import FeatureCache
from tellapart.vision.encoder import Encoder
from tellapart.vision.features import Features
from tellapart.vision.looking import look
from tellapart.vision.nouns import name_in_words

Watch = Callable[[int, int], None]  # how many of how many are done


@dataclass(frozen=True, slots=True)
class Pool:
    """Rows of a corpus from `first` up to `last`, of which each epoch takes all (0) or a fresh draw."""

    first: int
    last: int
    per_epoch: int = 0

    def draw(self, *, seed: int, epoch: int) -> list[int]:
        """The rows of an epoch."""
        rows = range(self.first, self.last)
        if not 0 < self.per_epoch < len(rows):
            return list(rows)
        random = np.random.default_rng([seed, epoch, self.first])
        drawn: list[int] = (self.first + random.choice(len(rows), self.per_epoch, replace=False)).tolist()
        return sorted(drawn)


@dataclass(frozen=True, slots=True)
class CaptionDraw:
    """Which captions of an image an epoch takes: all, or as many as wanted, drawn by chance."""

    wanted: int
    seed: int
    epoch: int
    # How much each caption of each row is preferred, as the logarithm of a weight; None: all alike.
    preferences: Sequence[Float64[np.ndarray, " k"]] | None = None

    def places(self, captions: Sequence[object], row: int) -> list[int]:
        """Their places among the captions of the image of that row."""
        if self.preferences is not None:
            return prefer_captions(
                self.preferences[row], wanted=self.wanted, seed=self.seed, epoch=self.epoch, row=row
            )
        return choose_captions(len(captions), wanted=self.wanted, seed=self.seed, epoch=self.epoch, row=row)


class EpochPlans:
    """Which batch is that of a step; the plan of an epoch is made when its first step comes."""

    def __init__(self, make: Callable[[int], list[list[int]]]) -> None:
        self._make = make
        self._epoch, self._plan = 0, make(0)
        self.per_epoch = len(self._plan)

    def find(self, step: int) -> tuple[int, list[int]]:
        """The step's epoch, and the rows of its batch."""
        epoch, place = divmod(step, self.per_epoch)
        if epoch != self._epoch:
            self._epoch, self._plan = epoch, self._make(epoch)
        return epoch, self._plan[place]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Images with tokenised captions, their features in the cache.

    Of an image without a picture only the captions are known: its grid and pooled feature are zeros, and its
    classes are what an encoder might have said of it.
    """

    examples: Sequence[Example]
    digests: Sequence[bytes]  # empty where there is no picture
    captions: Sequence[Sequence[Sequence[int]]]  # tokens from start to end
    text: Text
    cache: FeatureCache
    parts: Sequence[str]
    nouns: Sequence[str]  # of the encoder's classes
    pools: Sequence[Pool]
    views: Sequence[Sequence[bytes]] = ()  # digests of further views to train on, as long as `digests` each

    def rows(self, first: int, last: int) -> Corpus:
        """The images from `first` up to, not including, `last`, as one pool."""
        part = slice(first, last)
        return replace(
            self,
            examples=self.examples[part],
            digests=self.digests[part],
            captions=self.captions[part],
            views=tuple(view[part] for view in self.views),
            pools=(Pool(0, last - first),),
        )

    def plan(self, *, images_per_batch: int, seed: int, epoch: int) -> list[list[int]]:
        """The batches of an epoch, as row numbers."""
        rows = [row for pool in self.pools for row in pool.draw(seed=seed, epoch=epoch)]
        lengths = [max(map(len, self.captions[row]), default=0) for row in rows]
        plan = plan_epoch(lengths, images_per_batch=images_per_batch, seed=seed, epoch=epoch)
        return [[rows[place] for place in batch] for batch in plan]

    def batch(self, rows: Sequence[int], *, captions_per_image: int, seed: int, epoch: int) -> Batch:
        """One batch of the plan."""
        draw = CaptionDraw(captions_per_image, seed, epoch)
        (batch,) = self.shares(rows, [rows], draw)
        return batch

    def shares(
        self, rows: Sequence[int], portions: Sequence[Sequence[int]], draw: CaptionDraw
    ) -> Sequence[Batch]:
        """Portions of a batch of the plan, each of which knows how much the whole batch holds."""
        whole = self.totals(rows, draw)
        return [self._share(portion, whole, draw) for portion in portions if portion]

    def totals(self, rows: Sequence[int], draw: CaptionDraw) -> Totals:
        """How much a batch of these images holds."""
        lengths = [
            len(self.captions[row][place]) - 1
            for row in rows
            for place in draw.places(self.captions[row], row)
        ]
        return Totals(len(rows), len(lengths), sum(lengths))

    def _share(self, rows: Sequence[int], whole: Totals, draw: CaptionDraw) -> Batch:
        places = tuple(tuple(draw.places(self.captions[row], row)) for row in rows)
        chosen = [
            [self.captions[row][place] for place in some] for row, some in zip(rows, places, strict=True)
        ]
        tokens, mask = pad_captions(chosen, pad=self.text.pad)
        vision = self._see([self._drawn(row, draw) for row in rows], rows, seed=draw.seed, epoch=draw.epoch)
        names = tuple(self.examples[row].image_id for row in rows)
        return Batch(names, vision, tokens, mask, tuple(rows), places, whole)

    def _drawn(self, row: int, draw: CaptionDraw) -> bytes:
        """The view of an image that an epoch trains on."""
        number = draw_view(1 + len(self.views), seed=draw.seed, epoch=draw.epoch, row=row)
        return self.views[number - 1][row] if number else self.digests[row]

    def vision(self, rows: Sequence[int]) -> Vision:
        """What the encoder saw in these images."""
        return self._see([self.digests[row] for row in rows], rows, seed=0, epoch=0)

    def _see(self, digests: Sequence[bytes], rows: Sequence[int], *, seed: int, epoch: int) -> Vision:
        """What it saw in these views; what it might have seen is imagined afresh each epoch."""
        pictured = np.array([self.examples[row].pictured for row in rows])
        seen = self.cache.read([digest for digest in digests if digest], self.parts)
        if pictured.all():
            return as_vision(seen)
        whole = [_spread(part, pictured) for part in (seen.grid, seen.pooled, seen.classes)]
        for place, row in enumerate(rows):
            if not pictured[place] and "classes" in self.parts:
                whole[2][place] = self._imagine(row, np.random.default_rng([seed, epoch, row, 1]))
        return replace(as_vision(Features(*whole)), pictured=torch.from_numpy(pictured))

    def _imagine(self, row: int, random: np.random.Generator) -> Float32[np.ndarray, " c"]:
        words = [self.text.decode(caption).split() for caption in self.captions[row]]
        return imagine_classes(words, self.nouns, random)


def _spread(
    seen: Float16[np.ndarray, "s ..."], pictured: Bool[np.ndarray, " b"]
) -> Float16[np.ndarray, "b ..."]:
    """Rows of what was seen in their places, zeros elsewhere."""
    whole = np.zeros((len(pictured), *seen.shape[1:]), seen.dtype)
    whole[pictured] = seen
    return whole


def as_vision(features: Features) -> Vision:
    """Features as the tensors that captioners take."""
    return Vision(
        *(torch.from_numpy(part).float() for part in (features.grid, features.pooled, features.classes))
    )


def build_corpus(
    examples: Sequence[Example],
    *,
    text: Text,
    rules: TextRules,
    encoder: Encoder,
    parts: Sequence[str],
    watch: Watch,
) -> Corpus:
    """Tokenise the captions and see to it that every picture's features are in the cache.

    The rules hold for tokenizers of others too, which would keep capitals and full stops. They change nothing
    where the text has the same ones.
    """
    cache = FeatureCache(cache_folder(), encoder)
    captions = [
        [text.encode(" ".join(words(caption, rules))) for caption in example.captions] for example in examples
    ]
    pictured = [some for some in examples if some.pictured]
    digests = iter(look_at_all(pictured, encoder, parts=parts, cache=cache, watch=watch))
    return Corpus(
        examples,
        [next(digests) if example.pictured else b"" for example in examples],
        captions,
        text,
        cache,
        parts,
        tuple(name_in_words(name) for name in encoder.class_names),
        pools=(Pool(0, len(examples)),),
    )


def with_views(corpus: Corpus, encoder: Encoder, *, count: int, watch: Watch) -> Corpus:
    """The same with so many views of every picture to train on, the whole one included."""
    pictured = [example for example in corpus.examples if example.pictured]
    views = []
    for number in range(1, count):
        seen = iter(
            look_at_all(pictured, encoder, parts=corpus.parts, cache=corpus.cache, watch=watch, view=number)
        )
        views.append([next(seen) if digest else b"" for digest in corpus.digests])
    return replace(corpus, views=tuple(views))


def look_at_all(
    examples: Sequence[Example],
    encoder: Encoder,
    *,
    parts: Sequence[str],
    cache: FeatureCache,
    watch: Watch,
    view: int = WHOLE,
) -> list[bytes]:
    """See to it that every picture's features are in the cache; the keys that they are found by."""
    digests = []
    paths = [example.path for example in examples]
    for done, (example, seen) in enumerate(
        zip(examples, look(paths, encoder, parts=parts, cache=cache, view=view), strict=True)
    ):
        if isinstance(seen, TellapartError):
            raise TellapartError(
                f"{example.where}: {seen.problem}", hint="'tellapart data check' lists all such images"
            )
        digests.append(seen.digest)
        watch(done + 1, len(examples))
    return digests
