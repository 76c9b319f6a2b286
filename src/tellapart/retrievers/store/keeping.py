"""Keeping vectors while they are made: a kill costs a few seconds' work, a full disk costs none."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic

from tellapart.retrievers.store.vectors import Choose, Vector, VectorStore

EVERY = 5.0  # seconds between two writes
_SHARE = 20  # at the least, this many times as long is worked as it took to write


class Keeper:
    """Writes what was made so far, now and then.

    Attributes:
        note: why nothing can be written; "" as long as it can.
    """

    def __init__(self, store: VectorStore, choose: Choose) -> None:
        self.note = ""
        self._store = store
        self._choose = choose
        self._due = monotonic() + EVERY

    def keep_if_due(self, fresh: Mapping[bytes, Vector]) -> None:
        """Write if the last time is long enough ago."""
        if monotonic() >= self._due:
            self.keep(fresh, tidy=False)

    def keep(self, fresh: Mapping[bytes, Vector], *, tidy: bool) -> None:
        """Write now; what cannot be written is noted, once, and left."""
        if self.note:
            return
        began = monotonic()
        try:
            self._store.write(fresh, self._choose, tidy=tidy)
        except OSError as error:
            self.note = (
                f"{self._store.folder} cannot be written ({error.strerror}): "
                "the next search will have to begin anew"
            )
        self._due = monotonic() + max(EVERY, _SHARE * (monotonic() - began))
