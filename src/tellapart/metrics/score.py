"""What a measure answers: a number, its value for each image, and a signature that says how it came about."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tellapart.errors import TellapartError

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pooled:
    """A corpus value that is no mean over images, but a formula on sums over them (BLEU, METEOR).

    With the summands kept, a resampled corpus costs one matrix product.
    """

    statistics: Floats  # (images, s)
    formula: Callable[[Floats], Floats]  # sums (…, s) -> values (…)


@dataclass(frozen=True, slots=True)
class Score:
    """One measure of one set of captions."""

    name: str
    corpus: float
    signature: str
    each: Floats | None = (
        None  # one an image, in the order of the material; None where only the whole has one
    )
    pooled: Pooled | None = None
    notes: tuple[str, ...] = ()

    def __float__(self) -> float:
        return self.corpus


def mean_score(
    name: str, each: Sequence[float] | Floats, signature: str, *, notes: tuple[str, ...] = ()
) -> Score:
    """A score whose corpus value is the mean over images."""
    values = np.asarray(each, dtype=np.float64)
    return Score(name, float(values.mean()) if values.size else math.nan, signature, values, notes=notes)


def content_name(*texts: str) -> str:
    """A short name for content that a signature cannot spell out: eight signs that change with it."""
    joined = "\n".join(texts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(joined).hexdigest()[:8]


def signed(details: Mapping[str, object]) -> str:
    """A signature: `key:value` pairs in their order, such as `tokenizer:ptb|orders:1-4|lengths:closest`."""
    return "|".join(f"{key}:{value}" for key, value in details.items())


@dataclass(frozen=True)
class Scores(Mapping[str, Score]):
    """All scores of one set of captions, by name."""

    ids: tuple[str, ...]
    parts: Mapping[str, Score]
    skipped: Mapping[str, str]  # measures that were asked for as part of "all" and could not run: name -> why
    remarks: tuple[str, ...] = ()  # what is worth knowing about the captions themselves
    references: str = ""  # a name for the references, by their content

    def __getitem__(self, name: str) -> Score:
        return self.parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def images(self) -> int:
        """How many images were scored."""
        return len(self.ids)

    @property
    def scores(self) -> dict[str, float]:
        """The corpus value of each measure."""
        return {name: score.corpus for name, score in self.parts.items()}

    @property
    def signatures(self) -> dict[str, str]:
        """The signature of each measure."""
        return {name: score.signature for name, score in self.parts.items()}

    @property
    def notes(self) -> list[str]:
        """Everything that a reader of the numbers should know, each once."""
        return list(
            dict.fromkeys([*self.remarks, *(n for score in self.parts.values() for n in score.notes)])
        )

    def to_json(self) -> dict[str, Any]:
        """As plain values, at full precision; what is not a number stands as null."""
        found: dict[str, Any] = {
            "scores": {name: plain(value) for name, value in self.scores.items()},
            "signatures": self.signatures,
            "images": self.images,
        }
        if self.references:
            found["references"] = self.references
        if self.notes:
            found["notes"] = self.notes
        if self.skipped:
            found["skipped"] = dict(self.skipped)
        return found

    def rows(self) -> Iterator[dict[str, Any]]:
        """One object an image: its id and every measure that has a value for it."""
        columns = [(name, score.each) for name, score in self.parts.items() if score.each is not None]
        for row, image_id in enumerate(self.ids):
            yield {"image_id": image_id} | {name: plain(float(each[row])) for name, each in columns}


def plain(value: float) -> float | None:
    """A number as JSON has it: NaN and infinities are not."""
    return value if math.isfinite(value) else None


def gathered(
    ids: tuple[str, ...],
    found: Sequence[Score],
    *,
    skipped: Mapping[str, str],
    remarks: tuple[str, ...],
    treatment: str,
) -> Scores:
    """Scores by name; what was done to the captions before any measure saw them joins every signature."""
    parts: dict[str, Score] = {}
    for score in found:
        if score.name in parts:
            raise TellapartError(
                f"two measures are called {score.name!r}", hint="ask for one of them at a time"
            )
        signature = f"{score.signature}|{treatment}" if treatment else score.signature
        parts[score.name] = replace(score, signature=signature)
    return Scores(ids, parts, skipped, remarks)
