"""Pages of a mapped file are let go, and come back when they are looked at."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import pytest

from tellapart.vision.mapped_file import MappedFile

SMAPS = Path("/proc/self/smaps")
PAGES = 256


def held(file: Path) -> int:
    """KiB of a file that count as held by this process."""
    lines = iter(SMAPS.read_text().splitlines())
    for line in lines:
        if line.endswith(f" {file}"):
            return int(next(each for each in lines if each.startswith("Rss:")).split()[1])
    return 0


@pytest.mark.skipif(not SMAPS.exists(), reason="only Linux tells")
def test_pages_are_let_go_and_come_back(tmp_path: Path) -> None:
    path, data = tmp_path / "a file", os.urandom(PAGES * mmap.PAGESIZE)
    path.write_bytes(data)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
        assert mapped[:] == data
        assert held(path) >= len(data) // 1024
        MappedFile.of(tmp_path / "another file").let_go()
        assert held(path) >= len(data) // 1024
        MappedFile.of(path).let_go()
        assert held(path) == 0
        assert mapped[:] == data
