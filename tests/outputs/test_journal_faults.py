"""A journal loses nothing and doubles nothing: killed at any byte, on a full disk, by two writers at once."""

from __future__ import annotations

import json
import random
import signal
import time
from itertools import count
from pathlib import Path

import pytest
from tests.outputs.faults import LIMIT, killed, make_room, names_in, outcome, program, small_disk

from tellapart.data.caption_file import read_candidates
from tellapart.errors import TellapartError
from tellapart.outputs.journal import Journal, Record, open_journal

COMMON = """
import os, signal, sys
from pathlib import Path
from tellapart.errors import TellapartError
from tellapart.outputs import journal as module
from tellapart.outputs.journal import Record, open_journal

path = Path(sys.argv[1])
def record(number, key="k"):
    # Longer than a page, so that a kill finds lines half written.
    about = {"candidates": [{"caption": f"candidate {place} of {number}" * 40} for place in range(10)]}
    return Record(Path(f"{number}.jpg"), str(number), key, f"picture {number}", about)
"""

CAPTION_ALL = """
count = int(sys.argv[2])
with open_journal(path, {"model": "m"}) as journal:
    print("ready", flush=True)
    for number in range(count):
        if not journal.holds(str(number), "k"):
            journal.add(record(number))
            print(number, flush=True)
    journal.finish(map(str, range(count)))
"""

# Writes a number of bytes of one line, and is killed before the rest.
DIE_INSIDE_A_LINE = """
count, inside = map(int, sys.argv[2:])
write = os.pwrite
with open_journal(path, {"model": "m"}) as journal:
    number = next(number for number in range(count) if not journal.holds(str(number), "k"))
    journal.add(record(number))
    print(number, flush=True)
    def die(descriptor, data, start):
        write(descriptor, data[:inside], start)
        os.kill(os.getpid(), signal.SIGKILL)
    os.pwrite = die
    journal.add(record(number + 1))
"""

DIE_WHILE_PUT_IN_ORDER = """
pieces = int(sys.argv[2])
write, written = os.pwrite, 0
def die(descriptor, data, start):
    global written
    written += 1
    if written > pieces:
        write(descriptor, data[:len(data) // 2], start)
        os.kill(os.getpid(), signal.SIGKILL)
    return write(descriptor, data, start)
with open_journal(path, {"model": "m"}) as journal:
    os.pwrite = die
    journal.finish(sys.argv[3].split())
"""

DISK_FILLS = """
room = int(sys.argv[2])
with open_journal(path, {"model": "m"}) as journal:
    journal.add(record(0))
    limit(path.stat().st_size + room)
    for number in (1, 1):
        try:
            journal.add(record(number))
            sys.exit("there was room")
        except TellapartError as error:
            print(error)
    journal.add(Record(Path("s.jpg"), "small", "k", "fits")) if room > 1000 else None
"""

HOLD = """
with open_journal(path, {"model": "m"}) as journal:
    journal.add(record(0))
    print("held", flush=True)
    sys.stdin.readline()
"""


COUNT = 1500  # pictures captioned while their captioner is killed


def ids_in(path: Path) -> list[str]:
    return [json.loads(line)["image_id"] for line in path.read_text().splitlines()]


def test_killed_at_any_time_it_captions_nothing_twice_and_loses_nothing(tmp_path: Path) -> None:
    chance = random.Random(0)
    path = tmp_path / "captions.jsonl"
    reported: list[int] = []
    for _ in range(10):
        writer = program(COMMON + CAPTION_ALL, path, COUNT)
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0, 0.03))
        reported += map(int, killed(writer).split())
        with open_journal(path, {"model": "m"}) as journal:
            assert all(journal.holds(str(number), "k") for number in reported)
            assert len(reported) <= len(journal) <= max(reported, default=0) + 2
    assert len(reported) > 100, "all were killed before they wrote"
    assert len(reported) == len(set(reported)), "a picture was captioned twice"
    outcome(program(COMMON + CAPTION_ALL, path, COUNT))
    assert ids_in(path) == [str(number) for number in range(COUNT)]
    assert len(read_candidates(path).entries) == COUNT


def test_killed_inside_a_line_it_goes_on_behind_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "captions.jsonl"
    chance = random.Random(1)
    for turn, inside in enumerate([0, 1, 5, 20, 4095, 4096, chance.randint(100, 9000)]):
        out = outcome(program(COMMON + DIE_INSIDE_A_LINE, path, 100, inside), code=-signal.SIGKILL)
        assert out == f"{turn}\n"
        assert path.read_bytes().count(b"\n") == turn + 1
        assert path.read_bytes().endswith(b"\n") == (inside == 0)
    with open_journal(path, {"model": "m"}) as journal:
        assert len(journal) == 7
    assert ids_in(path) == [str(number) for number in range(7)]


@pytest.mark.parametrize("pieces", [0, 1, 4, 5])
def test_killed_while_it_is_put_in_order_it_is_as_before_or_as_after(tmp_path: Path, pieces: int) -> None:
    path = tmp_path / "captions.jsonl"
    with open_journal(path, {"model": "m"}) as journal:
        for number in (3, 1, 4, 2, 0, 1):
            journal.add(Record(Path(f"{number}.jpg"), str(number), "k", "a caption"))
    before = path.read_bytes()
    died = pieces < 5
    code = -signal.SIGKILL if died else 0
    outcome(program(COMMON + DIE_WHILE_PUT_IN_ORDER, path, pieces, "0 1 2 3 4"), code=code)
    assert (path.read_bytes() == before) == died
    assert len(names_in(tmp_path)) == (2 if died else 1)
    with open_journal(path, {"model": "m"}) as journal:
        assert names_in(tmp_path) == ["captions.jsonl"]  # what the dead writer left is swept away
        journal.finish(map(str, range(5)))
    assert ids_in(path) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("room", [0, 1, 2000])
def test_a_full_disk_costs_no_line_and_the_run_can_be_gone_on_with(tmp_path: Path, room: int) -> None:
    path = tmp_path / "captions.jsonl"
    said = outcome(program(COMMON + LIMIT + DISK_FILLS, path, room))
    assert said.count("cannot be written") == 2
    assert said.count("free some disk space") == 2
    assert ids_in(path) == (["0", "small"] if room > 1000 else ["0"])
    outcome(program(COMMON + CAPTION_ALL, path, 3))
    assert sorted(ids_in(path)) == sorted(["0", "1", "2"] + ["small"] * (room > 1000))


def add_without_end(journal: Journal) -> None:
    for number in count():
        journal.add(Record(Path(f"{number}.jpg"), str(number), "k", "a caption " * 150))


def test_a_disk_that_is_full_in_the_middle(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", kilobytes=128) as disk:
        path = disk / "captions.jsonl"
        with open_journal(path, {"model": "m"}) as journal:
            with pytest.raises(TellapartError, match="No space left") as caught:
                add_without_end(journal)
            assert "free some disk space" in caught.value.hint
            added = len(journal)
            assert added > 40
            assert ids_in(path) == [str(number) for number in range(added)]
            # There is no room to write it anew either: it stays, and says so.
            with pytest.raises(TellapartError, match="No space left"):
                journal.finish(map(str, reversed(range(added))))
            assert names_in(disk) == ["captions.jsonl"]
        make_room(disk, kilobytes=512)
        with open_journal(path, {"model": "m"}) as journal:
            assert len(journal) == added
            journal.add(Record(Path("more.jpg"), "more", "k", "a caption"))
            journal.finish(["more", *map(str, reversed(range(added)))])
        assert ids_in(path) == ["more", *map(str, reversed(range(added)))]


def test_a_second_process_is_refused_and_the_lock_of_a_dead_one_is_none(tmp_path: Path) -> None:
    path = tmp_path / "captions.jsonl"
    holder = program(COMMON + HOLD, path)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(TellapartError, match="another process is writing"), open_journal(path, {}):
        pass
    assert ids_in(path) == ["0"]
    holder.kill()
    outcome(holder, code=-signal.SIGKILL)
    with open_journal(path, {"model": "m"}) as journal:
        assert journal.holds("0", "k")
    assert names_in(tmp_path) == ["captions.jsonl"]


def test_thousands_of_lines_are_added_in_a_second(tmp_path: Path) -> None:
    with open_journal(tmp_path / "captions.jsonl", {"model": "m"}) as journal:
        begin = time.perf_counter()
        for number in range(2000):
            journal.add(Record(Path(f"{number}.jpg"), str(number), "k", "a caption" * 100))
        assert time.perf_counter() - begin < 20  # on an idle machine, 0.1: nobody waits for the disk
