"""How well the words of captions can be told from what an encoder sees of a photograph.

    TELLAPART_DATA=DATA python -m benchmarks.words_seen efficientnet-lite2 tuned:runs/eyes

For each encoder a linear classifier of its pooled feature learns the words of the photographs that the recipe
`eyes` trains on, from whole pictures. Printed is the average precision of words (the pictures of a split in
the order of how likely the word is), the mean over the words that at least five pictures of the split hold;
of colours; and the share of the ten likeliest words that people said. Flickr8k's dev split, and the 500
photographs of COCO that nothing is trained on.
"""

from __future__ import annotations

import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from tellapart.arrays import Float, Float32
from tellapart.corpus import look_at_all
from tellapart.data.examples import Example
from tellapart.encoder_learner import SURE, mean_precision, tuned_words, word_layer, word_shares
from tellapart.recipe import EncoderRecipe, load_experiment
from tellapart.sources import HELD_OUT, read_sources
from tellapart.storage import cache_folder
from tellapart.vision.cache import FeatureCache
from tellapart.vision.parts import load_encoder

COLOURS = ("black", "blue", "brown", "gray", "green", "orange", "pink", "purple", "red", "white", "yellow")
EPOCHS, BATCH, DROPOUT, TOP, LEAST = 12, 128, 0.3, 10, 5


def features(encoder_name: str, examples: list[Example]) -> Float[torch.Tensor, "n p"]:
    """The pooled feature of each picture."""
    encoder = load_encoder(encoder_name)
    cache = FeatureCache(cache_folder(), encoder)
    digests = look_at_all(examples, encoder, parts=("pooled",), cache=cache, watch=lambda done, total: None)
    return torch.from_numpy(cache.read(digests, ("pooled",)).pooled.astype(np.float32))


def learn(seen: Float[torch.Tensor, "n p"], shares: Float[torch.Tensor, "n v"]) -> nn.Linear:
    """A classifier of words."""
    torch.manual_seed(0)
    classifier = word_layer(seen.size(1), shares.mean(0))
    optimiser = torch.optim.AdamW(classifier.parameters(), lr=1e-3)
    for epoch in range(EPOCHS):
        optimiser.param_groups[0]["lr"] = 1e-3 * (1 - epoch / EPOCHS)
        order = torch.randperm(len(seen))
        for at in range(0, len(order), BATCH):
            rows = order[at : at + BATCH]
            logits = classifier(functional.dropout(seen[rows], DROPOUT))
            told = functional.binary_cross_entropy_with_logits(logits, shares[rows], reduction="none")
            optimiser.zero_grad()
            told.sum(1).mean().backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    return classifier


def line(logits: Float32[np.ndarray, "n v"], shares: Float32[np.ndarray, "n v"], known: list[str]) -> str:
    """The figures of one split."""
    right = shares >= SURE
    often = right.sum(0) >= LEAST
    colours = np.array([word in COLOURS for word in known]) & often
    likeliest = np.argsort(-logits, axis=1)[:, :TOP]
    said = np.take_along_axis(shares > 0, likeliest, axis=1).mean()
    words = mean_precision(logits[:, often], right[:, often])
    return (
        f"{words:.3f} of {often.sum()} words, {mean_precision(logits[:, colours], right[:, colours]):.3f} of "
        f"{colours.sum()} colours, {said:.1%} of the {TOP} likeliest words were said"
    )


def main() -> None:
    """Print a line for each encoder and split."""
    recipe = load_experiment("eyes")
    assert isinstance(recipe, EncoderRecipe)
    sources = read_sources(recipe.data, seed=recipe.seed)
    train = [example for source in sources for example in source.split("train").examples]
    measured = {
        "Flickr8k dev": sources[0].split("val").examples,
        "COCO held out": sources[1].split(HELD_OUT).examples,
    }
    rules = recipe.data.rules()
    known = tuned_words(train, rules, min_images=recipe.tuning.min_images)
    for name in sys.argv[1:]:
        classifier = learn(features(name, train), torch.from_numpy(word_shares(train, known, rules)))
        for split, examples in measured.items():
            with torch.inference_mode():
                logits = classifier(features(name, list(examples))).numpy()
            print(f"{name}, {split}: {line(logits, word_shares(examples, known, rules), known)}", flush=True)


if __name__ == "__main__":
    main()
