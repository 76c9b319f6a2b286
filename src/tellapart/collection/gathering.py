"""A first walk through a collection: each picture is seen, placed, and given candidates for its caption.

Candidates are written down as they come, so that memory does not grow with them, and a walk that was broken
off goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from tellapart.captioning import Candidate, describe
from tellapart.collection.drawing import draw
from tellapart.collection.places import Places
from tellapart.collection.speaker import Beheld, Speaker
from tellapart.corpus import as_vision
from tellapart.errors import TellapartError
from tellapart.outputs.journal import Journal, Record
from tellapart.retrievers.retriever import Watch, unwatched
from tellapart.types import Vision
from tellapart.vision.features import stack

# Pictures captioned in one go. Fewer take less memory; down to this many, no loss of speed was seen.
AT_ONCE = 32
DRAWN_AT_ONCE = 8  # pictures of which captions are drawn in one go: many of each


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a collection."""

    path: Path
    image_id: str
    content: str  # fingerprint of its file, but for a description in it
    is_wanted: bool  # whether it is to have a caption, or is only to be told from


@dataclass(frozen=True, slots=True)
class Listed:
    """A file of a collection that is yet to be seen."""

    path: Path
    image_id: str
    is_wanted: bool = True


@dataclass(frozen=True, slots=True)
class Described:
    """What the captioner says of a picture by itself."""

    candidates: Sequence[Candidate]
    drawn: Sequence[str]  # by chance, as many as the plan asks for

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> Described:
        """As a line of a journal has it."""
        return cls(read_candidates(fields), fields.get("drawn", ()))


@dataclass(slots=True)
class Gathering:
    """The pictures that were seen so far, where they lie, and where their candidates are written down.

    `earlier` gives what is known of a picture of this content from an earlier run, if anything.
    """

    speaker: Speaker
    notes: Journal
    earlier: Callable[[Picture], Described | None]
    places: Places
    pictures: list[Picture] = field(default_factory=list)

    def walk(self, listed: Sequence[Listed], *, watch: Watch = unwatched) -> Iterator[TellapartError]:
        """See every picture, once; what cannot be seen is told as it comes."""
        in_order = iter(listed)
        results = self.speaker.behold(some.path for some in listed)
        done = 0
        while group := list(islice(results, AT_ONCE)):
            yield from (result for result in group if isinstance(result, TellapartError))
            self._take(
                [(result, _listed_as(result, in_order)) for result in group if isinstance(result, Beheld)]
            )
            done += len(group)
            watch(min(done, len(listed)), len(listed))

    def described(self, picture: Picture) -> Described:
        """What is said of a picture, from where it was written down."""
        fields = self.notes.fields(picture.image_id)
        assert fields is not None
        return Described.read(fields)

    def _take(self, group: Sequence[tuple[Beheld, Listed]]) -> None:
        undescribed: list[tuple[Beheld, Picture]] = []
        for beheld, listed in group:
            picture = Picture(beheld.path, listed.image_id, beheld.content, listed.is_wanted)
            self.places.add(beheld.vector)
            self.pictures.append(picture)
            if not picture.is_wanted or self.notes.holds(picture.image_id, picture.content):
                continue
            if known := self.earlier(picture):
                self._write_down(picture, known)
            else:
                undescribed.append((beheld, picture))
        if undescribed:
            vision = as_vision(stack([beheld.features for beheld, _ in undescribed]))
            found = describe(self.speaker.describer.saved, vision, self.speaker.wish)
            # By another name than candidates that are drawn later, which are held against these.
            drawn = self._draw(vision, [f"{picture.content} agreement" for _, picture in undescribed])
            for (_, picture), candidates, captions in zip(undescribed, found, drawn, strict=True):
                self._write_down(picture, Described(candidates, captions))

    def _draw(self, vision: Vision, names: Sequence[str]) -> Iterator[Sequence[str]]:
        """As many captions of each picture as the plan asks for."""
        count, text = self.speaker.plan.agree, self.speaker.describer.saved.captioner.text
        for first in range(0, len(names), DRAWN_AT_ONCE):
            rows = torch.arange(first, min(first + DRAWN_AT_ONCE, len(names)))
            some = names[first : first + DRAWN_AT_ONCE]
            if not count:
                yield from ((),) * len(some)
                continue
            for tokens in draw(self.speaker, vision.select(rows), some, count).tokens.tolist():
                yield [text.decode(caption) for caption in tokens]

    def _write_down(self, picture: Picture, described: Described) -> None:
        candidates = described.candidates
        about = {"candidates": [one.to_json() for one in candidates], "drawn": list(described.drawn)}
        first = candidates[0].caption if candidates else ""
        self.notes.add(Record(picture.path, picture.image_id, picture.content, first, about))


def _listed_as(beheld: Beheld, in_order: Iterator[Listed]) -> Listed:
    """What a picture was listed as; those before it that are passed over could not be seen."""
    return next(some for some in in_order if some.path == beheld.path)


def read_candidates(fields: Mapping[str, Any]) -> list[Candidate]:
    """The candidates in a line of a journal."""
    return [Candidate(**one) for one in fields["candidates"]]
