"""A captioner and a retriever that look at pictures together: one speaks, one tells what is like what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from tellapart.arrays import Float32
from tellapart.captioning import Describer, Wish
from tellapart.collection.plan import Plan
from tellapart.data.picture_files import read_bytes
from tellapart.errors import TellapartError
from tellapart.outputs.metadata import digest_without_description
from tellapart.retrievers.dual.runtime import DualRetriever
from tellapart.retrievers.retriever import Placed, Retriever
from tellapart.vision.cache import digest_of
from tellapart.vision.features import Features
from tellapart.vision.looking import Seen

TOGETHER = 64  # pictures decoded and compared in one go


@dataclass(frozen=True, slots=True)
class Beheld:
    """A picture that both have seen."""

    path: Path
    content: str  # fingerprint of its file, but for a description in it
    features: Features  # the captioner's
    vector: Float32[np.ndarray, " d"]  # the retriever's


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who captions a collection, and how."""

    describer: Describer
    retriever: Retriever
    wish: Wish  # how candidates are found at first
    plan: Plan

    def behold(self, paths: Iterable[Path | TellapartError]) -> Iterator[Beheld | TellapartError]:
        """What both see in each file, in order; a bad file gives its error in its place.

        Where both have the same encoder, a picture passes through it once.
        """
        needs = self.describer.saved.captioner.needs
        retriever = self.retriever
        if isinstance(retriever, DualRetriever) and self._shares_encoder(retriever):
            for seen in self.describer.look(paths, besides=retriever.parts):
                if isinstance(seen, TellapartError):
                    yield seen
                else:
                    # One by one: a product of many rounds by the company that a picture comes in.
                    vector = retriever.embed_features(seen.features)[0]
                    yield _beheld(seen, seen.features.only(needs), vector)
            return
        results = self.describer.look(paths)
        while group := list(islice(results, TOGETHER)):
            yield from self._place(group)

    def see_again(self, pictures: Mapping[Path, str]) -> dict[Path, Seen]:
        """What the captioner sees in these files, given with their content; changed ones are left out."""
        found = self.describer.look(pictures)
        return {
            seen.path: seen
            for seen in found
            if isinstance(seen, Seen) and _is_still(seen, pictures[seen.path])
        }

    def read(self, sentences: Sequence[str]) -> Float32[np.ndarray, "n d"]:
        """Where sentences lie for the retriever, which need not know what to do with none."""
        if not sentences:
            return np.empty((0, self.retriever.width), np.float32)
        return self.retriever.embed_texts(sentences)

    def _shares_encoder(self, retriever: DualRetriever) -> bool:
        return retriever.settings.encoder.identity == self.describer.encoder.identity

    def _place(self, group: Sequence[Seen | TellapartError]) -> Iterator[Beheld | TellapartError]:
        """Have the retriever place what the captioner has seen."""
        good = [seen for seen in group if isinstance(seen, Seen)]
        vectors: dict[Path, Float32[np.ndarray, " d"]] = {}
        for placed in self.retriever.place([seen.path for seen in good]):
            if isinstance(placed, Placed):
                vectors[placed.path] = placed.vector
            else:
                yield placed
        for seen in group:
            if isinstance(seen, TellapartError):
                yield seen
            elif seen.path in vectors:
                yield _beheld(seen, seen.features, vectors[seen.path])


def content_of(seen: Seen) -> str:
    """A fingerprint of a picture's file that stays when the picture is described in it.

    A file that is no more what was seen is an error: one picture's caption would be noted as another's.
    """
    data = read_bytes(seen.path)
    if digest_of(data) != seen.digest:
        raise TellapartError(
            f"{seen.path} was changed while it was looked at", hint="run the same command again"
        )
    return digest_without_description(data)


def _is_still(seen: Seen, content: str) -> bool:
    try:
        return content_of(seen) == content
    except TellapartError:  # gone, or changed once more
        return False


def _beheld(seen: Seen, features: Features, vector: Float32[np.ndarray, " d"]) -> Beheld | TellapartError:
    try:
        return Beheld(seen.path, content_of(seen), features, vector)
    except TellapartError as error:  # gone or changed since it was seen
        return error
