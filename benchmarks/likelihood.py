"""How fast log p(c|I) of all pairs is: against its bare matrix products, and against simpler ways.

    python -m benchmarks.likelihood [--rounds 3] [--images 50] [--captions 250]

Takes the first captions of Flickr8k's test split where TELLAPART_DATA names their folder, else captions of
random words, which share no beginnings; an m-RNN and an LSTM with attention, both untrained (adaptive,
small); random features. Prints, for each captioner, seconds of `score_pairs`, reading the captions included,
against
- the matrix products of the same work, run by themselves;
- captions of one length together: `predict` for each picture and 64 MB of logits at a time;
- pair by pair: `predict` for each pair, of a tenth of the pictures, times ten;
and what it would take for 1,000 pictures and 5,000 captions.
Seconds are those of the processor, all cores together, so that others on the machine count less; on one core
unless OMP_NUM_THREADS says more. Competitors take turns, of which the first is not counted; a figure is the
median of the rounds with their range behind it. Read the ratios.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
import torch

from benchmarks.captioner_worker import make_up_vision
from benchmarks.machine import machine
from benchmarks.matrix_products import Products
from benchmarks.race import Race, Told
from benchmarks.turns import in_turns, threads
from tellapart.captioners.folder import build_captioner, load_captioner
from tellapart.captioners.parts import CAPTIONERS
from tellapart.captioners.size import TRAITS
from tellapart.captioning import find_captioner
from tellapart.data.batches import pad_captions
from tellapart.data.readers import read_dataset
from tellapart.data.word_text import WordText
from tellapart.retrievers.likelihood.late import LateScorer
from tellapart.retrievers.likelihood.pairs import LOGITS, score_pairs
from tellapart.retrievers.likelihood.prefixes import Prefixes
from tellapart.retrievers.likelihood.stepwise import StepScorer
from tellapart.types import AnyCaptioner, MeetsLate, Vision

ROUNDS, IMAGES, CAPTIONS = 3, 50, 250
AIM = 1.5  # times as long as the products, at most
TENTH = 10
GROUPED = 2**26  # bytes of logits
WHOLE = 40_167 * 1_000  # beginnings of Flickr8k's test captions, and its test pictures

Captions = Sequence[Sequence[int]]


def read_captions(text: WordText, count: int) -> Captions:
    """Real ones where they are at hand, else random words, 11 of them on average."""
    folder = os.environ.get("TELLAPART_DATA")
    if not folder:
        random = np.random.default_rng(1)
        lengths = random.integers(6, 17, count)
        return [[text.start, *random.integers(4, len(text), length).tolist(), text.end] for length in lengths]
    files = Path(folder) / "flickr8k"
    examples = read_dataset(files / "captions.txt", format="flickr", images=files / "images").strict()
    captions = [caption for example in examples if example.split == "test" for caption in example.captions]
    return [text.encode(caption) for caption in captions[:count]]


def by_groups(captioner: AnyCaptioner, vision: Vision, captions: Captions, *, logits: int) -> torch.Tensor:
    """`predict` for each picture with as many captions, sorted by length, as their logits allow."""
    order = sorted(range(len(captions)), key=lambda place: len(captions[place]))
    scores = torch.empty(len(captions), len(vision))
    a_token = len(captioner.text) * 4
    for picture in range(len(vision)):
        one = vision.select(torch.tensor([picture]))
        left = order
        while left:
            longest = len(captions[left[0]]) if logits == 0 else len(captions[left[-1]])
            count = max(1, logits // (longest * a_token))
            some, left = left[:count], left[count:]
            tokens, mask = pad_captions([[captions[place] for place in some]], pad=captioner.text.pad)
            expected = captioner.predict(one, tokens[:, :, :-1]).logits.log_softmax(-1)
            own = expected.gather(-1, tokens[:, :, 1:, None]).squeeze(-1)
            scores[some, picture] = (own * mask[:, :, 1:]).sum(-1)[0]
    return scores


def bare_products(
    captioner: AnyCaptioner, vision: Vision, captions: Captions
) -> tuple[Callable[[], None], float]:
    """The matrix products of our way, and how many thousand million operations they are."""
    scorer: LateScorer | StepScorer
    with torch.no_grad(), Products() as products:  # in inference mode layers would hide their products
        if isinstance(captioner, MeetsLate) and captioner.meets_late:
            scorer = LateScorer(captioner, captions, logits=LOGITS)
        else:
            scorer = StepScorer(captioner, captions, logits=LOGITS)
        for first in range(0, len(vision), scorer.together):
            scorer(vision.select(torch.arange(first, min(first + scorer.together, len(vision)))))
    return products.bare(), products.operations()


def race_ways(
    name: str, captioner: AnyCaptioner, captions: Captions, *, images: int, rounds: int
) -> Iterator[Race]:
    """All ways in turns."""
    vision = make_up_vision(captioner, images)
    few = vision.select(torch.arange(max(1, images // TENTH)))
    bare, operations = bare_products(captioner, vision, captions)
    found = score_pairs(captioner, [few], captions)

    def loop() -> None:
        with torch.inference_mode():
            scores = by_groups(captioner, few, captions, logits=0)
        assert np.allclose(scores.numpy(), found, atol=1e-3)

    def groups() -> None:
        with torch.inference_mode():
            by_groups(captioner, vision, captions, logits=GROUPED)

    ways = {
        "ours": lambda: score_pairs(captioner, [vision], captions),
        "bare": bare,
        "groups": groups,
        "loop": loop,
    }
    times = in_turns(ways, rounds, clock=time.process_time)
    times["loop"] = [each * images / len(few) for each in times["loop"]]
    read, places = len(Prefixes.of(captions).read), sum(len(caption) - 1 for caption in captions)
    whole = median(times["ours"]) / (read * images) * WHOLE / 60
    race = Race(
        f"likelihood of {images} pictures x {len(captions)} captions, {name}",
        times["ours"],
        "s of the processor",
        against="bare matrix products",
        theirs=times["bare"],
        told=Told.LONG,
        aim=AIM,
        note=f"{operations:,.0f} GFLOP; {read:,} of {places:,} places stand behind different words; "
        f"1,000 pictures x 5,000 captions of Flickr8k would take {whole:.0f} minutes",
    )
    yield race
    for way, against in (("groups", "captions of one length together"), ("loop", "pair by pair")):
        yield replace(race, against=against, theirs=times[way], told=Told.FAST, aim=None, note="")


def races(*, rounds: int = ROUNDS, images: int = IMAGES, count: int = CAPTIONS) -> Iterator[Race]:
    """Both captioners, each in all ways."""
    with threads(int(os.environ.get("OMP_NUM_THREADS", 1))):
        text = load_captioner(find_captioner("default")).captioner.text
        assert isinstance(text, WordText)
        captions = read_captions(text, count)
        for name, preset in (("mrnn", ""), ("adaptive", "small")):  # untrained: it takes as long
            config = CAPTIONERS.get(name).configure({}, preset=preset)
            captioner = build_captioner(name, config, text=text, traits=TRAITS).eval()
            yield from race_ways(
                f"{name} {preset}".strip(), captioner, captions, images=images, rounds=rounds
            )


def main() -> None:
    """Race both captioners."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--images", type=int, default=IMAGES)
    parser.add_argument("--captions", type=int, default=CAPTIONS)
    wanted = parser.parse_args()
    print(machine())
    for race in races(rounds=wanted.rounds, images=wanted.images, count=wanted.captions):
        print(race, flush=True)


if __name__ == "__main__":
    main()
