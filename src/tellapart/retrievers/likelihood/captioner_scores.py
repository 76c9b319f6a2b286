"""A captioner and its encoder as something that scores sentences for picture files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from tellapart.arrays import Float32, Int
from tellapart.errors import TellapartError
from tellapart.retrievers.likelihood.kept import PICTURES, kept_scores
from tellapart.retrievers.retriever import Watch, unwatched
from tellapart.storage import cache_folder
from tellapart.types import AnyCaptioner, Vision
from tellapart.vision.cache import FeatureCache
from tellapart.vision.encoder import Encoder
from tellapart.vision.features import Features, in_order
from tellapart.vision.looking import look


@dataclass(frozen=True, slots=True)
class Likelihood:
    """How likely a captioner finds sentences, of pictures, of the mean of pictures, or of none.

    It places nothing on a sphere: the scores of all pairs are all that there is. A word that the captioner
    does not know counts as the unknown word, which it expects with a probability of its own.
    """

    name: str  # as a user writes it
    identity: str  # changes whenever a score might
    captioner: AnyCaptioner
    encoder: Encoder
    as_vision: Callable[[Features], Vision]

    def scores(
        self,
        sentences: Sequence[str],
        paths: Sequence[str | os.PathLike[str]],
        *,
        watch: Watch = unwatched,
    ) -> Float32[np.ndarray, "sentences pictures"]:
        """The log p(c|I) of every sentence for every picture file; computed once, then read from disk.

        `watch` follows the scoring. What an encoder has not seen yet is looked at first: see `look`.
        """
        return self._keep(sentences, self.look(paths), self._see, watch)

    def scores_of_mean(
        self, sentences: Sequence[str], paths: Sequence[str | os.PathLike[str]]
    ) -> Float32[np.ndarray, " sentences"]:
        """The log p(c|Ī), with Ī the mean of the features of these pictures."""
        digests = self.look(paths)
        mean = hashlib.sha256(b"mean of " + b"".join(sorted(digests))).digest()
        return self._keep(sentences, [mean], lambda _: self._mean(digests), unwatched)[:, 0]

    def scores_of_nothing(self, sentences: Sequence[str]) -> Float32[np.ndarray, " sentences"]:
        """The log p(c) by a captioner that looks at no picture, a language model."""
        self.expect_blind()
        nothing = Vision(torch.zeros(1, 0, 0), torch.zeros(1, 0), torch.zeros(1, 0))
        return self._keep(sentences, [b""], lambda _: nothing, unwatched)[:, 0]

    def expect_blind(self) -> None:
        """An error for a captioner that looks at pictures."""
        if self.captioner.needs:
            raise TellapartError(
                f"{self.name}: a captioner that looks at pictures, not a language model",
                hint="name a run of rnn-base, trained on the same captions",
            )

    def lengths(self, sentences: Sequence[str]) -> Int[np.ndarray, " sentences"]:
        """The tokens that each score is a sum over: words, and the end sign."""
        return np.array([len(tokens) - 1 for tokens in self._tokens(sentences)])

    def look(self, paths: Sequence[str | os.PathLike[str]], *, watch: Watch = unwatched) -> list[bytes]:
        """See to it that the features of each picture are in the cache; what they are known by."""
        digests = []
        for seen in look(map(Path, paths), self.encoder, parts=self._parts(), cache=self._cache()):
            if isinstance(seen, TellapartError):
                raise seen
            digests.append(seen.digest)
            watch(len(digests), len(paths))
        return digests

    def _keep(
        self,
        sentences: Sequence[str],
        digests: Sequence[bytes],
        see: Callable[[Sequence[bytes]], Vision],
        watch: Watch,
    ) -> Float32[np.ndarray, "sentences pictures"]:
        for what, some in (("sentence", sentences), ("picture", digests)):
            if not some:
                raise TellapartError(f"there is no {what} to score", hint="give at least one")
        captions = self._tokens(sentences)
        return kept_scores(self.captioner, captions, digests, see, identity=self.identity, watch=watch)

    def _tokens(self, sentences: Sequence[str]) -> list[list[int]]:
        return [self.captioner.text.encode(sentence) for sentence in sentences]

    def _see(self, digests: Sequence[bytes]) -> Vision:
        return self.as_vision(self._cache().read(digests, self._parts()))

    def _mean(self, digests: Sequence[bytes]) -> Vision:
        groups = (digests[first : first + PICTURES] for first in range(0, len(digests), PICTURES))
        return mean_vision(map(self._see, groups))

    def _parts(self) -> list[str]:
        return in_order(self.captioner.needs)

    def _cache(self) -> FeatureCache:
        return FeatureCache(cache_folder(), self.encoder)


def mean_vision(blocks: Iterable[Vision]) -> Vision:
    """The mean of the features of all pictures, as those of one."""
    count, totals = 0, [torch.zeros(1, dtype=torch.float64)] * 3
    for vision in blocks:
        count += len(vision)
        parts = (vision.grid, vision.pooled, vision.classes)
        totals = [total + part.double().sum(0) for total, part in zip(totals, parts, strict=True)]
    grid, pooled, classes = ((total / count).float().unsqueeze(0) for total in totals)
    return Vision(grid, pooled, classes)
