"""How fast and how lean captioners are: to write, to train, and against transformers' own `generate`.

    python -m benchmarks.captioners [--rounds 3] [--parts speed grouped blip products] [--only NAME …]

Needs no data: weights and features are random, the vocabulary has 10,000 words. Prints
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
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from benchmarks.captioner_worker import (
    CAPTIONS,
    IMAGES,
    TOKENS,
    Unending,
    build,
    make_up_batch,
    make_up_vision,
    repeat_images,
    trainer,
    use_two_cores,
)
from benchmarks.matrix_products import Products
from tellapart.captioners.parts import CAPTIONERS
from tellapart.captioners.size import TRAITS
from tellapart.decoding.search import beam, greedy
from tellapart.errors import TellapartError
from tellapart.foreign.smollm2 import find_gguf
from tellapart.types import AnyCaptioner, Vision
from tellapart.vision.parts import load_encoder
from tellapart.vision.traits import EncoderTraits

LENGTH = 12  # words of every caption
WIDTH = 5  # of the beam
BATCHES = (1, 64)
BLIP_BATCHES = (1, 8)
ENOUGH = 8.0  # seconds: who took so long is not asked for another round
ATTENTION = ("adaptive", "topdown", "transformer", "meshed")
MULTIPLIED = ("transformer", "topdown")

Work = Callable[[], object]


def seconds(work: Work) -> float:
    """Wall time of one call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def in_turns(works: Mapping[str, Work], rounds: int) -> dict[str, list[float]]:
    """Seconds of each in each round, after one call that is not counted; slow ones have fewer rounds."""
    for work in works.values():
        work()
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            times[name].append(seconds(work))
        if max(map(sum, times.values())) > ENOUGH:
            break
    return times


def spread(values: Iterable[float], form: str) -> str:
    """The median and the range."""
    some = sorted(values)
    return f"{median(some):{form}} ({some[0]:{form}}-{some[-1]:{form}})"


def ratios(slow: Sequence[float], fast: Sequence[float]) -> str:
    """How many times faster, round by round."""
    return spread((long / short for long, short in zip(slow, fast, strict=True)), ".2f")


def called(name: str, preset: str) -> str:
    """What a captioner of that preset is called here."""
    return f"{name} {preset or '(paper)'}"


def write(captioner: AnyCaptioner, vision: Vision, width: int) -> Int[Tensor, "b k t"]:
    """Captions of LENGTH words, by a beam of that width or greedily."""
    if width == 1:
        tokens = greedy(captioner, vision, max_words=LENGTH).tokens
    else:
        tokens = beam(captioner, vision, width=width, max_words=LENGTH).tokens
    assert tokens.shape == (len(vision), width, LENGTH + 1)
    return tokens


def built_from_nothing() -> list[tuple[str, str]]:
    """Names and presets of all captioners that need no checkpoint, and the prefix where its model is here."""
    names = [name for name in CAPTIONERS.names() if not CAPTIONERS.get(name).own_text and name != "ensemble"]
    try:
        find_gguf("the visual prefix")
    except TellapartError as error:
        print(f"prefix is left out: {error.problem}")
    else:
        names.append("prefix")
    return [
        (name, preset)
        for name in names
        for preset in ("small", "")
        if preset in ("", *CAPTIONERS.get(name).presets)
    ]


def speed(rounds: int, only: Sequence[str]) -> None:
    """A line a captioner."""
    print(
        f"Captions of {LENGTH} words, milliseconds each; training on {IMAGES} images x {CAPTIONS} captions x"
    )
    print(f"{TOKENS} tokens, tokens/s; and the memory of a process that trains, of which")
    print(f"{peak([]):.0f} MiB are Python with its libraries.")
    writing = [f"{way} of {batch}" for batch in BATCHES for way in ("greedy", f"beam {WIDTH}")]
    print(f"{'':<36}{'weights':>9}", *(f"{what:>24}" for what in (*writing, "tokens/s")), f"{'MiB':>7}")
    for name, preset in built_from_nothing():
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
        found = in_turns(works, rounds)
        cells += [spread((1000 * each / size for each in times), ".2f") for times in found.values()]
    captioner.text = own
    training = in_turns({"train": partial(train, batch)}, rounds)["train"]
    cells.append(spread((IMAGES * CAPTIONS * TOKENS / each for each in training), ",.0f"))
    weights = sum(parameter.numel() for parameter in captioner.parameters()) / 1e6
    row = " ".join(f"{cell:>24}" for cell in cells)
    return f"{called(name, preset):<36}{weights:>8.1f}M {row} {peak([name, preset]):>7,.0f}"


def peak(job: Sequence[str]) -> float:
    """MiB that a process needs at most for that job of the worker."""
    command = [sys.executable, "-m", "benchmarks.peak", sys.executable, "-m", "benchmarks.captioner_worker"]
    ended = subprocess.run([*command, *job], check=True, capture_output=True, text=True)
    return int(ended.stderr.splitlines()[-1]) / 1024


def grouped(rounds: int, only: Sequence[str]) -> None:
    """Each image once for its captions, or once for each of them; the same captions and weights.

    First with features at hand, as training here has them; then with the time of the default encoder added on
    both sides, once an image or once a caption.
    """
    print(f"\nTraining on {IMAGES} images x {CAPTIONS} captions, against {IMAGES * CAPTIONS} x 1, tokens/s:")
    sight = seconds_an_image() * IMAGES
    for name in ATTENTION:
        for preset in ("small", "") if name in only else ():
            captioner = build(name, preset)
            batch, train = make_up_batch(captioner), trainer(captioner)
            works = {"once": partial(train, batch), "each": partial(train, repeat_images(batch))}
            times = in_turns(works, rounds)
            once, each = (
                f"{IMAGES * CAPTIONS * TOKENS / median(times[way]):>8,.0f}" for way in ("once", "each")
            )
            faster = ratios(times["each"], times["once"])
            seeing = ratios(
                [time + CAPTIONS * sight for time in times["each"]], [time + sight for time in times["once"]]
            )
            print(
                f"  {called(name, preset):<20}{once} against {each}: {faster} times; "
                f"looking at the pictures too {seeing} times",
                flush=True,
            )


def seconds_an_image() -> float:
    """What the default encoder takes for one image, on as many cores as it likes."""
    encoder = load_encoder(TRAITS.name)
    pixels = np.zeros((IMAGES, 3, encoder.size, encoder.size), np.float32)
    return median(in_turns({"look": partial(encoder.encode, pixels)}, 3)["look"]) / IMAGES


def blip(rounds: int, only: Sequence[str]) -> None:
    """The same weights, beams and lengths; from the tower's features on, and with the tower's time added."""
    if "blip" not in only:
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        whole = write_blip(folder)
        part = CAPTIONERS.get("blip")
        config = whole.config.vision_config
        grid = ((config.image_size // config.patch_size) ** 2 + 1, config.hidden_size)
        traits = EncoderTraits(name="tower", identity="tower", shapes={"grid": grid})
        captioner: AnyCaptioner = part.builder()(part.configure({"checkpoint": scratch}), traits=traits)
    captioner.eval().text = Unending(captioner.text)
    print("\nBLIP of the base size, against transformers' generate; seconds from the tower's features on:")
    for batch in BLIP_BATCHES:
        pixels = torch.rand(batch, 3, config.image_size, config.image_size)
        for width in (1, WIDTH):
            compare_blip(captioner, whole, pixels, width, rounds)


def compare_blip(captioner: AnyCaptioner, whole: Any, pixels: Tensor, width: int, rounds: int) -> None:
    """One line."""
    see = torch.no_grad()(partial(whole.vision_model, pixel_values=pixels))
    shown = see().last_hidden_state
    nothing = shown.new_zeros(len(shown), 0)
    ours = partial(write, captioner, Vision(shown, nothing, nothing), width)
    theirs = partial(generate, whole, shown, width)
    same = (ours()[:, 0, :LENGTH] == theirs()[:, 1 : LENGTH + 1]).all(1)
    times = in_turns({"theirs": theirs, "ours": ours, "tower": see}, rounds)
    with_tower = {
        who: [own + tower for own, tower in zip(times[who], times["tower"], strict=True)]
        for who in ("theirs", "ours")
    }
    print(
        f"  {len(pixels)} images, beam {width}: generate {median(times['theirs']):.2f}, "
        f"ours {median(times['ours']):.2f}: {ratios(times['theirs'], times['ours'])} times faster; "
        f"the tower ({median(times['tower']):.2f}) added to both: "
        f"{ratios(with_tower['theirs'], with_tower['ours'])}; {int(same.sum())} captions are the same",
        flush=True,
    )


def generate(whole: Any, shown: Tensor, width: int) -> Tensor:
    """As the library's model calls its text decoder, but that no token ends a caption."""
    ids = whole.config.text_config
    tokens: Tensor = whole.text_decoder.generate(
        input_ids=torch.full((len(shown), 1), ids.bos_token_id),
        encoder_hidden_states=shown,
        encoder_attention_mask=torch.ones(shown.shape[:2], dtype=torch.long),
        num_beams=width,
        max_new_tokens=LENGTH + 1,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=ids.pad_token_id,
    )
    assert tokens.shape == (len(shown), LENGTH + 2)
    return tokens


def write_blip(folder: Path) -> Any:
    """Write a random checkpoint of the library's default sizes, the base model's; gives the model back."""
    transformers, tokenizers = import_module("transformers"), import_module("tokenizers")
    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()  # it warns of a length penalty without a beam
    torch.manual_seed(1)
    config = transformers.BlipConfig()
    ids = config.text_config
    signs = {ids.pad_token_id: "[PAD]", 100: "[UNK]", 101: "[CLS]", ids.sep_token_id: "[SEP]"}
    pieces = {signs.get(place, f"piece{place}"): place for place in range(ids.bos_token_id)}
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer(tokenizers.models.WordPiece(pieces, unk_token="[UNK]")),
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
    )
    whole = transformers.BlipForConditionalGeneration(config).eval()
    # Its beams are then weighed as ours are, by the probability of the whole caption.
    whole.text_decoder.generation_config.update(eos_token_id=None, length_penalty=0.0)
    whole.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    side = config.vision_config.image_size
    size = {"size": {"height": side, "width": side}, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    (folder / "preprocessor_config.json").write_text(json.dumps(size), encoding="utf-8")
    return whole


def products(rounds: int, only: Sequence[str]) -> None:
    """What no implementation could leave out, against the whole step."""
    print("\nA training step against its bare matrix products, in seconds:")
    for name in MULTIPLIED:
        for preset in ("small", "") if name in only else ():
            captioner = build(name, preset)
            batch, train = make_up_batch(captioner), trainer(captioner)
            with Products() as noted:
                train(batch)
            times = in_turns({"step": partial(train, batch), "bare": noted.bare()}, rounds)
            step, bare = (f"{median(times[what]):.2f}" for what in ("step", "bare"))
            print(
                f"  {called(name, preset):<20}{step} against {bare} ({noted.operations():.0f} GFLOP): "
                f"{ratios(times['step'], times['bare'])} times",
                flush=True,
            )


JOBS: Mapping[str, Callable[[int, Sequence[str]], None]] = {
    "speed": speed,
    "grouped": grouped,
    "blip": blip,
    "products": products,
}


def main() -> None:
    """All parts in order."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parts", nargs="+", choices=list(JOBS), default=list(JOBS))
    parser.add_argument(
        "--only", nargs="+", choices=CAPTIONERS.names(), default=CAPTIONERS.names(), metavar="NAME"
    )
    arguments = parser.parse_args()
    use_two_cores()
    print(f"{os.cpu_count()} cores, {torch.get_num_threads()} threads, torch {torch.__version__}")
    for part in arguments.parts:
        JOBS[part](arguments.rounds, arguments.only)


if __name__ == "__main__":
    main()
