"""The pictures of a folder with their vectors, kept on disk and brought up to date as files come and go.

A file whose size and time of change are as they were is taken as known. Any other is read, and its place is
asked for only if nothing with the same bytes was placed before: a picture that was touched, moved or copied
costs no more than reading it. What cannot be opened is remembered for a day, with what was said about it.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np

from tellapart.arrays import Bool, Int64, UInt8
from tellapart.data.picture_files import read_bytes
from tellapart.errors import TellapartError
from tellapart.retrievers.index import Pool
from tellapart.retrievers.retriever import Placed, Retriever, Watch, unwatched
from tellapart.retrievers.store.keeping import Keeper
from tellapart.retrievers.store.listing import Listing, list_pictures
from tellapart.retrievers.store.memory import UNKNOWN, Failure, Memory, recall, sure_times
from tellapart.retrievers.store.vectors import Entries, Kept, Vector, VectorStore, store_of


@dataclass(frozen=True, slots=True)
class Pictures:
    """Pictures that can be searched.

    Attributes:
        listing: the folder as it was looked at.
        names: their paths inside the folder.
        pool: their vectors, in the same order; pictures with the same bytes share a row.
        digests: SHA-256 of what each row was made of.
        problems: one for each file that cannot be searched, by name.
        notes: what else a person should know.
    """

    listing: Listing
    names: list[str]
    pool: Pool
    digests: UInt8[np.ndarray, "rows 32"]
    problems: tuple[TellapartError, ...]
    notes: tuple[str, ...]


def gather_pictures(
    folder: Path,
    retriever: Retriever,
    *,
    look: Callable[[], Listing] | None = None,
    watch: Watch = unwatched,
) -> Pictures:
    """Vectors of all pictures of a folder: kept ones where the files are as they were, else new ones.

    Args:
        folder: where the pictures are.
        retriever: who places pictures.
        look: gives the folder as it is now, perhaps after a while; asked for when it is needed.
        watch: is told how many of the new and changed files are done.
    """
    store = store_of("pictures", folder, retriever)
    kept = store.read()
    memory, sound = recall(kept), kept.sound  # whatever takes time, before waiting for the look
    listing = look() if look else list_pictures(folder)
    known = int(np.count_nonzero(_known_rows(listing, memory, kept.entries, sound) != UNKNOWN))
    failures = memory.failing(listing)
    if known == len(memory.names) and known + len(failures) == len(listing.sizes):
        problems = _in_order([*listing.problems, *(failure.error() for failure in failures.values())])
        return Pictures(listing, memory.names, Pool(kept.vectors, kept.entries), kept.digests, problems, ())
    ordered = listing.in_order()
    rows = _known_rows(ordered, memory, kept.entries, sound)
    update = _Update(ordered, kept, rows, memory.failing(ordered), is_stale=known != len(memory.names))
    update.run(store, retriever, watch)
    return update.result(store)


def _known_rows(
    listing: Listing,
    memory: Memory,
    entries: Int64[np.ndarray, " m"],
    sound: Bool[np.ndarray, " rows"],
) -> Int64[np.ndarray, " n"]:
    """The row of each picture's vector; UNKNOWN where the file or the vector is not as it was."""
    places = memory.places(listing)
    if not len(entries):
        return places
    rows = entries[places]
    return np.where((places != UNKNOWN) & sound[rows], rows, UNKNOWN)


def _in_order(errors: Sequence[TellapartError]) -> tuple[TellapartError, ...]:
    return tuple(sorted(errors, key=lambda error: error.problem))


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A file that was given to the retriever."""

    path: Path
    place: int  # in the listing
    digest: bytes


@dataclass(slots=True)
class _Update:
    """One pass over the files of a folder that are not known."""

    listing: Listing
    kept: Kept
    rows: Int64[np.ndarray, " n"]
    failures: dict[int, Failure]  # by the picture's place in the listing
    is_stale: bool  # whether the store knows pictures that are no more, or are not as they were
    digests: dict[int, bytes] = field(default_factory=dict)
    fresh: dict[bytes, Vector] = field(default_factory=dict)
    bad: dict[bytes, tuple[Path, TellapartError]] = field(default_factory=dict)
    unread: list[TellapartError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def run(self, store: VectorStore, retriever: Retriever, watch: Watch) -> None:
        """Read what is not known, have it placed, keep it."""
        waiting: deque[_Waiting] = deque()
        unknown = self._unknown(waiting, watch)
        keeper = Keeper(store, self._choose)
        finished = False
        try:
            # Nothing to place, nothing to load for it.
            for first in unknown:
                for result in retriever.place(chain([first], unknown)):
                    self._take(result, waiting)
                    keeper.keep_if_due(self.fresh)
            finished = True
        finally:
            self._note_failures()
            if self.digests or self.is_stale:
                keeper.keep(self.fresh, tidy=finished)
        if note := keeper.note or self.kept.note:
            self.notes.append(note)

    def _unknown(self, waiting: deque[_Waiting], watch: Watch) -> Iterator[Path]:
        """Files whose bytes were never placed, in order; all others are seen to on the way."""
        known = self.kept.numbers
        asked: set[bytes] = set()
        todo = [
            place for place in np.flatnonzero(self.rows == UNKNOWN).tolist() if place not in self.failures
        ]
        for done, place in enumerate(todo):
            watch(done, len(todo))
            path = self.listing.folder / self.listing.names[place]
            try:
                digest = hashlib.sha256(read_bytes(path)).digest()
            except TellapartError as error:
                self.unread.append(error)
                continue
            self.digests[place] = digest
            if digest not in known and digest not in asked:
                asked.add(digest)
                waiting.append(_Waiting(path, place, digest))
                yield path
        watch(len(todo), len(todo))

    def _take(self, result: Placed | TellapartError, waiting: deque[_Waiting]) -> None:
        if isinstance(result, TellapartError):
            if waiting and result.problem.startswith(str(waiting[0].path)):
                one = waiting.popleft()
                self.bad[one.digest] = one.path, result
            else:  # about no file in particular, such as a cache that cannot be written
                self.notes.append(result.problem)
            return
        while waiting:
            one = waiting.popleft()
            if one.path == result.path:
                if np.isfinite(result.vector).all():
                    self._keep_if_unchanged(one, result)
                else:
                    problem = f"{one.path} has no place: the retriever gave what is no number"
                    self.bad[one.digest] = one.path, TellapartError(problem, hint="use another retriever")
                return

    def _keep_if_unchanged(self, one: _Waiting, placed: Placed) -> None:
        """What was placed must be what the digest was taken of."""
        with suppress(OSError):
            about = one.path.stat()
            listed = (
                self.listing.sizes[one.place],
                self.listing.changed[one.place],
                self.listing.touched[one.place],
            )
            if (about.st_size, about.st_mtime_ns, about.st_ctime_ns) == listed:
                self.fresh[one.digest] = placed.vector

    def _note_failures(self) -> None:
        """Remember bad files, and say what was not placed for any other reason."""
        known = self.kept.numbers.keys() | self.fresh.keys()
        times = sure_times(self.listing)
        for place, digest in self.digests.items():
            path = str(self.listing.folder / self.listing.names[place])
            if digest in self.bad:
                first, error = self.bad[digest]
                self.failures[place] = Failure(
                    int(self.listing.sizes[place]),
                    int(times[place]),
                    int(self.listing.touched[place]),
                    self.listing.when,
                    error.problem.replace(str(first), path, 1),
                    error.hint,
                )
            elif digest not in known:
                problem = f"{path} was not placed: it or a copy of it has changed meanwhile"
                self.unread.append(TellapartError(problem, hint="search once more"))

    def _choose(self, kept: Kept, numbers: Mapping[bytes, int]) -> Entries:
        """All pictures whose vectors are there, for the store to hold."""
        found = [(place, digest) for place, digest in enumerate(self._all_digests()) if digest]
        found = [(place, digest) for place, digest in found if digest in numbers or digest in self.fresh]
        places = [place for place, _ in found]
        names = self.listing.names
        seen = np.full(len(names), UNKNOWN)
        seen[self.listing.seen_at[places]] = np.arange(len(places))
        memory = Memory(
            [names[place] for place in places],
            self.listing.sizes[places],
            sure_times(self.listing)[places],
            self.listing.touched[places],
            {names[place]: failure for place, failure in self.failures.items()},
            self.listing.key,
            seen,
        )
        return Entries([digest for _, digest in found], memory.beside())

    def _all_digests(self) -> list[bytes]:
        """Of every picture in the listing; b"" where it could not be read."""
        return [
            self.digests.get(place, b"") if row == UNKNOWN else self.kept.keys[row]
            for place, row in enumerate(self.rows.tolist())
        ]

    def result(self, store: VectorStore) -> Pictures:
        """What can be searched now."""
        kept = store.read()
        digests = self._all_digests()
        numbers = kept.numbers
        at_hand = self.kept.numbers.keys() | self.fresh.keys()
        if any(digest in at_hand and digest not in numbers for digest in digests):
            # Nothing could be written, or another process has written something else since.
            kept = self.kept.extended(self.fresh)
            numbers = kept.numbers
        rows = np.array([numbers.get(digest, UNKNOWN) for digest in digests], np.int64)
        known = np.flatnonzero(rows != UNKNOWN)
        names = [self.listing.names[place] for place in known.tolist()]
        failed = (failure.error() for failure in self.failures.values())
        problems = _in_order([*self.listing.problems, *failed, *self.unread])
        pool = Pool(kept.vectors, rows[known])
        return Pictures(self.listing, names, pool, kept.digests, problems, tuple(self.notes))
