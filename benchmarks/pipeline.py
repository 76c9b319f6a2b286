"""How fast and how lean the way from photographs to captions is.

    TELLAPART_DATA=DATA python -m benchmarks.pipeline [--images 400] [--rounds 3]

Prints, measured in one run with the competitors interleaved:
- encoding end to end (reading, decoding, resizing, network) against onnxruntime alone on ready pixels;
- greedy captions of an m-RNN, milliseconds a sentence on one core;
- training tokens a second, against the bare matrix products of the same step;
- peak memory of captioning 250 and 1,000 photographs.
Times on shared machines mean little alone: read the ratios.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import onnxruntime
import torch

from benchmarks.machine import machine
from benchmarks.peak import watch
from benchmarks.race import Race, Told
from benchmarks.real_data import all_photographs, linked
from benchmarks.turns import in_turns, milliseconds, seconds, threads
from tellapart.captioner_learner import CaptionerLearner
from tellapart.captioners.folder import build_captioner
from tellapart.captioners.parts import CAPTIONERS
from tellapart.captioning import load
from tellapart.corpus import as_vision
from tellapart.data.images import read_picture
from tellapart.data.word_text import WordText
from tellapart.decoding.search import greedy
from tellapart.preparation import prepare
from tellapart.recipe import load_recipe
from tellapart.stepping import Moment, build_optimiser, take_step
from tellapart.storage import cache_folder
from tellapart.types import Batch
from tellapart.vision.efficientnet import EfficientNetLite
from tellapart.vision.encoder import traits_of
from tellapart.vision.features import PARTS, stack
from tellapart.vision.looking import Seen, look
from tellapart.vision.parts import load_encoder

IMAGES, ROUNDS, STEPS = 400, 3, 30
SENTENCES = 200
CAPTIONED = 250, 1000
OF_BARE = 0.9  # times as fast as bare onnxruntime, at least
A_CAPTION = 5  # milliseconds, to stay below
WORDS = 10  # of a caption at the most


def races(
    *,
    images: int = IMAGES,
    rounds: int = ROUNDS,
    steps: int = STEPS,
    sentences: int = SENTENCES,
    captioned: tuple[int, int] = CAPTIONED,
) -> Iterator[Race]:
    """All of it, in order."""
    photos = all_photographs()
    yield from encoding(photos[:images], rounds)
    yield greedy_captions(photos[:sentences])
    yield training(steps)
    yield memory(photos, captioned)


def encoding(photos: Sequence[Path], rounds: int) -> Iterator[Race]:
    """Ours end to end against onnxruntime that finds its pixels ready in memory."""
    encoder = load_encoder("efficientnet-lite2")
    assert isinstance(encoder, EfficientNetLite)
    pixels = [encoder.prepare(read_picture(photo, at_least=encoder.size))[None] for photo in photos]
    exported = cache_folder() / "encoders" / f"{encoder.identity}.onnx"
    both_cores = onnxruntime.InferenceSession(str(exported), providers=["CPUExecutionProvider"])

    def plain_loop() -> None:
        for picture in pixels:
            both_cores.run(None, {"pixels": picture})

    def call_a_core() -> None:
        with ThreadPoolExecutor(encoder.threads) as pool:
            list(pool.map(lambda picture: encoder.session.run(None, {"pixels": picture}), pixels))

    def ours() -> None:
        for _ in look(photos, encoder, parts=PARTS, cache=None):
            pass

    works = {"plain loop": plain_loop, "one call a core": call_a_core, "ours": ours}
    times = {name: milliseconds(took, len(photos)) for name, took in in_turns(works, rounds).items()}
    for name in ("plain loop", "one call a core"):
        yield Race(
            f"encoding of {len(photos):,} photographs, {encoder.name}",
            times["ours"],
            "ms an image",
            against=f"onnxruntime on ready pixels, {name}",
            theirs=times[name],
            aim=OF_BARE,
            note=f"{1000 / statistics.median(times['ours']):.1f} images/s",
        )


def greedy_captions(photos: Sequence[Path]) -> Race:
    """An m-RNN on one core, one image at a time, features at hand; untrained, it takes as long."""
    describer = load("default", cached=False)
    text = describer.saved.captioner.text
    assert isinstance(text, WordText)
    config = CAPTIONERS.get("mrnn").configure({})
    captioner = build_captioner("mrnn", config, text=text, traits=traits_of(describer.encoder)).eval()
    parts = [part for part in PARTS if part in captioner.needs]
    seen = [one for one in look(photos, describer.encoder, parts=parts, cache=None) if isinstance(one, Seen)]
    visions = [as_vision(stack([one.features])) for one in seen]
    ours, bare = [], []
    with threads(1):
        for vision in visions:
            started = time.perf_counter()
            decoded = greedy(captioner, vision, max_words=WORDS)
            ours.append(time.perf_counter() - started)
            bare.append(seconds(partial(products_of_words, captioner, decoded.tokens.size(2))))
        together = as_vision(stack([one.features for one in seen]))
        at_once = seconds(partial(greedy, captioner, together, max_words=WORDS)) / len(seen)
    return Race(
        f"greedy captions of {WORDS} words at the most by an m-RNN, one core",
        milliseconds(ours),
        "ms a caption",
        against="bare matrix products",
        theirs=milliseconds(bare),
        told=Told.LONG,
        ceiling=A_CAPTION,
        note=f"fastest {1000 * min(ours):.2f}, {len(seen)} at once {1000 * at_once:.2f} (paper: 25)",
    )


def products_of_words(captioner: torch.nn.Module, words: int) -> None:
    """The products of a caption of so many words: the image's once, all others at every word."""
    matrices = dict(captioner.named_parameters())
    with torch.no_grad():
        for name, weight in matrices.items():
            if weight.dim() == 2 and name != "embedding_one.weight":
                row = torch.ones(1, weight.size(1))
                for _ in range(1 if name == "from_image.weight" else words):
                    torch.mm(row, weight.T)


def training(steps: int) -> Race:
    """Steps of the Flickr8k recipe against the matrix products that no implementation could leave out."""
    recipe = load_recipe("mrnn-flickr8k")
    learner = CaptionerLearner(recipe, prepare(recipe, watch=lambda done, total: None))
    step = learner.step.train()
    optimiser = build_optimiser(recipe.optimiser, learner.network)
    batches = [learner.batch(number) for number in range(steps)]
    ours, bare = [], []
    for number, batch in enumerate(batches):
        ours.append(seconds(partial(take_step, step, optimiser, [batch], recipe, Moment(number, steps))))
        bare.append(seconds(products_of(batch, learner.network)))
    tokens = sum(map(learner.tokens, range(steps)))
    places = sum(batch.tokens[:, :, 1:].numel() for batch in batches)
    return Race(
        f"training of the m-RNN on Flickr8k, {recipe.training.images_per_batch} images a step",
        milliseconds(ours),
        "ms a step",
        against="bare matrix products",
        theirs=milliseconds(bare),
        told=Told.LONG,
        note=f"{steps} steps, {tokens / sum(ours):,.0f} tokens/s; places filled: {tokens / places:.0%}",
    )


def products_of(batch: Batch, captioner: torch.nn.Module) -> Callable[[], None]:
    """Forward and both backward products of every weight matrix, at the sizes of a batch."""
    images, captions, length = batch.tokens[:, :, 1:].shape
    jobs = []
    for name, weight in captioner.named_parameters():
        if weight.dim() == 2 and name != "embedding_one.weight":
            rows = images if name == "from_image.weight" else images * captions * length
            jobs.append((torch.rand(rows, weight.size(1)), torch.rand(rows, weight.size(0)), weight.detach()))

    def multiply() -> None:
        for inputs, gradients, weight in jobs:
            torch.mm(inputs, weight.T)
            torch.mm(gradients, weight)
            torch.mm(gradients.T, inputs)

    return multiply


def memory(photos: Sequence[Path], captioned: tuple[int, int]) -> Race:
    """Peak resident memory of `tellapart caption` for many photographs, against that for few."""
    peaks = []
    for count in captioned:
        with linked(photos[:count]) as folder:
            watched = watch("-m", "tellapart", "caption", str(folder), "--no-cache")
        assert len(watched.printed.splitlines()) == count
        peaks.append(watched.peak)
    few, many = captioned
    return Race(
        f"memory of captioning {many:,} photographs",
        peaks[1:],
        "MiB",
        against=f"ours with {few:,}",
        theirs=peaks[:1],
        told=Told.MUCH,
    )


def main() -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=IMAGES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--steps", type=int, default=STEPS)
    arguments = parser.parse_args()
    print(machine())
    for race in races(images=arguments.images, rounds=arguments.rounds, steps=arguments.steps):
        print(race, flush=True)


if __name__ == "__main__":
    main()
