"""The pictures of a folder as a look at it has shown them, in arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Int64

from tellapart.errors import TellapartError
from tellapart.retrievers.store.look import Look, look


@dataclass(frozen=True, slots=True)
class Listing:
    """The pictures of a folder and of those inside it."""

    folder: Path
    names: list[str]  # paths inside the folder
    sizes: Int64[np.ndarray, " n"]
    changed: Int64[np.ndarray, " n"]  # time of the last change, in nanoseconds
    texts: list[str]  # the .txt files there: each may hold captions of the picture of its name
    problems: list[TellapartError]  # what cannot be looked at
    when: int  # the time at which the look began, in nanoseconds

    def in_order(self) -> Listing:
        """The same with the pictures in the order in which `find_pictures` gives them, folder by folder."""
        # As mere letters, "a b/1.jpg" would stand before "a/1.jpg".
        keys = [name.split("/") for name in self.names]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        names = [self.names[place] for place in order]
        return replace(self, names=names, sizes=self.sizes[order], changed=self.changed[order])


def list_pictures(folder: Path) -> Listing:
    """Look through a folder; one that is none, or holds no picture, is an error."""
    return listing_of(folder, look(folder))


def listing_of(folder: Path, seen: Look) -> Listing:
    """What was seen in a folder."""
    sizes, changed = np.frombuffer(seen.sizes, np.int64), np.frombuffer(seen.changed, np.int64)
    return Listing(folder, seen.names, sizes, changed, seen.texts, seen.problems, seen.when)


def without_ending(name: str) -> str:
    """What a picture and the .txt file beside it have in common."""
    return name[: name.rfind(".")]
