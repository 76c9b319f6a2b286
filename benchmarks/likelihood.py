"""How fast log p(c|I) of all pairs is: against its bare matrix products, and against simpler ways.

    python -m benchmarks.likelihood [--rounds 3] [--images 50] [--captions 250]

Takes the first captions of Flickr8k's test split where TELLAPART_DATA names their folder, else captions of
random words, which share no beginnings; the m-RNN that ships and an untrained LSTM with attention (adaptive,
small); random features. Prints, for each captioner,
- ours: seconds of `score_pairs`, reading the captions included;
- bare: the matrix products of the same work, run by themselves;
- groups: `predict` for each picture and 64 MB of logits at a time, captions of one length together;
- loop: `predict` for each pair, of a tenth of the pictures, times ten;
and what the m-RNN would take for 1,000 pictures and 5,000 captions.
Seconds are those of the processor, all cores together, so that others on the machine count less; on one core
unless OMP_NUM_THREADS says more. Competitors take turns, of which the first is not counted; a figure is the
median of the rounds with their range behind it. Read the ratios.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

import numpy as np
import torch

from benchmarks.captioner_worker import make_up_vision
from benchmarks.captioners import ratios, spread
from benchmarks.matrix_products import Products
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


def in_turns(ways: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Processor seconds of each in each round, after one that is not counted."""
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds + 1):
        for way, work in ways.items():
            started = time.process_time()
            work()
            times[way].append(time.process_time() - started)
    return {way: seconds[1:] for way, seconds in times.items()}


def race(name: str, captioner: AnyCaptioner, captions: Captions, *, images: int, rounds: int) -> float:
    """All ways in turns; seconds of ours."""
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

    times = in_turns(
        {
            "ours": lambda: score_pairs(captioner, [vision], captions),
            "bare": bare,
            "groups": groups,
            "loop": loop,
        },
        rounds,
    )
    times["loop"] = [each * images / len(few) for each in times["loop"]]
    prefixes = Prefixes.of(captions)
    places = sum(len(caption) - 1 for caption in captions)
    print(
        f"\n{name}: {images} pictures x {len(captions)} captions; {len(prefixes.read):,} of {places:,} places"
    )
    print(f"stand behind different words; matrix products of {operations:,.0f} thousand million operations")
    for way, seconds in times.items():
        print(f"  {way:8}{spread(seconds, '.2f'):>24} s")
    print(f"  ours / bare    {ratios(times['ours'], times['bare'])}")
    print(f"  groups / ours  {ratios(times['groups'], times['ours'])}")
    print(f"  loop / ours    {ratios(times['loop'], times['ours'])}")
    return median(times["ours"]) / (len(prefixes.read) * images)


def main() -> None:
    """Race both captioners."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--images", type=int, default=50)
    parser.add_argument("--captions", type=int, default=250)
    wanted = parser.parse_args()
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
    mrnn = load_captioner(find_captioner("default")).captioner
    text = mrnn.text
    assert isinstance(text, WordText)
    captions = read_captions(text, wanted.captions)
    each = race("m-RNN", mrnn, captions, images=wanted.images, rounds=wanted.rounds)
    print(f"  so 1,000 pictures x 5,000 captions of Flickr8k take {each * WHOLE / 60:.0f} minutes of a core")
    part = CAPTIONERS.get("adaptive")
    adaptive = build_captioner(
        "adaptive", part.configure({}, preset="small"), text=text, traits=TRAITS
    ).eval()
    race("adaptive, small", adaptive, captions, images=wanted.images, rounds=wanted.rounds)


if __name__ == "__main__":
    main()
