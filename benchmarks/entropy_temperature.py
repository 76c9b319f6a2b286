"""At which temperature does a retriever mean what it says?

p_r(x|y), the softmax of cosines over a pool (UNKT, Eq. 3), is a probability only where the temperature makes
it one: there the surprise at the own picture is least, and the entropy is about that surprise. Beside it is
how well the entropy of a caption tells the rank of its own picture (Kendall's tau-b).

TELLAPART_DATA=DATA python -m benchmarks.entropy_temperature [--split val] [--retriever judge …]
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
from scipy.stats import kendalltau

from tellapart.data.readers import read_dataset
from tellapart.retrievers.entropy import softmax_entropy
from tellapart.retrievers.loading import SHIPPED, load_retriever

TEMPERATURES = (0.01, 0.02, 0.03, 0.05, 0.06, 0.07, 0.08, 0.1, 0.15)


def measure(name: str, split: str) -> None:
    """Print a table of one retriever."""
    flickr = Path(os.environ["TELLAPART_DATA"]) / "flickr8k"
    reading = read_dataset(flickr / "captions.txt", images=flickr / "images")
    examples = [example for example in reading.examples if example.split == split]
    retriever = load_retriever(name)
    pictures = retriever.embed_images([example.path for example in examples])
    sentences = retriever.embed_texts([text for example in examples for text in example.captions])
    own = np.repeat(np.arange(len(examples)), [len(example.captions) for example in examples])
    scores = (sentences @ pictures.T).astype(np.float64)
    of_own = np.take_along_axis(scores, own[:, None], axis=1)
    ranks = (scores > of_own).sum(axis=1)
    print(f"\n{retriever.name}: {len(own):,} captions, {len(examples):,} pictures of {split}; in nats")
    print("temperature  surprise at the own picture  entropy  tau-b of entropy and rank")
    for temperature in TEMPERATURES:
        entropies = softmax_entropy(scores, temperature=temperature, top_n=None)
        logits = (scores - of_own) / temperature
        surprise = np.logaddexp.reduce(logits, axis=1).mean()
        tau = kendalltau(entropies, ranks).statistic
        print(f"{temperature:11.2f}  {surprise:27.2f}  {entropies.mean():7.2f}  {tau:25.2f}")


def main() -> None:
    """Each retriever."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--split", default="val")
    parser.add_argument("--retriever", nargs="+", default=list(SHIPPED))
    arguments = parser.parse_args()
    for name in arguments.retriever:
        measure(name, arguments.split)


if __name__ == "__main__":
    main()
