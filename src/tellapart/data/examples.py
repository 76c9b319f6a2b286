"""The records in which every reader answers: images with their captions, and what is wrong with the files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tellapart.errors import TellapartError

SPLITS = ("train", "val", "test")


@dataclass(frozen=True, slots=True)
class Example:
    """One image and its captions."""

    image_id: str
    path: Path
    captions: tuple[str, ...]
    split: str  # one of SPLITS, or "" where the data set has no splits
    where: str  # "file:line" that describes it, for messages
    pictured: bool = True  # False: only the captions are at hand, whatever the path says


@dataclass(frozen=True, slots=True)
class Problem:
    """Something wrong with a data set: where (file and line), what, and what to do."""

    where: str
    what: str
    hint: str

    def error(self) -> TellapartError:
        """The same as an exception."""
        return TellapartError(f"{self.where}: {self.what}", hint=self.hint)


@dataclass(frozen=True, slots=True)
class Reading:
    """All that a reader found in a file, good and bad."""

    examples: Sequence[Example]
    problems: Sequence[Problem]

    def strict(self) -> Sequence[Example]:
        """The examples, or the first problem raised as an error."""
        for problem in self.problems:
            raise problem.error()
        return self.examples
