"""How fast and how lean the measures are, against pycocoevalcap in the same run.

    TELLAPART_DATA=DATA python -m benchmarks.metrics [--rounds 5]

Prints, with the two programs taking turns and each time in a process of its own:
- tokenizer, BLEU, ROUGE-L and CIDEr-D of COCO val2017 (5,000 candidates, 4 references each);
- METEOR of the same, from the start of the process to its end, our index of the paraphrases being built;
- the memory of the largest process of each;
- how our time and memory grow up to 40,000 images;
- mBLEU of 1,000 images with five captions each; and all measures of sets (both mBLEUs, both SelfCIDErs, LSA,
  Div-1 and 2, distinct) of 1,000 to 4,000 images, tokenizing included.
Times on shared machines mean little alone: read the ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

from tellapart.data.caption_file import read_captions

IMAGES = 5_000
SIZES = (5_000, 10_000, 20_000, 40_000)
SETS = (1_000, 2_000, 4_000)


@dataclass(frozen=True)
class Taken:
    """What one process took, and what it found."""

    whole: float  # seconds from its start to its end
    work: float  # seconds without its imports and reading
    memory: float  # MB of it or of its largest child
    scores: dict[str, float]


def main() -> None:
    """All parts in order."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as scratch:
        captions = Path(scratch)
        write_captions(Path(os.environ["TELLAPART_DATA"]), captions)
        race("tokenizer, BLEU, ROUGE-L, CIDEr-D", "ngrams", captions, rounds)
        run("ours", "meteor", captions, 10)  # builds the index and compiles, once
        race("METEOR", "meteor", captions, rounds)
        grow("tokenizer, BLEU, ROUGE-L, CIDEr-D", "ngrams", captions, SIZES, rounds)
        grow("METEOR", "meteor", captions, SIZES, rounds)
        race("mBLEU of five captions", "self_bleu", captions, rounds, images=SETS[0])
        grow("all measures of sets, of five captions", "sets", captions, SETS, rounds)


def write_captions(data: Path, folder: Path) -> None:
    """Five captions an image: those of val2017, then of Flickr30k, then of Flickr8k; a file for each size."""
    files = (
        "text/coco_captions_val2017.json.gz",
        "text/flickr30k_captions.jsonl.gz",
        "flickr8k/captions.txt",
    )
    found = [list(entry.captions[:5]) for name in files for entry in read_captions(data / name).entries]
    for size in {10, IMAGES, *SIZES, *SETS}:
        (folder / f"{size}.json").write_text(json.dumps(found[:size]), encoding="utf-8")


def run(who: str, job: str, captions: Path, images: int) -> Taken:
    """One job in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.metrics_worker", who, job, str(captions / f"{images}.json")]
    began = perf_counter()
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    whole = perf_counter() - began
    found = json.loads(ended.stdout.splitlines()[-1])
    return Taken(whole, found["work"], found["memory"], found["scores"])


def race(what: str, job: str, captions: Path, rounds: int, *, images: int = IMAGES) -> None:
    """Both programs in turns; ratios of the medians, and the range of those of single rounds."""
    ours, theirs = [], []
    for _ in range(rounds):
        theirs.append(run("theirs", job, captions, images))
        ours.append(run("ours", job, captions, images))
    print(f"{what}: {images:,} images, {rounds} rounds")
    compare("  work alone", [each.work for each in ours], [each.work for each in theirs])
    compare("  whole process", [each.whole for each in ours], [each.whole for each in theirs])
    memory = max(each.memory for each in theirs), max(each.memory for each in ours)
    print(f"  largest process: pycocoevalcap's {memory[0]:.0f} MB, ours {memory[1]:.0f} MB")
    gap = max(abs(value - ours[0].scores[name]) for name, value in theirs[0].scores.items())
    print(f"  greatest difference of a corpus value: {gap:.1e}", flush=True)


def compare(what: str, ours: list[float], theirs: list[float]) -> None:
    """One line: seconds and how many times faster."""
    ratios = [other / own for own, other in zip(ours, theirs, strict=True)]
    print(f"{what}: pycocoevalcap {median(theirs):.2f} s, ours {median(ours):.2f} s;", end=" ")
    print(f"{median(theirs) / median(ours):.1f} times faster ({min(ratios):.1f} to {max(ratios):.1f})")


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


if __name__ == "__main__":
    main()
