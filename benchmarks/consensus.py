"""What reranking by consensus does for the captioner that ships, or for another, on Flickr8k.

    TELLAPART_DATA=DATA python -m benchmarks.consensus [FOLDER] [--split val|test] [--look] [--sets]

Prints a table: plain beams, consensus reranking of the 10 captions of a beam (m-RNN, section 8) by BLEU, by
CIDEr and by what its authors' code calls BLEU, with neighbours by pooled (of an m-RNN, refined too) feature;
captions that neighbours have (Devlin et al. 2015); and oracles. Settings are the paper's: 60 neighbours, the
175 (BLEU) or 125 (CIDEr) most similar captions. Recalls and ranks are those of the own picture among all of
the split, by `judge`. Then come the differences in CIDEr-D and R@1 from the plain beam of 5 with their
intervals (95 %), and the processor's seconds that choosing took.

--look prints CIDEr-D over other numbers of neighbours and captions instead, on val only.
--sets prints the diversity of 5 of 20 samples instead: the first, the best by consensus (UNKT, Table 2), and
the best that are unlike each other.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.objective_measures import JUDGE, WIDTH, caption_scores
from benchmarks.objective_table import number
from tellapart import score
from tellapart.captioning import Describer, describe_corpus, draw_corpus, load
from tellapart.comparison import compare
from tellapart.consensus import (
    Consensus,
    Reranked,
    best_sets,
    caption_by_neighbours,
    rerank_by_consensus,
    rerank_by_oracle,
    unlike_sets,
)
from tellapart.corpus import Corpus, build_corpus
from tellapart.data.examples import Example
from tellapart.decoding.sampling import Sampling
from tellapart.errors import TellapartError
from tellapart.metrics.score import Scores
from tellapart.picture_pools import Pictures
from tellapart.recipe import load_recipe
from tellapart.retrievers.distinct import dot_products
from tellapart.retrievers.loading import load_retriever
from tellapart.retrievers.retriever import Retriever
from tellapart.sources import read_examples, split_of
from tellapart.training_neighbours import Refines, Sight, TrainingSet, gather_training_set, refined_sight
from tellapart.vision.features import in_order

RECIPE = "mrnn-flickr8k"
HYPOTHESES, SAMPLES = 10, 20
POOLED, REFINED = "pooled", "refined"
CAPTIONS = (25, 60, 125, 175, 300)  # that count: m
COLUMNS = (
    *("BLEU-4", "METEOR", "CIDEr-D", "R@1", "R@5", "R@10", "Mean-rank"),
    *("Distinct", "Novel", "Vocabulary", "Length", "Unsupported-detail"),
)
CHANGES = ("CIDEr-D", "R@1")
SET_COLUMNS = (
    "average CIDEr-D@5",
    "oracle CIDEr-D@5",
    "Div-1",
    "Div-2",
    "mBLEU-4",
    "SelfCIDEr",
    "Distinct-within",
)
WAYS = {
    "BLEU": Consensus("bleu"),
    "CIDEr": Consensus("cider"),
    "authors' BLEU": Consensus("bleu", compat="authors"),
}


@dataclass(frozen=True)
class Bench:
    """Photographs to caption, and those to learn from, seen in two ways."""

    describer: Describer
    shown: Sequence[Example]
    corpus: Corpus
    train: Sequence[Example]
    pictures: Mapping[str, Pictures]  # by feature
    training: Mapping[str, TrainingSet]
    judge: Retriever
    seen: NDArray[np.float32]  # the photographs to caption, by the judge

    @property
    def feature(self) -> str:
        """The one by which sets are chosen and settings looked at: the refined, where there is one."""
        return REFINED if REFINED in self.training else POOLED

    @property
    def references(self) -> list[list[str]]:
        """What people wrote."""
        return [list(some.captions) for some in self.shown]

    def beams(self, width: int) -> list[list[str]]:
        """All captions of a beam."""
        wish = self.describer.wish(width=width, keep=width)
        found = describe_corpus(self.describer.saved, self.corpus, wish, watch=lambda done, total: None)
        return [[one.caption for one in candidates] for candidates in found]

    def samples(self, count: int) -> list[list[str]]:
        """Captions drawn by chance."""
        saved = self.describer.saved
        return list(draw_corpus(saved, self.corpus, Sampling(count), seed=1, watch=lambda done, total: None))

    def measure(self, captions: Sequence[str]) -> Scores:
        """One caption of each photograph."""
        named = {some.image_id: caption for some, caption in zip(self.shown, captions, strict=True)}
        train = [list(some.captions) for some in self.train]
        matrix = dot_products(self.judge.embed_texts(captions), self.seen)
        return caption_scores(named, self.shown, train, matrix=matrix, judge=self.judge.identity)


def prepare(captioner: str, split: str) -> Bench:
    """Read and look at everything."""
    recipe, describer = load_recipe(RECIPE), load(captioner)
    examples = read_examples(recipe.data, seed=recipe.seed)
    shown, train = split_of(examples, split), split_of(examples, "train")
    corpus = build_corpus(
        shown,
        text=describer.saved.captioner.text,
        rules=recipe.data.rules(),
        encoder=describer.encoder,
        parts=in_order(describer.saved.captioner.needs),
        watch=lambda done, total: None,
    )
    sights = {POOLED: Sight(describer.encoder)}
    if isinstance(describer.saved.captioner, Refines):
        sights[REFINED] = refined_sight(describer)
    pictures = {name: sight.look([some.path for some in shown]) for name, sight in sights.items()}
    training = {name: gather_training_set(train, sight) for name, sight in sights.items()}
    judge = load_retriever(JUDGE)
    seen = judge.embed_images([some.path for some in shown])
    return Bench(describer, shown, corpus, train, pictures, training, judge, seen)


def rerankings(bench: Bench, hypotheses: Sequence[Sequence[str]]) -> Iterator[tuple[str, list[Reranked]]]:
    """All ways of choosing, by name."""
    for feature, training in bench.training.items():
        for name, how in WAYS.items():
            found = rerank_by_consensus(hypotheses, bench.pictures[feature], training, how)
            yield f"consensus by {name}, {feature}", found
    for feature, training in bench.training.items():
        found = caption_by_neighbours(bench.pictures[feature], training)
        yield f"neighbours' captions by CIDEr, {feature}", found
    for by in ("CIDEr-D", "BLEU-4"):
        yield f"oracle of {HYPOTHESES} by {by}", rerank_by_oracle(hypotheses, bench.references, by=by)


def print_table(bench: Bench) -> None:
    """Plain beams first, then everything else."""
    hypotheses = bench.beams(HYPOTHESES)
    plain = bench.measure([texts[0] for texts in bench.beams(WIDTH)])
    over = [f"{name} over beam {WIDTH}" for name in CHANGES]
    print("| |", " | ".join([*COLUMNS, *over, "seconds"]), "|")
    print(f"|{'---|' * (len(COLUMNS) + len(over) + 2)}")
    print_row(f"plain beam {WIDTH}", plain, plain)
    print_row(f"plain beam {HYPOTHESES}", bench.measure([texts[0] for texts in hypotheses]), plain)
    started = time.process_time()
    for name, found in rerankings(bench, hypotheses):
        seconds = time.process_time() - started
        print_row(name, bench.measure([one.caption for one in found]), plain, f"{seconds:.1f}")
        started = time.process_time()


def print_row(name: str, scores: Scores, plain: Scores, seconds: str = "") -> None:
    """One line of the table."""
    cells = [number(scores[column].corpus) for column in COLUMNS]
    changes = [""] * len(CHANGES)
    if scores is not plain:
        found = {one.name: one for one in compare(plain, scores)}
        ordered = [found[column] for column in CHANGES]
        changes = [f"{one.value:+.3f} [{one.low:+.3f}, {one.high:+.3f}]" for one in ordered]
    print("|", " | ".join([name, *cells, *changes, seconds]), "|", flush=True)


def print_look(bench: Bench) -> None:
    """CIDEr-D over numbers of neighbours (lines) and of captions that count (columns)."""
    hypotheses = bench.beams(HYPOTHESES)
    for name in ("CIDEr", "BLEU"):
        print(f"\n{name}, {bench.feature}\n\n| k | {' | '.join(f'm = {m}' for m in CAPTIONS)} |")
        print(f"|{'---|' * (len(CAPTIONS) + 1)}")
        for k in (10, 30, 60, 90):
            # There are 5 captions a picture: all beyond is as with all of them.
            ways = [Consensus(WAYS[name].similarity, k, m) for m in CAPTIONS if m <= 5 * k]
            cells = [f"{look(bench, hypotheses, how):.3f}" for how in ways]
            print("|", " | ".join([str(k), *cells, *[""] * (len(CAPTIONS) - len(ways))]), "|", flush=True)


def look(bench: Bench, hypotheses: Sequence[Sequence[str]], how: Consensus) -> float:
    """CIDEr-D of one way."""
    found = rerank_by_consensus(hypotheses, bench.pictures[bench.feature], bench.training[bench.feature], how)
    return score([one.caption for one in found], bench.references, metrics=["cider"])["CIDEr-D"].corpus


def print_sets(bench: Bench) -> None:
    """Diversity of 5 of the samples of each photograph."""
    drawn = bench.samples(SAMPLES)
    print(f"| 5 of {SAMPLES} samples | CIDEr-D of the first | {' | '.join(SET_COLUMNS)} |")
    print(f"|{'---|' * (len(SET_COLUMNS) + 2)}")
    sets = {"the first": [tuple(texts[:5]) for texts in drawn]}
    for name, how in WAYS.items():
        found = rerank_by_consensus(drawn, bench.pictures[bench.feature], bench.training[bench.feature], how)
        sets[f"best by {name}, {bench.feature}"] = best_sets(found)
        sets[f"best by {name}, {bench.feature}, and unlike"] = unlike_sets(found)
    for name, chosen in sets.items():
        within = score(chosen, bench.references, metrics=["cider", "oracle", "sets"])
        cells = [number(within[column].corpus) for column in ("CIDEr-D", *SET_COLUMNS)]
        print("|", " | ".join([name, *cells]), "|", flush=True)


def main() -> None:
    """What was asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("captioner", nargs="?", default="default", help="a captioner or run")
    parser.add_argument("--split", choices=["val", "test"], default="val")
    parser.add_argument("--look", action="store_true")
    parser.add_argument("--sets", action="store_true")
    wanted = parser.parse_args()
    if wanted.look and wanted.split == "test":
        raise TellapartError("settings are not chosen on the test split", hint="look at val")
    with torch.inference_mode():
        bench = prepare(wanted.captioner, wanted.split)
        (print_look if wanted.look else print_sets if wanted.sets else print_table)(bench)


if __name__ == "__main__":
    main()
