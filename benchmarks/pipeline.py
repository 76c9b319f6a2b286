"""How fast and how lean the way from photographs to captions is.

    TELLAPART_DATA=DATA python -m benchmarks.pipeline [--images 400] [--rounds 3]

Prints, measured in one run with the competitors interleaved:
- encoding end to end (reading, decoding, resizing, network) against onnxruntime alone on ready pixels;
- greedy captions of the default captioner, milliseconds a sentence on one core;
- training tokens a second, against the bare matrix products of the same step;
- peak memory of captioning 250 and 1,000 photographs.
Times on shared machines mean little alone: read the ratios.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import onnxruntime
import torch

from tellapart.captioner_learner import CaptionerLearner
from tellapart.captioning import load
from tellapart.corpus import as_vision
from tellapart.data.images import read_picture
from tellapart.decoding.search import greedy
from tellapart.preparation import prepare
from tellapart.recipe import load_recipe
from tellapart.stepping import Moment, build_optimiser, take_step
from tellapart.storage import cache_folder
from tellapart.types import Batch
from tellapart.vision.efficientnet import EfficientNetLite
from tellapart.vision.features import PARTS, stack
from tellapart.vision.looking import Seen, look
from tellapart.vision.parts import load_encoder


def seconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def interleaved(works: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of each, taken in turns so that a busy neighbour slows all alike."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            times[name].append(seconds(work))
    return {name: statistics.median(some) for name, some in times.items()}


def encoding(photos: Sequence[Path], rounds: int) -> None:
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
    times = interleaved(works, rounds)
    print(f"\nEncoding {len(photos)} photographs with {encoder.name}, images/s:")
    for name, took in times.items():
        print(f"  {name:<18} {len(photos) / took:7.1f}   ours/this {took / times['ours']:.2f}")


def greedy_captions(photos: Sequence[Path]) -> None:
    """The default captioner on one core, one image at a time, features at hand (the paper: 25 ms)."""
    describer = load("default", cached=False)
    captioner, settings = describer.saved.captioner, describer.saved.settings
    parts = [part for part in PARTS if part in captioner.needs]
    seen = [one for one in look(photos, describer.encoder, parts=parts, cache=None) if isinstance(one, Seen)]
    visions = [as_vision(stack([one.features])) for one in seen]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    ours, bare = [], []
    for vision in visions:
        started = time.perf_counter()
        decoded = greedy(captioner, vision, max_words=settings.max_words)
        ours.append(1000 * (time.perf_counter() - started))
        bare.append(1000 * seconds(partial(products_of_words, captioner, decoded.tokens.size(2))))
    together = as_vision(stack([one.features for one in seen]))
    at_once = 1000 * seconds(partial(greedy, captioner, together, max_words=settings.max_words)) / len(seen)
    torch.set_num_threads(threads)
    print("\nGreedy captions on one core, milliseconds a sentence:")
    print(f"  median {statistics.median(ours):.2f}, fastest {min(ours):.2f} (paper: 25);")
    print(f"  {sum(ours) / sum(bare):.2f} times its bare matrix products ({statistics.median(bare):.2f});")
    print(f"  {len(seen)} images at once: {at_once:.2f}")


def products_of_words(captioner: torch.nn.Module, words: int) -> None:
    """The products of a caption of so many words: the image's once, all others at every word."""
    matrices = dict(captioner.named_parameters())
    with torch.no_grad():
        for name, weight in matrices.items():
            if weight.dim() == 2 and name != "embedding_one.weight":
                row = torch.ones(1, weight.size(1))
                for _ in range(1 if name == "from_image.weight" else words):
                    torch.mm(row, weight.T)


def training(steps: int) -> None:
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
    print(f"\nTraining m-RNN on Flickr8k, {steps} steps of {recipe.training.images_per_batch} images:")
    print(f"  {tokens / sum(ours):,.0f} tokens/s; bare matrix products {tokens / sum(bare):,.0f} tokens/s;")
    print(
        f"  a step takes {sum(ours) / sum(bare):.2f} times its products; places filled: {tokens / places:.0%}"
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


def memory(photos: Sequence[Path]) -> None:
    """Peak resident memory of `tellapart caption`, as the operating system counts it."""
    print("\nPeak memory of tellapart caption:")
    for count in (250, 1000):
        with tempfile.TemporaryDirectory() as folder:
            for photo in photos[:count]:
                (Path(folder) / photo.name).symlink_to(photo)
            command = [sys.executable, "-m", "tellapart", "caption", folder, "--no-cache"]
            watched = subprocess.run(
                [sys.executable, "-m", "benchmarks.peak", *command],
                capture_output=True,
                text=True,
                check=True,
            )
        lines, peak = watched.stdout.splitlines(), watched.stderr.splitlines()[-1]
        print(f"  {len(lines):>5} captions: {int(peak) / 1024:.0f} MiB")


def main() -> None:
    """Run all of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=30)
    arguments = parser.parse_args()
    folder = Path(os.environ["TELLAPART_DATA"]) / "flickr8k" / "images"
    photos = sorted(folder.iterdir())
    print(f"{os.cpu_count()} cores, torch {torch.__version__}, onnxruntime {onnxruntime.__version__}")
    encoding(photos[: arguments.images], arguments.rounds)
    greedy_captions(photos[:200])
    training(arguments.steps)
    memory(photos)


if __name__ == "__main__":
    main()
