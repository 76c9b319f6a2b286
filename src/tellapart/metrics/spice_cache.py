"""What SPICE found before, kept: a value costs a third of a second, and a file of them is asked in no time.

One SQLite file, because two programs may write at once and either may be killed: a write is there as a whole
or not at all. Every row carries a checksum; a row that is damaged counts as not there, and a file that is
damaged is begun anew.
"""

from __future__ import annotations

import json
import sqlite3
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

Values = tuple[float, ...]
"""What there is to know of one image: a number each for SPICE and its subsets, NaN where one is undefined."""

_PATIENCE = 60.0  # seconds for another program to finish its write
_AT_ONCE = 500  # keys in one question: SQLite's limit was 999 for long


@dataclass(frozen=True, slots=True)
class ResultCache:
    """Values by the content they came from; errors are `sqlite3.OperationalError` or `OSError`."""

    file: Path
    width: int  # numbers a row

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Values]:
        """The values of those keys that are known."""
        found: dict[bytes, Values] = {}
        if not self.file.exists():
            return found
        with self._opened() as database:
            for begin in range(0, len(keys), _AT_ONCE):
                asked = keys[begin : begin + _AT_ONCE]
                places = ",".join("?" * len(asked))
                question = f"SELECT key, packed FROM results WHERE key IN ({places})"  # noqa: S608 - only ?
                for key, packed in database.execute(question, asked):
                    values = self._unpack(key, packed)
                    if values is not None:
                        found[key] = values
        return found

    def put(self, found: Mapping[bytes, Values]) -> None:
        """Keep values, all of them or, if the program dies meanwhile, none."""
        rows = [(key, self._pack(key, values)) for key, values in found.items()]
        with self._opened() as database, database:
            database.executemany("INSERT OR REPLACE INTO results VALUES (?, ?)", rows)

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        if not self._sound():
            # A journal left beside a new file would be played back into it.
            for file in (self.file, self.file.with_name(f"{self.file.name}-journal")):
                file.unlink(missing_ok=True)
        with closing(sqlite3.connect(self.file, timeout=_PATIENCE)) as database:
            with database:
                database.execute(
                    "CREATE TABLE IF NOT EXISTS results (key BLOB PRIMARY KEY, packed BLOB) WITHOUT ROWID"
                )
            yield database

    def _sound(self) -> bool:
        with closing(sqlite3.connect(self.file, timeout=_PATIENCE)) as database:
            try:
                verdict = database.execute("PRAGMA quick_check(1)").fetchone()
            except sqlite3.OperationalError:  # locked or not to be read: nothing that a new file would mend
                raise
            except sqlite3.DatabaseError:
                return False
        return bool(verdict == ("ok",))

    def _pack(self, key: bytes, values: Values) -> bytes:
        packed = struct.pack(f"<{self.width}d", *values)
        return packed + struct.pack("<I", zlib.crc32(key + packed))

    def _unpack(self, key: bytes, packed: object) -> Values | None:
        if not isinstance(packed, bytes) or len(packed) != 8 * self.width + 4:
            return None
        numbers, checksum = packed[:-4], packed[-4:]
        if struct.pack("<I", zlib.crc32(key + numbers)) != checksum:
            return None
        return struct.unpack(f"<{self.width}d", numbers)


def content_key(*texts: str) -> bytes:
    """A key for some texts in their order; no two lists of texts share one."""
    return sha256(json.dumps(texts).encode("ascii")).digest()
