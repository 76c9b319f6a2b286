"""What a mapped file takes of a process's memory.

A page that was looked at counts as held until it is let go, and with it all that the system keeps in one
piece with it, two megabytes perhaps, although it could take them back at any time: a process that looks at
all of a large file once seems to grow with it, and under a limit (a container's) may be taken for one that
does.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_REGIONS = Path("/proc/self/maps")  # of Linux; elsewhere nothing is let go
_DONT_NEED = 4  # MADV_DONTNEED: the system keeps the page, and maps it again when it is looked at


@dataclass(frozen=True, slots=True)
class MappedFile:
    """Where a file is mapped for reading in this process."""

    regions: tuple[tuple[int, int], ...]  # the first address, and how many bytes from there on
    libc: ctypes.CDLL

    @classmethod
    def of(cls, file: Path) -> MappedFile:
        """Found once, for as long as the file stays mapped: to look it up takes a hundred times as long."""
        return cls(tuple(_regions(file)), ctypes.CDLL(None))

    def let_go(self) -> None:
        """Hold no page of the file; who looks at one again, or is just looking at it, gets it back."""
        for start, size in self.regions:
            self.libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), _DONT_NEED)


def _regions(file: Path) -> Iterator[tuple[int, int]]:
    if not _REGIONS.exists():
        return
    for line in _REGIONS.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        fields = line.split(maxsplit=5)  # addresses, permissions, offset, device, inode, path
        if len(fields) == 6 and fields[5] == str(file):
            start, end = (int(address, 16) for address in fields[0].split("-"))
            yield start, end - start
