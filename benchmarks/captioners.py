"""How fast and how lean captioners are: to write, to train, and against transformers' own `generate`.

    python -m benchmarks.captioners [--rounds 3] [--parts speed grouped blip products] [--only NAME …]

Needs no data: weights and features are random, the vocabulary has 10,000 words; but the ensemble is the one
that ships, and BLIP, GIT and ViT-GPT2 are checkpoints of their base sizes, from their towers' features on.
Prints
- speed: milliseconds a caption (greedy and a beam of 5; 1 and 64 images at once), training tokens a second,
  peak memory of training in a process of its own, for each captioner in its small preset and in its paper's
  sizes;
- grouped: training with 5 captions an image, the image encoded once, against one image a caption;
- blip: our decoding of a BLIP of the base size against transformers' `generate`;
- products: a training step against its bare matrix products, run by themselves.
Every caption has 12 words and an end: until then the end is among the signs that are never written.
On 2 cores, or as many as OMP_NUM_THREADS says. Competitors take turns; a figure is the median of the rounds
with their range behind it. Times on shared machines mean little alone: read the ratios.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from statistics import median

import numpy as np
import torch

from benchmarks.blip import BATCHES as BLIP_BATCHES
from benchmarks.blip import blip_races
from benchmarks.captioner_worker import (
    CAPTIONS,
    IMAGES,
    LENGTH,
    TOKENS,
    WIDTH,
    Unending,
    build,
    make_up_batch,
    make_up_vision,
    repeat_images,
    trainer,
    use_two_cores,
    write,
)
from benchmarks.machine import machine
from benchmarks.matrix_products import Products
from benchmarks.peak import watch
from benchmarks.race import Race, Told, spread
from benchmarks.random_checkpoints import KINDS
from benchmarks.turns import ENOUGH, in_turns, milliseconds
from tellapart.captioners.parts import CAPTIONERS
from tellapart.captioners.size import TRAITS
from tellapart.errors import TellapartError
from tellapart.foreign.smollm2 import find_gguf
from tellapart.vision.parts import load_encoder

ROUNDS = 3
BATCHES = (1, 64)
ATTENTION = ("adaptive", "topdown", "transformer", "meshed")
MULTIPLIED = ("transformer", "topdown")
GROUPED = 2.0  # aimed at: times as fast as one image a caption
NAMES = CAPTIONERS.names()
PRESETS = ("small", "")
RACES = ("grouped", "blip", "products")
PARTS = ("speed", *RACES)


def called(name: str, preset: str) -> str:
    """What a captioner of that preset is called here."""
    if name in (*KINDS, "ensemble"):
        return f"{name} ({'base' if name in KINDS else 'default'})"
    return f"{name} {preset or '(paper)'}"


def measurable() -> list[tuple[str, str]]:
    """Names and presets of all captioners, the prefix only where its model is here.

    Left out are those of checkpoints whose language model may be any: BLIP-2's, image-text models'.
    """
    names = [name for name in CAPTIONERS.names() if not CAPTIONERS.get(name).own_text]
    try:
        find_gguf("the visual prefix")
    except TellapartError as error:
        print(f"prefix is left out: {error.problem}")
    else:
        names.append("prefix")
    names += KINDS
    return [
        (name, preset)
        for name in names
        for preset in PRESETS
        if preset in ("", *CAPTIONERS.get(name).presets)
    ]


def speed(rounds: int, only: Sequence[str]) -> None:
    """A line a captioner."""
    print(
        f"Captions of {LENGTH} words, milliseconds each; training on {IMAGES} images x {CAPTIONS} captions x"
    )
    print(f"{TOKENS} tokens, tokens/s; and the memory of a process that trains, of which")
    print(f"{memory([]):.0f} MiB are Python with its libraries.")
    writing = [f"{way} of {batch}" for batch in BATCHES for way in ("greedy", f"beam {WIDTH}")]
    print(f"{'':<36}{'weights':>9}", *(f"{what:>24}" for what in (*writing, "tokens/s")), f"{'MiB':>7}")
    for name, preset in measurable():
        if name in only:
            print(speed_line(name, preset, rounds), flush=True)


def speed_line(name: str, preset: str, rounds: int) -> str:
    """The figures of one captioner."""
    captioner = build(name, preset)
    batch, train = make_up_batch(captioner), trainer(captioner)
    own, endless = captioner.text, Unending(captioner.text)
    cells = []
    for size in BATCHES:
        captioner.text = endless
        vision = make_up_vision(captioner.eval(), size)
        works = {str(width): partial(write, captioner, vision, width) for width in (1, WIDTH)}
        found = in_turns(works, rounds, enough=ENOUGH)
        cells += [spread(milliseconds(times, size)) for times in found.values()]
    captioner.text = own
    training = in_turns({"train": partial(train, batch)}, rounds, enough=ENOUGH)["train"]
    cells.append(spread(IMAGES * CAPTIONS * TOKENS / each for each in training))
    weights = sum(parameter.numel() for parameter in captioner.parameters()) / 1e6
    row = " ".join(f"{cell:>24}" for cell in cells)
    return f"{called(name, preset):<36}{weights:>8.1f}M {row} {memory([name, preset]):>7,.0f}"


def memory(job: Sequence[str]) -> float:
    """MiB that a process needs at most for that job of the worker."""
    return watch("-m", "benchmarks.captioner_worker", *job).peak


def grouped(rounds: int, only: Sequence[str], presets: Sequence[str]) -> Iterator[Race]:
    """Each image once for its captions, or once for each of them; the same captions and weights.

    First with features at hand, as training here has them; then with the time of the default encoder added on
    both sides, once an image or once a caption.
    """
    sight = seconds_an_image() * IMAGES
    for name, preset in product([name for name in ATTENTION if name in only], presets):
        captioner = build(name, preset)
        batch, train = make_up_batch(captioner), trainer(captioner)
        works = {"once": partial(train, batch), "each": partial(train, repeat_images(batch))}
        fewer = operations(works["each"]) / operations(works["once"])
        times = in_turns(works, rounds, enough=ENOUGH)
        for how, looking in (("features at hand", 0.0), ("pictures looked at", sight)):
            once = [time + looking for time in times["once"]]
            yield Race(
                f"training step on {IMAGES} images x {CAPTIONS} captions, {called(name, preset)}, {how}",
                once,
                "s",
                against=f"ours on {IMAGES * CAPTIONS} x 1",
                theirs=[time + CAPTIONS * looking for time in times["each"]],
                aim=GROUPED,
                note=f"{IMAGES * CAPTIONS * TOKENS / median(once):,.0f} tokens/s; "
                f"the captioner multiplies {fewer:.2f} times less",
            )


def operations(work: Callable[[], object]) -> float:
    """GFLOP of all matrix products of some work."""
    noted = Products()
    with noted:
        work()
    return noted.operations()


def seconds_an_image() -> float:
    """What the default encoder takes for one image, on as many cores as it likes."""
    encoder = load_encoder(TRAITS.name)
    pixels = np.zeros((IMAGES, 3, encoder.size, encoder.size), np.float32)
    return median(in_turns({"look": partial(encoder.encode, pixels)}, 3)["look"]) / IMAGES


def products(rounds: int, only: Sequence[str], presets: Sequence[str]) -> Iterator[Race]:
    """A training step against what no implementation could leave out."""
    for name, preset in product([name for name in MULTIPLIED if name in only], presets):
        captioner = build(name, preset)
        batch, train = make_up_batch(captioner), trainer(captioner)
        with Products() as noted:
            train(batch)
        times = in_turns({"step": partial(train, batch), "bare": noted.bare()}, rounds, enough=ENOUGH)
        yield Race(
            f"training step, {called(name, preset)}",
            times["step"],
            "s",
            against="bare matrix products",
            theirs=times["bare"],
            told=Told.LONG,
            note=f"{noted.operations():.0f} GFLOP",
        )


def races(
    parts: Sequence[str] = RACES,
    *,
    rounds: int = ROUNDS,
    only: Sequence[str] = NAMES,
    presets: Sequence[str] = PRESETS,
    batches: Sequence[int] = BLIP_BATCHES,
) -> Iterator[Race]:
    """What is measured against others, in the order of the parts."""
    use_two_cores()
    for part in parts:
        if part == "grouped":
            yield from grouped(rounds, only, presets)
        elif part == "products":
            yield from products(rounds, only, presets)
        elif part == "blip" and part in only:
            yield from blip_races(rounds, batches)


def main() -> None:
    """All parts in order."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, metavar="NAME")
    arguments = parser.parse_args()
    use_two_cores()
    print(f"{machine()}, {torch.get_num_threads()} threads")
    if "speed" in arguments.parts:
        speed(arguments.rounds, arguments.only)
    for race in races(arguments.parts, rounds=arguments.rounds, only=arguments.only):
        print(race, flush=True)


if __name__ == "__main__":
    main()
