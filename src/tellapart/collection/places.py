"""Where the pictures of a collection lie for a retriever, in a file: memory does not grow with them.

The file has no name, so that none is left behind, however the run ends.
"""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import FileIO

import numpy as np

from tellapart.arrays import Float32
from tellapart.errors import TellapartError


class Places:
    """Vectors of one width that are written one after another, and looked at once all are there."""

    def __init__(self, width: int, file: FileIO) -> None:
        self.width = width
        self._file = file
        self._mapped: mmap.mmap | None = None

    def add(self, vector: Float32[np.ndarray, " d"]) -> None:
        """Write down where the next picture lies."""
        # By the file, as a mapped page for which the disk has no room would end the process.
        data = vector.astype(np.float32, copy=False).tobytes()
        with _told():
            if self._file.write(data) != len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def look(self) -> Float32[np.ndarray, "n d"]:
        """All vectors, as they lie in the file, which may be closed from here on."""
        if self._file.tell() == 0:  # nothing cannot be mapped
            return np.empty((0, self.width), np.float32)
        self._mapped = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        return np.frombuffer(self._mapped, np.float32).reshape(-1, self.width)

    def let_go(self) -> None:
        """Hold none of what was looked at; who looks again gets it back."""
        if self._mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._mapped.madvise(mmap.MADV_DONTNEED)


@contextmanager
def open_places(width: int) -> Iterator[Places]:
    """Room for vectors, until the block ends."""
    with ExitStack() as stack:
        with _told():
            file = stack.enter_context(tempfile.TemporaryFile(buffering=0))
        yield Places(width, file)


@contextmanager
def _told() -> Iterator[None]:
    """What to tell where a temporary file cannot be written."""
    try:
        yield
    except OSError as error:
        raise TellapartError(
            f"{tempfile.gettempdir()}: a temporary file cannot be written: {error.strerror}",
            hint="free some disk space there, or name another folder with TMPDIR, and run it again",
        ) from error
