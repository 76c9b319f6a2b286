"""What is remembered of a folder's pictures beside their vectors: names, sizes, times, and bad files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from tellapart.arrays import Int64
from tellapart.errors import TellapartError
from tellapart.retrievers.store.listing import Listing, apart, joined
from tellapart.retrievers.store.vectors import Kept

SECOND = 1_000_000_000  # nanoseconds
UNSURE = 2 * SECOND  # what changed so shortly before it was looked at may have changed again at the same time
FAILURE_LASTS = 24 * 3600 * SECOND  # a file may also fail because the machine was short of something
UNKNOWN = -1


@dataclass(frozen=True, slots=True)
class Failure:
    """A file that could be read but is no good picture, and what was said about it."""

    size: int
    changed: int
    touched: int
    when: int
    problem: str
    hint: str

    def error(self) -> TellapartError:
        """The same as an exception."""
        return TellapartError(self.problem, hint=self.hint)


@dataclass(frozen=True, slots=True)
class Memory:
    """The pictures of a folder as they were when their vectors were kept."""

    names: list[str]
    sizes: Int64[np.ndarray, " n"]
    changed: Int64[np.ndarray, " n"]
    touched: Int64[np.ndarray, " n"]
    failures: Mapping[str, Failure]
    key: bytes  # of the look at the folder that they are from
    seen: Int64[np.ndarray, " m"]  # for each picture in the order of that look, its number; or UNKNOWN

    def places(self, listing: Listing) -> Int64[np.ndarray, " m"]:
        """For each picture there is now, its number here; UNKNOWN where it is new or has changed."""
        if not self.names:
            return np.full(len(listing.sizes), UNKNOWN)
        if listing.key == self.key:  # the same names in the same order: nobody has to read them
            places = self.seen[listing.seen_at]
        else:
            numbers = dict(zip(self.names, range(len(self.names)), strict=True))
            places = np.array([numbers.get(name, UNKNOWN) for name in listing.names], np.int64)
        same = self.sizes[places] == listing.sizes
        same &= (self.changed[places] == listing.changed) & (self.touched[places] == listing.touched)
        return np.where(same, places, UNKNOWN)

    def failing(self, listing: Listing) -> dict[int, Failure]:
        """The pictures there are now, by their place, that were no good and have not changed since."""
        if not self.failures:
            return {}
        found = {}
        for place, name in enumerate(listing.names):
            failure = self.failures.get(name)
            if failure is None or listing.when - failure.when > FAILURE_LASTS:
                continue
            now = listing.sizes[place], listing.changed[place], listing.touched[place]
            if (failure.size, failure.changed, failure.touched) == now:
                found[place] = failure
        return found

    def beside(self) -> dict[str, np.ndarray]:
        """As the arrays that a store keeps."""
        failures = {name: asdict(failure) for name, failure in self.failures.items()}
        return {
            "names": np.frombuffer(joined(self.names), np.uint8),
            "sizes": self.sizes,
            "changed": self.changed,
            "touched": self.touched,
            "failures": np.frombuffer(json.dumps(failures).encode("ascii"), np.uint8),
            "key": np.frombuffer(self.key, np.uint8),
            "seen": self.seen,
        }


def recall(kept: Kept) -> Memory:
    """What a store remembers."""
    if not kept.beside:
        none = np.empty(0, np.int64)
        return Memory([], none, none, none, {}, b"", none)
    failures = json.loads(kept.beside["failures"].tobytes())
    return Memory(
        names=apart(kept.beside["names"].tobytes()),
        sizes=kept.beside["sizes"],
        changed=kept.beside["changed"],
        touched=kept.beside["touched"],
        failures={name: Failure(**fields) for name, fields in failures.items()},
        key=kept.beside["key"].tobytes(),
        seen=kept.beside["seen"],
    )


def sure_times(listing: Listing) -> Int64[np.ndarray, " n"]:
    """The times of change to remember: none where the file was changed only just before."""
    return np.where(np.abs(listing.when - listing.changed) <= UNSURE, UNKNOWN, listing.changed)
