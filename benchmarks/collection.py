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
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageEnhance

from benchmarks.collection_plot import Panel, draw
from benchmarks.machine import machine
from benchmarks.peak import watch
from benchmarks.race import Race, markdown_row
from benchmarks.random_checkpoints import write_checkpoint
from benchmarks.real_data import all_photographs, linked
from tellapart.extras import import_extra

PHOTOGRAPHS, ROUNDS = 1000, 3
EACH, START, MEMORY = 50, 5, 1500  # milliseconds a photograph, seconds, MiB: to stay below
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
    def each(self) -> float:
        """Milliseconds a photograph, start-up included."""
        return 1000 * self.seconds / self.photographs


def caption(folder: Path) -> Ran:
    """Caption the pictures of a folder as a user would, with nothing remembered."""
    with tempfile.TemporaryDirectory() as cache:
        command = ("-m", "tellapart", "caption", str(folder), "--effort", "0", "--json")
        before = _processor()
        watched = watch(*command, env={"TELLAPART_CACHE": cache})
        used = _processor() - before
    lines = watched.printed.splitlines()
    assert all(json.loads(line)["neighbours"] for line in lines)
    return Ran(len(lines), watched.seconds, used, watched.peak)


def generate(photographs: Sequence[Path], checkpoint: Path) -> float:
    """Milliseconds a photograph of transformers' own way from files to captions, its start-up left out."""
    transformers = import_extra("transformers", needed_by="BLIP", extra="transformers")
    processor = transformers.BlipImageProcessorPil.from_pretrained(checkpoint)
    model = transformers.BlipForConditionalGeneration.from_pretrained(checkpoint).eval()
    started = time.perf_counter()
    with torch.inference_mode():
        for photograph in photographs:
            with Image.open(photograph) as picture:
                pixels = processor(picture.convert("RGB"), return_tensors="pt")
            model.generate(**pixels, num_beams=BLIP_WIDTH, max_new_tokens=BLIP_WORDS)
    return 1000 * (time.perf_counter() - started) / len(photographs)


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


def races(
    *, count: int = PHOTOGRAPHS, rounds: int = ROUNDS, by_blip: int = BLIP_PHOTOGRAPHS
) -> Iterator[Race]:
    """Time a photograph, in turns with the competitor if it is given any; start-up and memory."""
    some = all_photographs()[:count]
    ours, start, theirs = [], [], []
    with linked(some) as folder, linked(some[:2]) as two, tempfile.TemporaryDirectory() as checkpoint:
        if by_blip:
            write_checkpoint("blip", Path(checkpoint))
        for _ in range(rounds):
            ours.append(caption(folder))
            start.append(caption(two).seconds)
            if by_blip:
                theirs.append(generate(some[:by_blip], Path(checkpoint)))
    each = [ran.each for ran in ours]
    yield Race(
        f"captions of {count:,} photographs, margin of 10 candidates over 10 neighbours",
        each,
        "ms a photograph",
        against=f"BLIP-base by generate, beam of {BLIP_WIDTH}" if by_blip else "",
        theirs=theirs,
        ceiling=EACH if count >= PHOTOGRAPHS else None,  # the start counts more among fewer
        note=f"{1000 / statistics.median(each):.1f} images/s, start-up included",
    )
    yield Race("captions of two photographs: start-up", start, "s", ceiling=START)
    yield Race(
        f"captions of {count:,} photographs, memory", [ran.peak for ran in ours], "MiB", ceiling=MEMORY
    )


def growth(sizes: Sequence[int], folder: Path) -> list[Ran]:
    """Cost against the number of pictures."""
    all_ran = []
    print("| pictures | seconds | processor's seconds | processor's ms a picture | peak MiB |")
    print("|--:|--:|--:|--:|--:|")
    alter(all_photographs(), max(sizes), folder)
    copies = sorted(folder.iterdir())
    for size in sizes:
        with linked(copies[:size]) as some:
            ran = caption(some)
        all_ran.append(ran)
        cells = (
            f"{ran.photographs:,}",
            f"{ran.seconds:.0f}",
            f"{ran.processor:.0f}",
            f"{1000 * ran.processor / ran.photographs:.1f}",
            f"{ran.peak:.0f}",
        )
        print(markdown_row(cells), flush=True)
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


def main() -> None:
    """Race, or show the growth."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--photographs", type=int, default=PHOTOGRAPHS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--without-blip", action="store_true")
    parser.add_argument("--growth", type=int, nargs="+", default=[], help="numbers of pictures, ascending")
    parser.add_argument("--plot", type=Path, help="where the growth is drawn (.png)")
    parser.add_argument("--copies", type=Path, help="where altered copies are kept from one run to the next")
    arguments = parser.parse_args()
    if arguments.growth:
        with tempfile.TemporaryDirectory() as name:
            all_ran = growth(arguments.growth, arguments.copies or Path(name, "copies"))
        if arguments.plot:
            plot(arguments.plot, all_ran)
        return
    print(machine())
    by_blip = 0 if arguments.without_blip else BLIP_PHOTOGRAPHS
    for race in races(count=arguments.photographs, rounds=arguments.rounds, by_blip=by_blip):
        print(race, flush=True)


if __name__ == "__main__":
    main()
