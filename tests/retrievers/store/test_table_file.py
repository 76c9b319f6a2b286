"""A table comes back as it was written, or is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from tellapart.retrievers.store import table_file
from tellapart.retrievers.store.table_file import Unusable, read_table, write_table

KINDS = st.sampled_from([np.uint8, np.int64, np.uint32, np.float32])
ARRAYS = KINDS.flatmap(
    lambda kind: arrays_of.arrays(
        kind, arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5)
    )
)


@settings(max_examples=60)
@given(st.dictionaries(st.text(max_size=8), ARRAYS, max_size=5))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, arrays: dict[str, np.ndarray]
) -> None:
    path = tmp_path_factory.mktemp("table") / "table"
    write_table(path, arrays)
    found = read_table(path)
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_texts_are_arrays_too(tmp_path: Path) -> None:
    write_table(tmp_path / "table", {"words": np.array(["ä longer one", "b"])})
    assert read_table(tmp_path / "table")["words"].tolist() == ["ä longer one", "b"]


def test_no_damaged_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "table"
    write_table(path, {"numbers": np.arange(30), "none": np.empty(0)})
    data = path.read_bytes()
    chance = np.random.default_rng(0)
    damaged = [data[:length] for length in range(0, len(data), 7)] + [data + b"x", b"", b"something else"]
    for place in chance.integers(0, len(data), 100).tolist():
        flipped = bytearray(data)
        flipped[place] ^= 1 << int(chance.integers(8))
        damaged.append(bytes(flipped))
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(Unusable, match=r"is damaged|another version"):
            read_table(path)


def test_another_format_is_told_from_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "table"
    monkeypatch.setattr(table_file, "FORMAT", 0)
    write_table(path, {"numbers": np.arange(3)})
    monkeypatch.undo()
    with pytest.raises(Unusable, match="another version of tellapart"):
        read_table(path)


def test_a_missing_table_is_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "table")
