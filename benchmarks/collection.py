"""How fast and how lean captioning a collection against itself is, and how its cost grows.

    TELLAPART_DATA=DATA python -m benchmarks.collection [--photographs 1000] [--rounds 3] [--without-blip]
    TELLAPART_DATA=DATA python -m benchmarks.collection --growth 1000 4000 15000 50000 --plot growth.png

Every run is `tellapart caption FOLDER --effort 0` in a process of its own with an empty cache of features:
ten candidates of each photograph, chosen by their margin over ten neighbours. The competitor, in turns with
it, is a BLIP of the base size with random weights, through transformers' own processor and `generate` with a
beam of three; it captions fewer photographs, as it takes seconds for each. For the growth, photographs are
altered copies of Flickr8k's (cropped, mirrored, brightened, turned), no two of which are the same.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageEnhance

from benchmarks.captioners import write_blip
from benchmarks.collection_plot import Panel, draw

BLIP_PHOTOGRAPHS = 8
BLIP_WIDTH, BLIP_WORDS = 3, 20
SIDE = 256  # pixels of an altered copy's longer side


@dataclass(frozen=True)
class Ran:
    """What a run took."""

    photographs: int
    seconds: float
    processor: float  # seconds of all cores together, on which others on the machine have less influence
    peak: float  # MiB

    @property
    def speed(self) -> float:
        """Photographs a second, start-up included."""
        return self.photographs / self.seconds


def caption(folder: Path, *flags: str) -> Ran:
    """Caption the pictures of a folder as a user would, with nothing remembered."""
    with tempfile.TemporaryDirectory() as cache:
        command = [
            sys.executable,
            "-m",
            "tellapart",
            "caption",
            str(folder),
            "--effort",
            "0",
            "--json",
            *flags,
        ]
        started, before = time.perf_counter(), _processor()
        ended = subprocess.run(
            [sys.executable, "-m", "benchmarks.peak", *command],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"TELLAPART_CACHE": cache},
        )
        took, used = time.perf_counter() - started, _processor() - before
    if ended.returncode:
        sys.exit(ended.stderr)
    lines = ended.stdout.splitlines()
    assert all(json.loads(line)["neighbours"] for line in lines)
    return Ran(len(lines), took, used, int(ended.stderr.splitlines()[-1]) / 1024)


def generate(folder: Path, checkpoint: Path) -> float:
    """Photographs a second of transformers' own way from files to captions, its start-up left out."""
    transformers = import_module("transformers")
    processor = transformers.BlipImageProcessorPil.from_pretrained(checkpoint)
    model = transformers.BlipForConditionalGeneration.from_pretrained(checkpoint).eval()
    photographs = sorted(folder.iterdir())[:BLIP_PHOTOGRAPHS]
    started = time.perf_counter()
    with torch.inference_mode():
        for photograph in photographs:
            with Image.open(photograph) as picture:
                pixels = processor(picture.convert("RGB"), return_tensors="pt")
            model.generate(**pixels, num_beams=BLIP_WIDTH, max_new_tokens=BLIP_WORDS)
    return len(photographs) / (time.perf_counter() - started)


def alter(photographs: Sequence[Path], count: int, folder: Path) -> None:
    """Fill a folder up to so many pictures; those that are there stay."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(len(list(folder.iterdir())), count):
        chance = np.random.default_rng(number)
        with Image.open(photographs[number % len(photographs)]) as opened:
            picture = opened.convert("RGB")
        wide, high = picture.size
        left, top = chance.integers(0, [max(1, wide // 5), max(1, high // 5)]).tolist()
        picture = picture.crop((left, top, left + wide * 4 // 5, top + high * 4 // 5))
        if chance.random() < 0.5:
            picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        picture = picture.rotate(float(chance.normal(0, 4)), Image.Resampling.BILINEAR)
        picture = ImageEnhance.Brightness(picture).enhance(float(chance.uniform(0.7, 1.3)))
        picture.thumbnail((SIDE, SIDE))
        picture.save(folder / f"{number:06}.jpg", quality=85)


def race(photographs: Sequence[Path], rounds: int, *, with_blip: bool) -> None:
    """Photographs a second, in turns with the competitor; start-up and memory."""
    with tempfile.TemporaryDirectory() as name:
        folder, two = Path(name, "all"), Path(name, "two")
        for place, some in ((folder, photographs), (two, photographs[:2])):
            place.mkdir()
            for photograph in some:
                (place / photograph.name).symlink_to(photograph)
        checkpoint = Path(name, "blip")
        if with_blip:
            write_blip(checkpoint)
        ours, start, theirs = [], [], []
        for _ in range(rounds):
            ours.append(caption(folder))
            start.append(caption(two).seconds)
            if with_blip:
                theirs.append(generate(folder, checkpoint))
    speed = statistics.median(ran.speed for ran in ours)
    print(f"{len(photographs)} photographs, margin of 10 candidates over 10 neighbours, {rounds} rounds:")
    print(f"  {speed:.1f} images/s, start-up included ({_range([ran.speed for ran in ours])})")
    print(f"  two photographs: {statistics.median(start):.2f} s ({_range(start)})")
    print(f"  peak memory: {max(ran.peak for ran in ours):.0f} MiB")
    if theirs:
        ratios = [ran.speed / other for ran, other in zip(ours, theirs, strict=True)]
        print(f"  BLIP-base by generate, beam of {BLIP_WIDTH}: {statistics.median(theirs):.2f} images/s;")
        print(f"  ratio {statistics.median(ratios):.1f} ({_range(ratios)})")


def growth(photographs: Sequence[Path], sizes: Sequence[int], folder: Path) -> list[Ran]:
    """Cost against the number of pictures."""
    all_ran = []
    print("| pictures | seconds | processor's seconds | processor's ms a picture | peak MiB |")
    print("|--:|--:|--:|--:|--:|")
    alter(photographs, max(sizes), folder)
    for size in sizes:
        ran = caption(folder, "--limit", str(size))
        all_ran.append(ran)
        each = 1000 * ran.processor / ran.photographs
        cells = (
            f"{ran.photographs:,}",
            f"{ran.seconds:.0f}",
            f"{ran.processor:.0f}",
            f"{each:.1f}",
            f"{ran.peak:.0f}",
        )
        print("|", " | ".join(cells), "|", flush=True)
    return all_ran


def plot(path: Path, all_ran: Sequence[Ran]) -> None:
    """Time and memory side by side; the straight line is as if every picture took as long as at the end."""
    sizes = [ran.photographs for ran in all_ran]
    each = all_ran[-1].processor / sizes[-1]
    draw(
        path,
        [
            Panel(
                "processor's seconds",
                sizes,
                [ran.processor for ran in all_ran],
                [each * size for size in sizes],
            ),
            Panel("peak memory, MiB", sizes, [ran.peak for ran in all_ran]),
        ],
    )


def _processor() -> float:
    """Seconds of the processor that all processes took which were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _range(values: Sequence[float]) -> str:
    return f"{min(values):.1f}–{max(values):.1f}"


def main() -> None:
    """Race, or show the growth."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--photographs", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--without-blip", action="store_true")
    parser.add_argument("--growth", type=int, nargs="+", default=[], help="numbers of pictures, ascending")
    parser.add_argument("--plot", type=Path, help="where the growth is drawn (.png)")
    parser.add_argument("--copies", type=Path, help="where altered copies are kept from one run to the next")
    arguments = parser.parse_args()
    photographs = sorted((Path(os.environ["TELLAPART_DATA"]) / "flickr8k" / "images").iterdir())
    if arguments.growth:
        with tempfile.TemporaryDirectory() as name:
            all_ran = growth(photographs, arguments.growth, arguments.copies or Path(name, "copies"))
        if arguments.plot:
            plot(arguments.plot, all_ran)
    else:
        race(photographs[: arguments.photographs], arguments.rounds, with_blip=not arguments.without_blip)


if __name__ == "__main__":
    main()
