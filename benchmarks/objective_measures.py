"""What captioners write of the test photographs of Flickr8k, and all figures of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from tellapart import score
from tellapart.arrays import Float
from tellapart.captioning import Wish, describe_corpus, draw_corpus, load
from tellapart.corpus import build_corpus
from tellapart.data.examples import Example
from tellapart.decoding.sampling import Sampling
from tellapart.judges import judge_by
from tellapart.metrics.parts import RetrievalConfig
from tellapart.metrics.retrieval import rank_scores, ranks
from tellapart.metrics.score import Scores
from tellapart.recipe import Recipe, load_recipe
from tellapart.reproduction.ways import LENGTH_PENALTY
from tellapart.retrievers.loading import load_retriever
from tellapart.sources import read_examples, split_of
from tellapart.vision.features import in_order

SPLIT, WIDTH, SAMPLES, JUDGE = "test", 5, 5, "judge"


@dataclass(frozen=True)
class Captioned:
    """What a captioner wrote: one caption of each photograph, and several drawn by chance."""

    captions: Mapping[str, str]
    drawn: Mapping[str, list[str]]


def measure(captioner: str, name: str) -> Scores:
    """All figures of a captioner on the test photographs of that recipe; a run keeps its captions."""
    recipe = load_recipe(name)
    examples = read_examples(recipe.data, seed=recipe.seed)
    shown = split_of(examples, SPLIT)
    kept = Path(captioner) / "predictions" / "objectives.json"
    if kept.exists():
        found = Captioned(**json.loads(kept.read_text(encoding="utf-8")))
    else:
        found = write_captions(captioner, shown, recipe)
        if Path(captioner).is_dir():
            kept.parent.mkdir(exist_ok=True)
            text = json.dumps({"captions": dict(found.captions), "drawn": dict(found.drawn)})
            kept.write_text(text, encoding="utf-8")
    return scores_of(found, shown, [list(some.captions) for some in split_of(examples, "train")])


@torch.inference_mode()
def write_captions(captioner: str, shown: Sequence[Example], recipe: Recipe) -> Captioned:
    """By a beam, and by chance."""
    describer = load(captioner)
    saved = describer.saved
    corpus = build_corpus(
        shown,
        text=saved.captioner.text,
        rules=recipe.data.rules(),
        encoder=describer.encoder,
        parts=in_order(saved.captioner.needs),
        watch=lambda done, total: None,
    )
    names, unwatched = [some.image_id for some in shown], lambda done, total: None
    wish = Wish(WIDTH, saved.settings.max_words, length_penalty=LENGTH_PENALTY)
    best = describe_corpus(saved, corpus, wish, watch=unwatched)
    chance = draw_corpus(saved, corpus, Sampling(SAMPLES), seed=1, watch=unwatched)
    return Captioned(
        {name: one[0].caption for name, one in zip(names, best, strict=True)},
        dict(zip(names, chance, strict=True)),
    )


def scores_of(found: Captioned, shown: Sequence[Example], train: Sequence[Sequence[str]]) -> Scores:
    """Accuracy, diversity, self-retrieval and unsupported detail."""
    judge = judge_by(load_retriever(JUDGE))
    matrix = judge.score([found.captions[some.image_id] for some in shown], [some.path for some in shown])
    scores = caption_scores(found.captions, shown, train, matrix=matrix, judge=judge.identity)
    within = score(found.drawn, _references(shown), metrics=["sets"])
    assert scores.ids == within.ids
    return Scores(scores.ids, {**scores.parts, **within.parts}, {})


def caption_scores(
    captions: Mapping[str, str],
    shown: Sequence[Example],
    train: Sequence[Sequence[str]],
    *,
    matrix: Float[np.ndarray, "captions pictures"],
    judge: str,
) -> Scores:
    """The same of one caption a photograph; the matrix is the judge's of all captions and photographs."""
    accuracy = ["bleu", "rouge", "cider", "meteor", "diversity", "detail"]
    scores = score(captions, _references(shown), metrics=accuracy, train=train)
    places = ranks(matrix, np.arange(len(shown)))
    ranked = rank_scores(places, RetrievalConfig(), pool=len(shown), retriever=judge)
    assert scores.ids == tuple(some.image_id for some in shown)
    return Scores(scores.ids, {**scores.parts, **{one.name: one for one in ranked}}, {})


def _references(shown: Sequence[Example]) -> dict[str, list[str]]:
    return {some.image_id: list(some.captions) for some in shown}
