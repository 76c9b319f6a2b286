"""What a mapped file takes of a process's memory.

A page that was looked at counts as held until it is let go, although the system could take it back at any
time: a process that looks at all of a large file once seems to grow with it, and under a limit (a
container's) may be taken for one that does.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

_REGIONS = Path("/proc/self/maps")  # of Linux; elsewhere nothing is let go
_DONT_NEED = 4  # MADV_DONTNEED: the system keeps the page, and maps it again when it is looked at


def let_go(file: Path) -> None:
    """Hold no page of a file that is mapped for reading; who looks at one again gets it back."""
    libc = ctypes.CDLL(None)
    for start, end in _regions(file):
        libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _DONT_NEED)


def _regions(file: Path) -> Iterator[tuple[int, int]]:
    if not _REGIONS.exists():
        return
    for line in _REGIONS.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        fields = line.split(maxsplit=5)  # addresses, permissions, offset, device, inode, path
        if len(fields) == 6 and fields[5] == str(file):
            start, end = fields[0].split("-")
            yield int(start, 16), int(end, 16)
