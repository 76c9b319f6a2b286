"""The feature cache lives through kills, two writers, damaged files and a full disk.

What could take the tests down, or needs a process of its own, runs in small programs. These and the tests
agree on what picture number n is: a square whose every pixel is n.
"""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest

from tellapart.vision.cache import FeatureCache, digest_of
from tellapart.vision.features import PARTS, Features
from tellapart.vision.patches import SIDE, Patches

COMMON = """
import os, resource, shutil, signal, sys
from pathlib import Path
import numpy as np
from tellapart.errors import TellapartError
from tellapart.vision.cache import FeatureCache, digest_of
from tellapart.vision.features import PARTS
from tellapart.vision.patches import SIDE, Patches

def digest(number): return digest_of(str(number).encode())
def square(number): return Patches().encode(np.full((1, 3, SIDE, SIDE), number, np.float32))
def squares(numbers): return {digest(number): square(number) for number in numbers}
def check(cache, numbers):
    for number in numbers:
        kept = cache.read([digest(number)], PARTS)
        for part in PARTS:
            assert getattr(kept, part).tobytes() == getattr(square(number), part).tobytes(), number
"""

KEEP_WRITING = """
folder, known = Path(sys.argv[1]), int(sys.argv[2])
cache = FeatureCache(folder, Patches())
check(cache, range(known))
unreported = [cache.holds(digest(number), PARTS) for number in range(known, known + 4)]
assert all(unreported) or not any(unreported), "half a transaction"
while True:
    cache.write(squares(range(known, known + 4)), PARTS)
    known += 4
    print(known, flush=True)
"""

KILLED_INSIDE = """
class Deadly(dict):
    def items(self):
        for place, item in enumerate(super().items()):
            if place == 30:
                os.kill(os.getpid(), signal.SIGKILL)
            yield item

cache = FeatureCache(Path(sys.argv[1]), Patches())
cache.write(squares(range(5)), PARTS)
cache.write(Deadly(squares(range(5, 45))), PARTS)
"""

WRITE_RANGE = """
start, stop = map(int, sys.argv[2:])
cache = FeatureCache(Path(sys.argv[1]), Patches())
print("ready", flush=True)
sys.stdin.readline()
for number in range(start, stop, 5):
    cache.write(squares(range(number, number + 5)), PARTS)
    check(cache, range(start, number + 5, 11))
print("done")
"""

WRITE_TWENTY = """
cache = FeatureCache(Path(sys.argv[1]), Patches())
for number in range(20):
    cache.write(squares([number]), PARTS)
print(cache.path.relative_to(Path(sys.argv[1]).resolve()) / "data.mdb")
"""

OPEN_DAMAGED = """
folder = Path(sys.argv[1])
kept = []
for attempt in range(2):
    try:
        cache = FeatureCache(folder, Patches())
        cache.holds(digest(0), PARTS)
        sys.exit("a damaged store was opened")
    except TellapartError as error:
        kept.append(error)  # with its traceback and all that this holds, as an interactive session does
        assert str(folder) in error.problem, error
        assert "delete that folder" in error.hint, error
print(kept[1])
if "cannot be opened" in kept[1].problem:
    shutil.rmtree(folder)
    cache = FeatureCache(folder, Patches())
    cache.write(squares([1]), PARTS)
    check(cache, [1])
"""

DISK_FILLS = """
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # so that a write fails instead
def limit(size): resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

cache = FeatureCache(Path(sys.argv[1]), Patches())
cache.write(squares(range(5)), PARTS)
for room in (0, 4096, 50_000):
    limit((cache.path / "data.mdb").stat().st_size + room)
    try:
        cache.write(squares(range(5, 30)), PARTS)
        sys.exit("there was room")
    except TellapartError as error:
        print(error)
    limit(resource.RLIM_INFINITY)
    check(cache, range(5))
    assert not any(cache.holds(digest(number), [part]) for number in range(5, 30) for part in PARTS)
if sys.argv[2] == "mended":
    cache.write(squares(range(5, 30)), PARTS)
    check(cache, range(30))
"""

DISK_IS_FULL = """
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
try:
    FeatureCache(Path(sys.argv[1]), Patches())
except TellapartError as error:
    print(error)
"""


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


def digest(number: int) -> bytes:
    return digest_of(str(number).encode())


def square(number: int) -> Features:
    return Patches().encode(np.full((1, 3, SIDE, SIDE), number, np.float32))


def assert_squares(folder: Path, numbers: Iterable[int]) -> FeatureCache:
    cache = FeatureCache(folder, Patches())
    for number in numbers:
        kept, expected = cache.read([digest(number)], PARTS), square(number)
        assert all(np.array_equal(getattr(kept, part), getattr(expected, part)) for part in PARTS), number
    return cache


def test_a_store_survives_its_writers_being_killed(tmp_path: Path) -> None:
    chance = random.Random(0)
    known = 0
    for _ in range(5):
        writer = program(KEEP_WRITING, tmp_path, known)
        for _ in range(chance.randint(1, 12)):
            known = int(line_from(writer) or known)
        time.sleep(chance.uniform(0, 0.01))
        writer.kill()
        reported = outcome(writer, code=-signal.SIGKILL).split()
        known = int(reported[-1]) if reported else known
    assert known >= 20
    assert_squares(tmp_path, range(known))


def test_a_transaction_cut_by_a_kill_leaves_nothing_of_itself(tmp_path: Path) -> None:
    outcome(program(KILLED_INSIDE, tmp_path), code=-signal.SIGKILL)
    cache = assert_squares(tmp_path, range(5))
    assert not any(cache.holds(digest(number), [part]) for number in range(5, 45) for part in PARTS)
    cache.write({digest(number): square(number) for number in range(5, 45)}, PARTS)
    assert_squares(tmp_path, range(45))


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    writers = [program(WRITE_RANGE, tmp_path, *numbers) for numbers in ((0, 150), (100, 250))]
    assert [line_from(writer) for writer in writers] == ["ready\n"] * 2
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    assert [outcome(writer) for writer in writers] == ["done\n"] * 2
    assert_squares(tmp_path, range(250))


@pytest.fixture(scope="module")
def twenty(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A cache folder with twenty pictures that this process never opens, and its data file inside."""
    folder = tmp_path_factory.mktemp("twenty")
    return folder, Path(outcome(program(WRITE_TWENTY, folder)).strip())


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda data: data[:1], "cannot be opened"),
        (lambda data: data[:5000], "cannot be opened"),
        (lambda data: data[:8192], "shorter than its own index says"),
        (lambda data: data[: len(data) // 2], "shorter than its own index says"),
        (lambda data: data[:-1], "shorter than its own index says"),
        (lambda data: bytes(8192) + data[8192:], "cannot be opened"),
        (lambda data: b"something else entirely " * 20 + data[480:], "cannot be opened"),
        (lambda data: data[:8192] + b"\xff" * (len(data) - 8192), "cannot be read"),
    ],
    ids=["one byte", "one page", "two pages", "half", "all but a byte", "no header", "text", "no pages"],
)
def test_a_damaged_store_is_refused(
    twenty: tuple[Path, Path], tmp_path: Path, damage: Callable[[bytes], bytes], said: str
) -> None:
    folder = tmp_path / "damaged"
    shutil.copytree(twenty[0], folder)
    data = folder / twenty[1]
    data.write_bytes(damage(data.read_bytes()))
    assert said in outcome(program(OPEN_DAMAGED, folder))


def test_an_undamaged_store_is_opened(twenty: tuple[Path, Path], tmp_path: Path) -> None:
    shutil.copytree(twenty[0], tmp_path / "copy")
    assert_squares(tmp_path / "copy", range(20))


@pytest.mark.parametrize("then", ["mended", "left"])
def test_a_full_disk_costs_nothing_that_was_stored(tmp_path: Path, then: str) -> None:
    said = outcome(program(DISK_FILLS, tmp_path, then))
    assert said.count("cannot store features") == 3
    assert said.count("free some disk space") == 3
    assert_squares(tmp_path, range(30 if then == "mended" else 5))


def test_a_disk_that_is_full_from_the_start_is_said(tmp_path: Path) -> None:
    assert "the feature cache cannot be opened" in outcome(program(DISK_IS_FULL, tmp_path))
