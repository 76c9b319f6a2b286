"""The pictures of a folder as a look at it has shown them, in arrays."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from tellapart.arrays import Int64
from tellapart.errors import TellapartError
from tellapart.retrievers.store.look import Look, look


@dataclass(frozen=True)
class Listing:
    """The pictures of a folder and of those inside it."""

    folder: Path
    joined: bytes  # their paths inside the folder, with zeros between
    sizes: Int64[np.ndarray, " n"]
    changed: Int64[np.ndarray, " n"]  # time of the last change, in nanoseconds
    touched: Int64[np.ndarray, " n"]  # the same of anything about the file: no copy or move can set it back
    texts: list[str]  # the .txt files there: each may hold captions of the picture of its name
    problems: list[TellapartError]  # what cannot be looked at
    when: int  # the time at which the look began, in nanoseconds
    key: bytes  # of the names in the order in which they were seen
    seen_at: Int64[np.ndarray, " n"]  # the place of each in that order

    @cached_property
    def names(self) -> list[str]:
        """Paths inside the folder."""
        return apart(self.joined)

    def in_order(self) -> Listing:
        """The same with the pictures in the order in which `find_pictures` gives them, folder by folder."""
        # As mere letters, "a b/1.jpg" would stand before "a/1.jpg".
        keys = [name.split("/") for name in self.names]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        return replace(
            self,
            joined=joined([self.names[place] for place in order]),
            sizes=self.sizes[order],
            changed=self.changed[order],
            touched=self.touched[order],
            seen_at=self.seen_at[order],
        )


def list_pictures(folder: Path) -> Listing:
    """Look through a folder; one that is none, or holds no picture, is an error."""
    return listing_of(folder, look(folder))


def listing_of(folder: Path, seen: Look) -> Listing:
    """What was seen in a folder."""
    sizes, changed, touched = (
        np.frombuffer(numbers, np.int64) for numbers in (seen.sizes, seen.changed, seen.touched)
    )
    return Listing(
        folder=folder,
        joined=seen.names,
        sizes=sizes,
        changed=changed,
        touched=touched,
        texts=seen.texts,
        problems=seen.problems,
        when=seen.when,
        key=seen.key,
        seen_at=np.arange(len(sizes)),
    )


def joined(names: list[str]) -> bytes:
    """Names as bytes, with zeros between."""
    return os.fsencode("\0".join(names))


def apart(names: bytes) -> list[str]:
    """The other way round."""
    return os.fsdecode(names).split("\0") if names else []


def without_ending(name: str) -> str:
    """What a picture and the .txt file beside it have in common."""
    return name[: name.rfind(".")]
