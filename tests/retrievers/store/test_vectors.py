"""A store of vectors lives through kills, several writers, damage and a full disk.

What needs a process of its own runs in small programs. These and the tests agree on what thing number n is:
its digest is the SHA-256 of n written out, its vector holds n + 1 everywhere.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tellapart.retrievers.store import table_file, vectors
from tellapart.retrievers.store.vectors import Entries, Kept, VectorStore

COMMON = """
import hashlib, os, resource, signal, sys
from pathlib import Path
import numpy as np
from tellapart.retrievers.store import vectors
from tellapart.retrievers.store.vectors import Entries, VectorStore

def digest(number): return hashlib.sha256(b"%d" % number).digest()
def things(numbers): return {digest(n): np.full(WIDTH, n + 1, np.float32) for n in numbers}
def everything(fresh):
    def choose(kept, known): return Entries([*known, *(d for d in fresh if d not in known)], {})
    return choose
WIDTH = 8
store = VectorStore(Path(sys.argv[1]), identity="them@1", width=WIDTH)
"""

KEEP_WRITING = """
number = int(sys.argv[2])
while True:
    fresh = things(range(number, number + 3))
    store.write(fresh, everything(fresh), tidy=False)
    number += 3
    print(number, flush=True)
"""

WRITE_RANGE = """
print("ready", flush=True)
sys.stdin.readline()
for number in range(*map(int, sys.argv[2:])):
    fresh = things([number])
    store.write(fresh, everything(fresh), tidy=True)
"""

DISK_FILLS = """
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that a write fails instead
fresh = things(range(50))
store.write(fresh, everything(fresh), tidy=True)
more = things(range(50, 5000))
for room in (0, 2000, 200_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
    try:
        store.write(more, everything(more), tidy=True)
        sys.exit("there was room")
    except OSError as error:
        print(error.strerror)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""

WIDTH = 8


def digest(number: int) -> bytes:
    return hashlib.sha256(b"%d" % number).digest()


def things(numbers: Iterable[int]) -> dict[bytes, np.ndarray]:
    return {digest(number): np.full(WIDTH, number + 1, np.float32) for number in numbers}


def holding(numbers: Iterable[int], **beside: np.ndarray) -> Callable[[Kept, Mapping[bytes, int]], Entries]:
    return lambda kept, known: Entries([digest(number) for number in numbers], beside)


def store_in(folder: Path) -> VectorStore:
    return VectorStore(folder, identity="them@1", width=WIDTH)


def held(kept: Kept) -> list[int]:
    """The things in a store; their vectors must be theirs."""
    numbers = [int(vector[0]) - 1 for vector in kept.vectors[kept.entries]]
    expected = np.repeat(np.array(numbers, np.float32)[:, None] + 1, WIDTH, axis=1)
    np.testing.assert_array_equal(kept.vectors[kept.entries], expected)
    assert [row.tobytes() for row in kept.digests[kept.entries]] == [digest(number) for number in numbers]
    return numbers


def program(script: str, *arguments: object) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", COMMON + script, *map(str, arguments)]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def outcome(running: subprocess.Popen[str], *, code: int = 0) -> str:
    out, err = running.communicate(timeout=100)
    assert running.returncode == code, err
    return out


def line_from(running: subprocess.Popen[str]) -> str:
    assert running.stdout is not None
    return running.stdout.readline()


def test_a_new_store_is_empty(tmp_path: Path) -> None:
    kept = store_in(tmp_path / "none yet").read()
    assert (len(kept.entries), kept.vectors.shape, kept.note) == (0, (0, WIDTH), "")
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.lists(st.integers(0, 30), max_size=12), st.sets(st.integers(0, 30)), st.booleans()),
        max_size=6,
    )
)
def test_a_store_holds_what_it_was_last_told_to(
    tmp_path_factory: pytest.TempPathFactory, writes: list[tuple[list[int], set[int], bool]]
) -> None:
    folder = tmp_path_factory.mktemp("stores") / "store"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vectors, "SPARE", 3)
        for entries, extra, tidy in writes:
            fresh = things({*entries, *extra})
            store_in(folder).write(fresh, holding(entries, lengths=np.array(len(entries))), tidy=tidy)
            kept = store_in(folder).read()
            assert held(kept) == entries
            assert int(kept.beside["lengths"]) == len(entries)
            assert kept.note == ""
            assert {path.name for path in folder.iterdir()} == {"table", "lock", kept.file}
            assert {*kept.numbers} >= {digest(number) for number in entries}


def test_things_that_are_alike_share_a_vector_and_none_is_written_twice(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.write(things([1, 2]), holding([1, 2, 1, 1]), tidy=True)
    store.write(things([2, 3]), holding([3, 1, 2]), tidy=True)
    kept = store.read()
    assert held(kept) == [3, 1, 2]
    assert len(kept.vectors) == 3
    assert (tmp_path / kept.file).stat().st_size == 3 * WIDTH * 4


def test_vectors_that_nobody_uses_go_only_when_told_and_when_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "SPARE", 10)
    store = store_in(tmp_path)
    store.write(things(range(20)), holding(range(20)), tidy=True)
    before = store.read()
    store.write({}, holding(range(5)), tidy=False)
    assert len(store.read().vectors) == 20, "work that is not finished may still need them"
    store.write({}, holding(range(11)), tidy=True)
    assert len(store.read().vectors) == 20, "not worth the while"
    store.write(things([70]), holding([4, 70, 2]), tidy=True)
    kept = store.read()
    assert held(kept) == [4, 70, 2]
    assert len(kept.vectors) == 3
    assert kept.file != before.file
    assert held(before) == list(range(20)), "a reader keeps what it has mapped"


def test_a_reader_that_finds_the_vectors_moved_looks_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "SPARE", 1)
    store = store_in(tmp_path)
    store.write(things(range(9)), holding(range(9)), tidy=True)
    read_table = table_file.read_table
    writes = iter([lambda: store.write({}, holding([1, 2]), tidy=True)])

    def read_then_move(path: Path) -> dict[str, np.ndarray]:
        found = read_table(path)
        monkeypatch.setattr(vectors, "read_table", read_table)
        next(writes)()
        return found

    monkeypatch.setattr(vectors, "read_table", read_then_move)
    assert held(store.read()) == [1, 2]


def test_a_store_survives_its_writers_being_killed(tmp_path: Path) -> None:
    chance = random.Random(0)
    known = 0
    for _ in range(5):
        writer = program(KEEP_WRITING, tmp_path, known)
        for _ in range(chance.randint(1, 10)):
            known = int(line_from(writer) or known)
        time.sleep(chance.uniform(0, 0.02))
        writer.kill()
        reported = outcome(writer, code=-signal.SIGKILL).split()
        known = int(reported[-1]) if reported else known
        kept = store_in(tmp_path).read()
        assert kept.note == ""
        assert held(kept)[:known] == list(range(known))
        assert len(held(kept)) in (known, known + 3), "the last write is there, or none of it"
        known = len(held(kept))
    store_in(tmp_path).write({}, holding([0]), tidy=True)
    assert len(list(tmp_path.iterdir())) == 3, "what was left half done has gone"


def test_vectors_that_no_table_knows_of_are_overwritten(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.write(things([1, 2]), holding([1, 2]), tidy=True)
    with (tmp_path / store.read().file).open("ab") as file:  # as a writer killed before the table leaves it
        file.write(os.urandom(100))
    assert held(store.read()) == [1, 2]
    store.write(things([3]), holding([1, 2, 3]), tidy=True)
    assert held(store.read()) == [1, 2, 3]


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    writers = [program(WRITE_RANGE, tmp_path, *numbers) for numbers in ((0, 40), (30, 70), (60, 90))]
    assert [line_from(writer) for writer in writers] == ["ready\n"] * 3
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    while any(writer.poll() is None for writer in writers):
        assert store_in(tmp_path).read().note == "", "one may always read"
    assert [outcome(writer) for writer in writers] == [""] * 3
    kept = store_in(tmp_path).read()
    assert sorted(held(kept)) == list(range(90))
    assert len(kept.vectors) == 90


def test_a_full_disk_costs_nothing_that_was_stored(tmp_path: Path) -> None:
    said = outcome(program(DISK_FILLS, tmp_path)).splitlines()
    assert said == ["File too large"] * 3
    assert held(store_in(tmp_path).read()) == list(range(50))
    store_in(tmp_path).write(things(range(60)), holding(range(60)), tidy=True)
    assert held(store_in(tmp_path).read()) == list(range(60))


def test_a_damaged_vector_is_known_no_more_and_made_again(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    store.write(things(range(10)), holding(range(10)), tidy=True)
    file = tmp_path / store.read().file
    data = bytearray(file.read_bytes())
    data[4 * WIDTH * 4 : 6 * WIDTH * 4] = bytes(2 * WIDTH * 4)  # a block that was never written
    data[8 * WIDTH * 4 + 5] ^= 16
    file.write_bytes(bytes(data))
    kept = store.read()
    assert np.flatnonzero(~kept.sound).tolist() == [4, 5, 8]
    assert kept.numbers.keys() == {digest(number) for number in (0, 1, 2, 3, 6, 7, 9)}
    store.write(things([4, 5, 8]), holding(range(10)), tidy=True)
    assert held(store.read()) == list(range(10))


def no_table(folder: Path) -> None:
    (folder / "table").write_bytes(b"")


def cut_table(folder: Path) -> None:
    data = (folder / "table").read_bytes()
    (folder / "table").write_bytes(data[: len(data) // 2])


def cut_vectors(folder: Path) -> None:
    file = next(folder.glob("vectors-*"))
    file.write_bytes(file.read_bytes()[:-1])


def lose_vectors(folder: Path) -> None:
    next(folder.glob("vectors-*")).unlink()


def older_format(folder: Path) -> None:
    data = (folder / "table").read_bytes()
    (folder / "table").write_bytes(b"tellapart table 0" + data[data.index(b"\n") :])


def of_another_retriever(folder: Path) -> None:
    VectorStore(folder, identity="others@1", width=WIDTH).write(things([5]), holding([5]), tidy=True)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (no_table, "is damaged"),
        (cut_table, "is damaged"),
        (cut_vectors, "has lost some of its vectors"),
        (lose_vectors, "has lost its vectors"),
        (older_format, "was written by another version of tellapart"),
        (of_another_retriever, "holds vectors of another retriever"),
    ],
)
def test_a_store_that_cannot_be_used_is_empty_says_why_and_is_made_again(
    tmp_path: Path, damage: Callable[[Path], None], said: str
) -> None:
    store = store_in(tmp_path)
    store.write(things(range(5)), holding(range(5)), tidy=True)
    damage(tmp_path)
    kept = store.read()
    assert kept.note == f"{tmp_path} {said}: it is made again"
    assert (len(kept.entries), len(kept.vectors), kept.numbers) == (0, 0, {})
    store.write(things([7]), holding([7]), tidy=True)
    assert held(store.read()) == [7]
    assert store.read().note == ""
    assert len(list(tmp_path.iterdir())) == 3
