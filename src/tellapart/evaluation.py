"""A trained captioner on a split of its data: perplexity, and its own captions for others to score."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tellapart.captioning import Captioned, Wish, describe, load
from tellapart.corpus import Corpus, Watch, build_corpus, read_examples, split_of
from tellapart.errors import TellapartError
from tellapart.fit import Fit, measure_fit
from tellapart.recipe import load_recipe
from tellapart.run import Run
from tellapart.storage import new_file
from tellapart.vision.encoder import in_order

TOGETHER = 64  # images a batch


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What came out."""

    split: str
    images: int
    captions: int
    vocabulary: int
    fit: Fit
    predictions: Path

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "split": self.split,
            "images": self.images,
            "captions": self.captions,
            "vocabulary": self.vocabulary,
            **self.fit.to_json(),
            "predictions": str(self.predictions),
        }


def evaluate_run(folder: Path, *, split: str, width: int | None, watch: Watch) -> Evaluation:
    """Measure the fit to a split's captions, and caption its images."""
    run = Run(folder)
    if not run.recipe.exists():
        raise TellapartError(f"{folder}: no run here", hint="name a folder that 'tellapart train' wrote")
    recipe = load_recipe(str(run.recipe))
    describer = load(folder)
    saved = describer.saved
    examples = split_of(read_examples(recipe.data, seed=recipe.seed), split)
    corpus = build_corpus(
        examples,
        vocabulary=saved.captioner.vocabulary,
        rules=saved.settings.text,
        encoder=describer.encoder,
        parts=in_order(saved.captioner.needs),
        watch=watch,
    )
    fit = measure_fit(saved.captioner, corpus, images_per_batch=TOGETHER)
    wish = Wish(width or saved.settings.width, saved.settings.max_words)
    path = run.predictions(split, width=wish.width)
    with new_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for rows in _chunks(corpus, watch):
            found = describe(saved, corpus.vision(rows), wish)
            for row, candidates in zip(rows, found, strict=True):
                example = corpus.examples[row]
                line = Captioned(example.path, example.image_id, candidates).to_json(model=str(folder))
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
    captions = sum(len(example.captions) for example in examples)
    return Evaluation(split, len(examples), captions, len(saved.captioner.vocabulary), fit, path)


def _chunks(corpus: Corpus, watch: Watch) -> Iterator[Sequence[int]]:
    count = len(corpus.examples)
    for first in range(0, count, TOGETHER):
        yield range(first, min(first + TOGETHER, count))
        watch(min(first + TOGETHER, count), count)
