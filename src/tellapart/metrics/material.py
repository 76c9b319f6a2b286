"""What measures measure: captions, references and what else is at hand, tokenized once for all of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path

import numpy as np

from tellapart.errors import TellapartError
from tellapart.metrics.ptb.tokenizer import tokenize_all
from tellapart.metrics.score import Floats, Score, content_name
from tellapart.metrics.sentences import Ints, Lexicon, Order, Sentences, count_ngrams, offsets

Watch = Callable[[str, int, int], None]  # what is being done, how much of it is, how much there is


def unwatched(what: str, done: int, total: int) -> None:
    """Progress that nobody looks at."""


@dataclass(frozen=True)
class Material:
    """Images with their captions; everything in the order of `ids`."""

    ids: tuple[str, ...]
    candidates: tuple[tuple[str, ...], ...]  # one or more an image, the first being its caption
    references: tuple[tuple[str, ...], ...] | None = None  # one or more an image
    training: tuple[tuple[str, ...], ...] | None = None  # captions of each image that was trained on
    pictures: tuple[Path, ...] | None = None
    similarity: Floats | None = None  # (captions, pictures) of a retriever, the greater the closer
    features: Floats | None = None  # (pictures, d): what crowding is told from
    retriever: str = ""  # whose scores the similarity is, as signatures are to call it
    watch: Watch = field(default=unwatched, compare=False)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def captions(self) -> tuple[str, ...]:
        """The caption of each image: its first candidate."""
        return tuple(candidates[0] for candidates in self.candidates)

    @property
    def width(self) -> int:
        """How many candidates an image has; images with unlike numbers are an error that names one."""
        width = len(self.candidates[0]) if self.candidates else 0
        for image_id, candidates in zip(self.ids, self.candidates, strict=True):
            if len(candidates) != width:
                raise TellapartError(
                    f"image {image_id!r} has {len(candidates)} candidates and image {self.ids[0]!r} {width}",
                    hint="measures of sets of candidates need the same number for every image",
                )
        return width

    def expect_references(self, metric: str) -> tuple[tuple[str, ...], ...]:
        """The references, or an error that says which measure needs them."""
        if self.references is None:
            raise TellapartError(f"{metric} needs references", hint="give them with --references")
        return self.references

    def expect_training(self, metric: str) -> tuple[tuple[str, ...], ...]:
        """The training captions, or an error that says which measure needs them."""
        if not self.training:
            raise TellapartError(f"{metric} needs the training captions", hint="give them with --train")
        return self.training

    def expect_pictures(self, metric: str) -> tuple[Path, ...]:
        """The picture files, or an error that says which measure needs them."""
        if self.pictures is None:
            raise TellapartError(f"{metric} needs the pictures", hint="give their folder with --images")
        return self.pictures

    @property
    def base_signature(self) -> dict[str, object]:
        """What the signature of every measure against references begins with."""
        sizes = sorted({len(group) for group in self.references or ()})
        spoken = "-".join(str(size) for size in dict.fromkeys([*sizes[:1], *sizes[-1:]])) or "0"
        return {"tokenizer": "ptb", "references": spoken}

    @cached_property
    def candidate_tokens(self) -> list[list[str]]:
        """Tokens of every candidate, image after image."""
        return tokenize_all(list(chain.from_iterable(self.candidates)))

    @cached_property
    def caption_tokens(self) -> list[list[str]]:
        """Tokens of each image's caption."""
        return [self.candidate_tokens[start] for start in _starts(self.candidates)[:-1]]

    @cached_property
    def reference_tokens(self) -> list[list[str]]:
        """Tokens of every reference, image after image."""
        return tokenize_all(list(chain.from_iterable(self.references or ())))

    @cached_property
    def training_tokens(self) -> list[list[str]]:
        """Tokens of every training caption, image after image."""
        return tokenize_all(list(chain.from_iterable(self.training or ())))

    @cached_property
    def training_name(self) -> str:
        """How signatures call the training captions: how many images, and a fingerprint of the texts."""
        content = content_name(json.dumps(self.training))
        return f"{len(self.training or ())},{content}"

    @cached_property
    def references_name(self) -> str:
        """A name for the references of these images, whatever their order; "" where there are none."""
        pairs = zip(self.ids, self.references or (), strict=False)
        return content_name(*sorted(map(json.dumps, pairs))) if self.references else ""

    @cached_property
    def lexicon(self) -> Lexicon:
        """Numbers of all words in candidates and references."""
        return Lexicon()

    @cached_property
    def whole_candidates(self) -> Sentences:
        """Every candidate as numbers of tokens; its group is its image."""
        return self.lexicon.whole_tokens(self.candidate_tokens, owners(self.candidates))

    @cached_property
    def whole_captions(self) -> Sentences:
        """Each image's caption as numbers of tokens."""
        return self.whole_candidates.take(_starts(self.candidates)[:-1])

    @cached_property
    def whole_references(self) -> Sentences:
        """Every reference as numbers of tokens; its group is its image."""
        return self.lexicon.whole_tokens(self.reference_tokens, owners(self.references or ()))

    @cached_property
    def candidate_words(self) -> Sentences:
        """Every candidate as numbers of words."""
        return self.lexicon.words(self.whole_candidates)

    @cached_property
    def caption_words(self) -> Sentences:
        """Each image's caption as numbers of words."""
        return self.lexicon.words(self.whole_captions)

    @cached_property
    def reference_words(self) -> Sentences:
        """Every reference as numbers of words."""
        return self.lexicon.words(self.whole_references)

    @cached_property
    def ngrams(self) -> list[Order]:
        """N-grams of captions and references, orders 1 to 4: several measures count them."""
        return count_ngrams([self.caption_words, self.reference_words], orders=4)


def _starts(groups: Sequence[Sequence[object]]) -> Ints:
    return offsets(np.fromiter(map(len, groups), np.int64, len(groups)))


def owners(groups: Sequence[Sequence[object]]) -> Ints:
    """The number of the group that each member of some groups belongs to."""
    return np.repeat(np.arange(len(groups)), np.fromiter(map(len, groups), np.int64, len(groups)))


Metric = Callable[[Material], list[Score]]
"""A measure: what it finds in some material."""
