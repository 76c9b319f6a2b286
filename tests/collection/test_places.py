"""Vectors of a collection come back from their file as they were put there, and take no memory meanwhile."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from tests.outputs.faults import small_disk

from tellapart.arrays import Float32
from tellapart.collection.places import Places, open_places
from tellapart.errors import TellapartError

WIDTH = 256
STATUS = Path("/proc/self/status")


def held() -> int:
    """KiB of files that count as held by this process."""
    return next(int(line.split()[1]) for line in STATUS.read_text().splitlines() if "RssFile" in line)


def fill(places: Places, vectors: Float32[np.ndarray, "n d"]) -> None:
    """Write them down, one after another."""
    for vector in vectors:
        places.add(vector)


def test_vectors_come_back_in_their_order_after_the_file_is_closed() -> None:
    vectors = np.random.default_rng(0).normal(size=(100, WIDTH)).astype(np.float32)
    with open_places(WIDTH) as places:
        fill(places, vectors)
        found = places.look()
    places.let_go()

    np.testing.assert_array_equal(found, vectors)


def test_there_may_be_none() -> None:
    with open_places(WIDTH) as places:
        found = places.look()
    places.let_go()

    assert found.shape == (0, WIDTH)


@pytest.mark.skipif(not STATUS.exists(), reason="only Linux tells")
def test_what_is_let_go_is_not_held_and_comes_back() -> None:
    vectors = np.random.default_rng(0).normal(size=(8192, WIDTH)).astype(np.float32)  # 8 MiB
    with open_places(WIDTH) as places:
        fill(places, vectors)
        found = places.look()
    before = held()
    total = float(found.sum())
    assert held() - before > 7 * 1024

    places.let_go()

    assert held() - before < 1024
    assert float(found.sum()) == total


def test_a_full_disk_is_told_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with small_disk(tmp_path / "disk", kilobytes=64) as disk:
        monkeypatch.setattr(tempfile, "tempdir", str(disk))
        with open_places(WIDTH) as places, pytest.raises(TellapartError, match="No space left") as caught:
            fill(places, np.zeros((100, WIDTH), np.float32))

        assert str(disk) in str(caught.value)
        assert "TMPDIR" in caught.value.hint
        assert list(disk.iterdir()) == []
