"""How long the first answer of `tellapart search` takes, and how that grows with the folder.

    python -m benchmarks.search [--retriever reranker] [--sizes 1000 10000 100000] [--rounds 5]

Makes folders of small files that are named like pictures, in one folder and in nested ones, and has a store
filled with random unit vectors for them, by the code that fills it with true ones: on the warm way no picture
is opened, so that what is in the files does not matter. Prints, for each size, in turns:
- the whole process `tellapart search`, and the seconds of its parts from a process like it;
- the bare cost: starting Python, importing NumPy, the names, sizes and times of the files, reading the
  vectors and multiplying them;
- what a search costs after one picture went, and the one after that.
Times on shared machines mean little alone: read the processor's seconds, and the ratios.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from unittest.mock import patch

import numpy as np

from benchmarks.machine import machine
from benchmarks.race import Race, Told
from tellapart.retrievers.loading import load_retriever
from tellapart.retrievers.retriever import Placed, Retriever, Watch, unwatched
from tellapart.retrievers.store.memory import SECOND, UNSURE
from tellapart.retrievers.store.pictures import gather_pictures
from tellapart.retrievers.store.vectors import store_of

QUERY = "a dog runs on the grass"
FOLDERS = 1000  # of the nested kind
RETRIEVER, SIZES, ROUNDS = "reranker", (1_000, 10_000, 100_000), 5
AIM = 1.0  # seconds from the command to the answer, at most

SEARCH, ITS_PARTS = "tellapart search", "its parts"
MULTIPLIED, LISTED = "bare: read and multiply", "bare: names, sizes, times"

START = "pass"
NUMPY = "import numpy"
PRODUCT = """
import sys, numpy
vectors = numpy.fromfile(sys.argv[1], numpy.float32).reshape(-1, int(sys.argv[2]))
scores = vectors @ vectors[0]
print(scores.argpartition(len(scores) - 10)[-10:])
"""
LOOK = """
import os, sys
def look(folder):
    with os.scandir(folder) as entries:
        for entry in entries:
            look(entry.path) if entry.is_dir() else entry.stat()
look(sys.argv[1])
"""


class Random(Retriever):
    """In the place of a true retriever: a random direction for each file, the same each time."""

    def __init__(self, true: Retriever) -> None:
        self.name, self.identity, self.width = true.name, true.identity, true.width

    def place(self, paths: Iterable[object]) -> Iterator[Placed]:
        """Not by looking at it."""
        for path in paths:
            assert isinstance(path, Path)
            seed = int.from_bytes(hashlib.sha256(path.read_bytes()).digest()[:8], "big")
            vector = np.random.default_rng(seed).standard_normal(self.width)
            yield Placed(path, np.asarray(vector / np.linalg.norm(vector), np.float32))

    def embed_texts(self, sentences: Sequence[str], *, watch: Watch = unwatched) -> np.ndarray:
        """Nothing asks for it."""
        raise NotImplementedError

    def unknown_words(self, sentence: str) -> Sequence[str]:
        """None."""
        return ()


@dataclass(frozen=True)
class Taken:
    """What a process took, in seconds, and what it said."""

    wall: float
    processor: float
    printed: str


def run(*command: str) -> Taken:
    """Run one process to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    ended = subprocess.run([sys.executable, *command], check=True, capture_output=True, text=True)
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Taken(wall, processor, ended.stdout)


def fill(folder: Path, count: int, *, nested: bool) -> None:
    """Small files of as many different contents, long enough ago that their times can be trusted."""
    for number in range(count):
        inside = folder / f"{number % FOLDERS:04d}" if nested else folder
        inside.mkdir(parents=True, exist_ok=True)
        (inside / f"photo_{number:07d}.jpg").write_bytes(b"%d" % number)
    time.sleep(1.1 * UNSURE / SECOND)


def filled_folders(retriever: Retriever, sizes: Iterable[int]) -> Iterator[Path]:
    """A folder of each size, flat and nested, whose vectors are in a store that is nobody else's."""
    with (
        tempfile.TemporaryDirectory() as scratch,
        patch.dict(os.environ, {"TELLAPART_CACHE": str(Path(scratch) / "cache")}),
    ):
        for size in sizes:
            for nested in (False, True):
                where = f"{FOLDERS:,} folders" if nested else "one folder"
                folder = Path(scratch) / f"{size:,} pictures in {where}"
                fill(folder, size, nested=nested)
                assert len(gather_pictures(folder, Random(retriever)).names) == size
                yield folder


def search_command(folder: Path, retriever: Retriever) -> Sequence[str]:
    """As a user would search."""
    return "-m", "tellapart", "search", QUERY, str(folder), "--retriever", retriever.name


def measure(folder: Path, retriever: Retriever, rounds: int) -> dict[str, list[Taken]]:
    """All that is run in turns."""
    vectors = next(store_of("pictures", folder, retriever).folder.glob("vectors-*"))
    commands = {
        SEARCH: search_command(folder, retriever),
        ITS_PARTS: ("-m", "benchmarks.search_worker", QUERY, str(folder), retriever.name),
        "bare: python": ("-c", START),
        "bare: python and numpy": ("-c", NUMPY),
        MULTIPLIED: ("-c", PRODUCT, str(vectors), str(retriever.width)),
        LISTED: ("-c", LOOK, str(folder)),
    }
    taken: dict[str, list[Taken]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            taken[name].append(run(*command))
    return taken


def races(
    *, sizes: Iterable[int] = SIZES, rounds: int = ROUNDS, retriever: str = RETRIEVER
) -> Iterator[Race]:
    """The whole process against what reading and looking alone would take."""
    loaded = load_retriever(retriever)
    for folder in filled_folders(loaded, sizes):
        taken = measure(folder, loaded, rounds)
        for bare in (MULTIPLIED, LISTED):
            yield Race(
                f"{SEARCH}, {folder.name}",
                [one.wall for one in taken[SEARCH]],
                "s",
                against=bare,
                theirs=[one.wall for one in taken[bare]],
                told=Told.LONG,
                ceiling=AIM,
            )


def show_all(folder: Path, taken: Mapping[str, Sequence[Taken]]) -> None:
    """All that is printed about one folder as it is."""
    print(f"\n{folder.name}")
    parts = [json.loads(one.printed) for one in taken[ITS_PARTS]]
    for name, some in taken.items():
        if name != ITS_PARTS:
            show(name, some)
    for name in parts[0]:
        print(f"    {name:<34} {median(each[name] for each in parts):6.3f} s of the processor")


def show(name: str, some: Sequence[Taken]) -> None:
    """One line."""
    wall, processor = median(one.wall for one in some), median(one.processor for one in some)
    fastest = min(one.wall for one in some)
    print(f"  {name:<36} {processor:6.3f} s of the processor; {wall:6.3f} s, at best {fastest:.3f} s")


def change(folder: Path, command: Sequence[str]) -> None:
    """One picture goes; what is left is written anew once, and known after that."""
    next(path for path in folder.rglob("*.jpg")).unlink()
    show("after one picture went", [run(*command)])
    show("once more", [run(*command)])


def main() -> None:
    """All sizes in order."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--retriever", default=RETRIEVER)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    retriever = load_retriever(arguments.retriever)
    print(machine())
    for folder in filled_folders(retriever, arguments.sizes):
        show_all(folder, measure(folder, retriever, arguments.rounds))
        change(folder, search_command(folder, retriever))


if __name__ == "__main__":
    main()
