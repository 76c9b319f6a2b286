"""Features remembered by the content of the picture, in one memory-mapped file an encoder.

The file is an LMDB store: it is whole after a kill at any moment, and any number of processes may read and
write it at once. Keys are the part's name and the SHA-256 of the picture's bytes, so a picture that moved,
or stands in two folders, is encoded once; the folder's name is the encoder's identity, so features of
another encoder can never be mixed in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import lmdb
import numpy as np

from tellapart.arrays import Float16
from tellapart.errors import TellapartError
from tellapart.vision.encoder import Encoder
from tellapart.vision.features import PARTS, Features
from tellapart.vision.mapped_file import MappedFile

_FILE = "data.mdb"
MAP_SIZE = 1 << 40  # address space to reserve, not disk space: the file grows with what is in it


def digest_of(data: bytes) -> bytes:
    """What a picture is known by: the SHA-256 of its bytes."""
    return hashlib.sha256(data).digest()


class FeatureCache:
    """Features of one encoder, by content of the picture."""

    def __init__(self, folder: Path, encoder: Encoder) -> None:
        self.path = (folder / "features" / encoder.identity.replace("/", "_")).resolve()
        self.shapes = encoder.shapes
        self._store, self._mapped = _open_store(str(self.path))

    def holds(self, digest: bytes, parts: Sequence[str]) -> bool:
        """Whether all these parts of that picture are there."""
        with self._reading() as transaction:
            return all(transaction.get(_key(part, digest)) is not None for part in parts)

    def read(self, digests: Sequence[bytes], parts: Sequence[str]) -> Features:
        """These parts of those pictures; the other parts are left empty."""
        stacked = {part: np.empty((len(digests), *self._shape(part, parts)), np.float16) for part in PARTS}
        with self._reading() as transaction:
            for part in parts:
                for row, digest in enumerate(digests):
                    value = transaction.get(_key(part, digest))
                    stacked[part][row] = self._array(value, part)
        return Features(**stacked)

    def write(self, pictures: Mapping[bytes, Features], parts: Sequence[str]) -> None:
        """Remember these parts of one-picture features, all or none."""
        try:
            with self._store.begin(write=True) as transaction:
                for digest, features in pictures.items():
                    for part in parts:
                        transaction.put(_key(part, digest), getattr(features, part)[0].tobytes())
                    self._mapped.let_go()  # to find its place maps pages of many others
            self._mapped.let_go()
        except lmdb.Error as error:
            raise TellapartError(
                f"{self.path}: cannot store features ({error})",
                hint="free some disk space, or name another folder with TELLAPART_CACHE; nothing is lost",
            ) from error

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        try:
            with self._store.begin(buffers=True) as transaction:
                yield transaction
            self._mapped.let_go()
        except lmdb.Error as error:
            raise TellapartError(
                f"{self.path}: the feature cache cannot be read ({error})",
                hint="delete that folder: it is made again when it is needed",
            ) from error

    def _shape(self, part: str, wanted: Sequence[str]) -> tuple[int, ...]:
        full = self.shapes[part]
        return full if part in wanted else (0, *full[1:])

    def _array(self, value: Any, part: str) -> Float16[np.ndarray, ...]:
        expected = int(np.prod(self.shapes[part])) * 2
        if value is None or len(value) != expected:
            raise TellapartError(
                f"{self.path}: the {part} features of a picture are missing or damaged",
                hint="delete that folder: it is made again when it is needed",
            )
        return np.frombuffer(value, np.float16).reshape(self.shapes[part])


def _key(part: str, digest: bytes) -> bytes:
    return part.encode() + b":" + digest


@cache  # LMDB allows one handle a process and file
def _open_store(path: str) -> tuple[Any, MappedFile]:
    Path(path).mkdir(parents=True, exist_ok=True)
    try:
        store = lmdb.open(path, map_size=MAP_SIZE, metasync=False, max_spare_txns=8)
        _refuse_truncated(store, Path(path))
    except lmdb.Error as error:
        raise TellapartError(
            f"{path}: the feature cache cannot be opened ({error})",
            hint="delete that folder: it is made again when it is needed",
        ) from error
    return store, MappedFile.of(Path(path) / _FILE)


def _refuse_truncated(store: Any, path: Path) -> None:
    # Reading a mapped page behind the end of a cut file would kill the process with SIGBUS.
    needed = (store.info()["last_pgno"] + 1) * store.stat()["psize"]
    if (path / _FILE).stat().st_size < needed:
        store.close()  # or the whole file that replaces it could not be opened while the error is kept
        raise lmdb.CorruptedError("the file is shorter than its own index says")
