"""Results of SPICE outlive whoever writes them, and damage never becomes a number."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tellapart.metrics.spice_cache import ResultCache, content_key

# Killed in a write so large that part of it is already in the file: only the journal can undo it.
DIES_HALFWAY = """
import os, signal, sqlite3, sys

database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA cache_size = 1")
database.execute("BEGIN IMMEDIATE")
for number in range(5000):
    database.execute("INSERT INTO results VALUES (?, ?)", (str(number).encode(), b"x" * 12))
os.kill(os.getpid(), signal.SIGKILL)
"""


@settings(max_examples=25)
@given(st.dictionaries(st.binary(min_size=32, max_size=32), st.tuples(st.floats(), st.floats()), max_size=20))
def test_what_is_kept_comes_back_bit_for_bit(
    tmp_path_factory: pytest.TempPathFactory, values: dict[bytes, tuple[float, ...]]
) -> None:
    cache = ResultCache(tmp_path_factory.mktemp("cache") / "results.sqlite", width=2)
    cache.put(values)
    found = cache.get([*values, b"other"])
    assert list(map(repr, (found[key] for key in values))) == list(map(repr, values.values()))
    assert found.keys() == values.keys()


def test_more_keys_than_one_question_holds(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path / "results.sqlite", width=1)
    values = {content_key(str(number)): (float(number),) for number in range(3_000)}
    cache.put(values)
    assert cache.get(list(values)) == values


@pytest.mark.parametrize(
    "damage", [b"not a database at all" * 100, b"", b"SQLite format 3\x00" + b"\xff" * 4000]
)
def test_a_damaged_file_is_begun_anew(tmp_path: Path, damage: bytes) -> None:
    cache = ResultCache(tmp_path / "results.sqlite", width=1)
    cache.file.write_bytes(damage)
    assert cache.get([b"k"]) == {}
    cache.put({b"k": (1.0,)})
    assert cache.get([b"k"]) == {b"k": (1.0,)}


def test_a_file_that_was_cut_off_is_begun_anew(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path / "results.sqlite", width=1)
    cache.put({content_key(str(number)): (1.0,) for number in range(2_000)})
    whole = cache.file.read_bytes()
    cache.file.write_bytes(whole[: len(whole) // 2])
    assert cache.get([content_key("1")]) == {}
    cache.put({b"k": (2.0,)})
    assert cache.get([b"k"]) == {b"k": (2.0,)}


def test_a_flipped_bit_counts_as_unknown(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path / "results.sqlite", width=1)
    cache.put({b"k": (1.0,), b"l": (2.0,)})
    database = sqlite3.connect(cache.file)
    with database:
        (packed,) = database.execute("SELECT packed FROM results WHERE key = ?", (b"k",)).fetchone()
        flipped = bytes([packed[0] ^ 1]) + packed[1:]
        database.execute("UPDATE results SET packed = ? WHERE key = ?", (flipped, b"k"))
    database.close()
    assert cache.get([b"k", b"l"]) == {b"l": (2.0,)}


def test_many_writers_at_once(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path / "results.sqlite", width=1)

    def write(number: int) -> None:
        cache.put({content_key(str(number), str(part)): (float(part),) for part in range(50)})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(16)))
    keys = [content_key(str(number), str(part)) for number in range(16) for part in range(50)]
    assert len(cache.get(keys)) == 16 * 50


def test_a_writer_that_is_killed_leaves_what_was_there(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path / "results.sqlite", width=1)
    cache.put({b"k": (1.0,)})
    killed = subprocess.run([sys.executable, "-c", DIES_HALFWAY, str(cache.file)], check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert cache.get([b"k", *(str(number).encode() for number in range(10))]) == {b"k": (1.0,)}
    cache.put({b"l": (2.0,)})
    assert cache.get([b"k", b"l"]) == {b"k": (1.0,), b"l": (2.0,)}


@given(st.lists(st.text()), st.lists(st.text()))
def test_unlike_texts_have_unlike_keys(one: list[str], other: list[str]) -> None:
    assert (content_key(*one) == content_key(*other)) == (one == other)
    assert content_key("a", "b") != content_key("ab") != content_key("a\x00b")
