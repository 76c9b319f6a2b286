"""A trained captioner on a split of its data: perplexity, and its own captions for others to score."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tellapart.captioning import CHUNK, Captioned, describe_corpus, load
from tellapart.corpus import Watch, build_corpus
from tellapart.errors import TellapartError
from tellapart.fit import Fit, measure_fit
from tellapart.recipe import Recipe, load_recipe
from tellapart.run import Run
from tellapart.sources import read_examples, split_of
from tellapart.storage import new_file, write_text
from tellapart.vision.features import in_order


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What came out."""

    split: str
    images: int
    captions: int
    vocabulary: int
    fit: Fit
    length_penalty: float  # of the beam that wrote the captions
    predictions: Path

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "split": self.split,
            "images": self.images,
            "captions": self.captions,
            "vocabulary": self.vocabulary,
            **self.fit.to_json(),
            "length_penalty": self.length_penalty,
            "predictions": str(self.predictions),
        }


def evaluate_run(
    folder: Path,
    *,
    split: str,
    width: int | None,
    watch: Watch,
    recipe: Recipe | None = None,
    length_penalty: float | None = None,
) -> Evaluation:
    """Measure the fit to a split's captions, and caption its images.

    Args:
        folder: of a run, or of any captioner where a recipe is given.
        split: of the data.
        width: of the beam; the captioner's own if None.
        watch: told how far it is.
        recipe: whose data it is; the run's own if None.
        length_penalty: of the beam; the captioner's own if None.
    """
    run = Run(folder)
    recipe = recipe or _own_recipe(run)
    describer = load(folder)
    saved = describer.saved
    everything = read_examples(recipe.data, seed=recipe.seed)
    both = [example for example in everything if example.pictured and example.captions]
    examples = split_of(both, split)
    corpus = build_corpus(
        examples,
        text=saved.captioner.text,
        rules=recipe.data.rules(),
        encoder=describer.encoder,
        parts=in_order(saved.captioner.needs),
        watch=watch,
    )
    fit = measure_fit(saved.captioner, corpus, images_per_batch=CHUNK)
    wish = describer.wish(width=width, length_penalty=length_penalty)
    path = run.predictions(split, width=wish.width)
    with new_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        found = describe_corpus(saved, corpus, wish, watch=watch)
        for example, candidates in zip(examples, found, strict=True):
            line = Captioned(example.path, example.image_id, candidates).to_json(model=str(folder))
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    captions = sum(len(example.captions) for example in examples)
    result = Evaluation(
        split, len(examples), captions, len(saved.captioner.text), fit, wish.length_penalty, path
    )
    write_text(run.evaluation(split, width=wish.width), json.dumps(result.to_json(), indent=2) + "\n")
    return result


def _own_recipe(run: Run) -> Recipe:
    if not run.recipe.exists():
        raise TellapartError(
            f"{run.folder}: no run here",
            hint="name a folder that 'tellapart train' wrote, or say with --recipe whose data to measure on",
        )
    return load_recipe(str(run.recipe)).located(run.stages)
