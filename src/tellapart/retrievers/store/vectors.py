"""Vectors remembered on disk, each by the digest of what it was made of.

A store is a folder. Vectors stand one after another in a file that only grows, and are mapped into memory as
they are; a table, replaced in one step, says how many of them count and whose they are, and carries what the
store's user wants beside them. So a store is whole after a kill at any moment: vectors that the table knows
nothing of are overwritten by the next ones. Those who write take turns; those who read never wait.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from tellapart.arrays import Bool, Float32, Int64, UInt8, UInt32
from tellapart.retrievers.retriever import Retriever
from tellapart.retrievers.store.table_file import Unusable, read_table, write_table
from tellapart.storage import cache_folder

DIGEST = 32  # bytes of a SHA-256
SPARE = 1024  # vectors that nobody uses, before it is worth the while to write the others anew
_TABLE, _LOCK = "table", "lock"
_BESIDE = "beside "

Vector = Float32[np.ndarray, " d"]


@dataclass(frozen=True, slots=True)
class Entries:
    """What a store is to hold: the digest of each thing in it, in order, and whatever is told beside them."""

    digests: Sequence[bytes]
    beside: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Kept:
    """What is in a store.

    Attributes:
        entries: the number of each thing's vector; things that are alike share one.
        digests: of what each vector was made of.
        vectors: the vectors, mapped from their file.
        checks: a sum over each vector, from when it was written.
        beside: what the user of the store put there.
        file: name of the file of vectors; "" where there is none yet.
        note: what a person should know; "" where all is well.
    """

    entries: Int64[np.ndarray, " m"]
    digests: UInt8[np.ndarray, "n 32"]
    vectors: Float32[np.ndarray, "n d"]
    checks: UInt32[np.ndarray, " n"]
    beside: Mapping[str, np.ndarray]
    file: str = ""
    note: str = ""

    @cached_property
    def sound(self) -> Bool[np.ndarray, " n"]:
        """Which vectors are as they were written."""
        return np.asarray(_checks(self.vectors) == self.checks)

    @cached_property
    def keys(self) -> list[bytes]:
        """The digests one by one."""
        together = self.digests.tobytes()
        return [together[first : first + DIGEST] for first in range(0, len(together), DIGEST)]

    @cached_property
    def numbers(self) -> Mapping[bytes, int]:
        """The number of the vector of each digest; a damaged one counts as none."""
        return {self.keys[number]: number for number in np.flatnonzero(self.sound).tolist()}

    def extended(self, fresh: Mapping[bytes, Vector]) -> Kept:
        """The same with more vectors, in memory alone."""
        vectors = np.array(list(fresh.values()), np.float32).reshape(-1, self.vectors.shape[1])
        return replace(
            self,
            digests=np.concatenate([self.digests, _as_rows(fresh)]),
            vectors=np.concatenate([self.vectors, vectors]),
            checks=np.concatenate([self.checks, _checks(vectors)]),
        )


Choose = Callable[[Kept, Mapping[bytes, int]], Entries]


class VectorStore:
    """Vectors of one retriever for one purpose, in a folder of their own."""

    def __init__(self, folder: Path, *, identity: str, width: int) -> None:
        self.folder = folder
        self.identity = identity
        self.width = width

    def read(self) -> Kept:
        """All that is kept; a store that is damaged or of another format is as good as empty, with a note."""
        for _ in range(3):
            try:
                return self._read()
            except FileNotFoundError:
                if not (self.folder / _TABLE).exists():
                    return self._nothing("")
                # Another process has just put the vectors into a new file, and the table now names that.
            except OSError as error:
                return self._nothing(f"cannot be read ({error.strerror})")
            except Unusable as reason:
                return self._nothing(str(reason))
        return self._nothing("has lost its vectors")

    def write(self, fresh: Mapping[bytes, Vector], choose: Choose, *, tidy: bool) -> None:
        """Add vectors and say anew what is in the store, all or nothing.

        Args:
            fresh: vectors by digest; those that are there already are left as they are.
            choose: what the store is to hold, given what is in it now, perhaps by another process, with the
                number of each digest. Every digest chosen must be among these or fresh.
            tidy: whether vectors that are no longer used may go.
        """
        with self._alone():
            kept = self.read()
            wanted = choose(kept, kept.numbers)
            if tidy:
                kept = self._tidied(kept, set(wanted.digests))
            numbers = dict(kept.numbers)
            new = {digest: vector for digest, vector in fresh.items() if digest not in numbers}
            numbers |= {digest: len(kept.digests) + place for place, digest in enumerate(new)}
            vectors = np.array(list(new.values()), np.float32).reshape(len(new), self.width)
            file = kept.file or _new_name()
            self._write_vectors(file, vectors, first=len(kept.digests))
            arrays = {
                "entries": np.array([numbers[digest] for digest in wanted.digests], np.int64),
                "digests": np.concatenate([kept.digests, _as_rows(new)]),
                "checks": np.concatenate([kept.checks, _checks(vectors)]),
            }
            beside = {_BESIDE + name: array for name, array in wanted.beside.items()}
            about = {"about": np.array([self.identity, str(self.width), file])}
            write_table(self.folder / _TABLE, about | arrays | beside)
            self._sweep(file)

    def _nothing(self, why: str) -> Kept:
        return Kept(
            entries=np.empty(0, np.int64),
            digests=_as_rows({}),
            vectors=np.empty((0, self.width), np.float32),
            checks=np.empty(0, np.uint32),
            beside={},
            note=f"{self.folder} {why}: it is made again" if why else "",
        )

    def _read(self) -> Kept:
        table = read_table(self.folder / _TABLE)
        identity, width, file = table["about"].tolist()
        if (identity, width) != (self.identity, str(self.width)):
            raise Unusable("holds vectors of another retriever")
        vectors = self._map(file, len(table["checks"]))
        beside = {
            name.removeprefix(_BESIDE): array for name, array in table.items() if name.startswith(_BESIDE)
        }
        return Kept(table["entries"], table["digests"], vectors, table["checks"], beside, file)

    def _map(self, file: str, count: int) -> Float32[np.ndarray, "n d"]:
        if not count:
            return np.empty((0, self.width), np.float32)
        try:
            return np.asarray(np.memmap(self.folder / file, np.float32, mode="r", shape=(count, self.width)))
        except ValueError as error:  # reading behind the end of the file would kill the process
            raise Unusable("has lost some of its vectors") from error

    def _tidied(self, kept: Kept, needed: set[bytes]) -> Kept:
        """The same without vectors that are not needed, in a new file, once there are many of those."""
        used = np.array(sorted(number for digest, number in kept.numbers.items() if digest in needed), int)
        if len(kept.digests) - len(used) <= max(SPARE, len(used) // 4):
            return kept
        file = _new_name()
        vectors = kept.vectors[used]
        self._write_vectors(file, vectors, first=0)
        return Kept(kept.entries[:0], kept.digests[used], vectors, kept.checks[used], kept.beside, file)

    def _write_vectors(self, file: str, vectors: Float32[np.ndarray, "n d"], *, first: int) -> None:
        # Not by a mode of `open`: what stands before must stay, and there may be no file yet.
        with os.fdopen(os.open(self.folder / file, os.O_WRONLY | os.O_CREAT, 0o666), "wb") as stream:
            stream.seek(first * self.width * vectors.itemsize)
            stream.write(vectors.tobytes())
            stream.flush()
            os.fsync(stream.fileno())

    def _sweep(self, file: str) -> None:
        """Remove what killed writers have left, and the file before this one."""
        for path in self.folder.iterdir():
            if path.name not in (file, _TABLE, _LOCK):
                path.unlink(missing_ok=True)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One writer at a time; the lock goes with the process that holds it, however that ends."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / _LOCK).open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def store_of(what: str, path: Path, retriever: Retriever) -> VectorStore:
    """The store for what is found at a path, as this retriever places it."""
    key = hashlib.sha256(
        "\0".join([what, str(path.resolve()), retriever.identity]).encode(errors="surrogateescape")
    )
    folder = cache_folder() / "search" / key.hexdigest()[:32]
    return VectorStore(folder, identity=retriever.identity, width=retriever.width)


def _checks(vectors: Float32[np.ndarray, "n d"]) -> UInt32[np.ndarray, " n"]:
    """A sum over each vector that changes with any one of its numbers."""
    return np.asarray(vectors.view(np.uint32).sum(axis=1, dtype=np.uint32))


def _as_rows(digests: Iterable[bytes]) -> UInt8[np.ndarray, "n 32"]:
    return np.frombuffer(b"".join(digests), np.uint8).reshape(-1, DIGEST)


def _new_name() -> str:
    return f"vectors-{secrets.token_hex(8)}"
