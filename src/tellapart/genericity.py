"""Which captions of a training set are generic: its halves of high and of low retrieval entropy, on disk.

UNKT (Fei & Huang 2023, section 3.1) trains its negative teacher on the half of the image-text pairs whose
sentences have the higher entropy over the pictures of the training set (Eq. 3).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from tellapart.arrays import Bool, Float64
from tellapart.data.examples import Example
from tellapart.errors import TellapartError
from tellapart.metrics.diversity import diversity
from tellapart.metrics.material import Material, Watch, unwatched
from tellapart.retrievers.entropy import expect_settings, high_half, retrieval_entropy
from tellapart.retrievers.retriever import Retriever
from tellapart.storage import new_folder, write_text

EXTREMES = 10  # sentences of each end that a summary names
ENTROPY, HIGH, LOW, SUMMARY = "entropy.jsonl", "high.jsonl", "low.jsonl", "summary.json"
_MEASURED_ON = ("val", "test")


@dataclass(frozen=True, slots=True)
class Hesitation:
    """How entropy is measured: the softmax's temperature, and how many of the closest pictures take part."""

    temperature: float
    top_n: int | None = None  # None: the whole pool

    def __post_init__(self) -> None:
        expect_settings(self.temperature, self.top_n)  # before minutes of work


@dataclass(frozen=True, slots=True)
class Pair:
    """One caption of one image."""

    example: Example
    caption: str


@dataclass(frozen=True, slots=True)
class Half:
    """What the captions of one half are like."""

    pairs: int
    mean_entropy: float
    mean_length: float  # words
    vocabulary: int
    distinct: float  # share of the captions that are unlike all before them

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "pairs": self.pairs,
            "mean_entropy": self.mean_entropy,
            "mean_length": self.mean_length,
            "vocabulary": self.vocabulary,
            "distinct": self.distinct,
        }


@dataclass(frozen=True, slots=True)
class Genericity:
    """The image-text pairs of a set with the entropy of each, in the order of the set."""

    pairs: tuple[Pair, ...]
    entropy: Float64[np.ndarray, " n"]
    is_high: Bool[np.ndarray, " n"]
    retriever: str  # identity
    pictures: int  # of the pool
    hesitation: Hesitation
    notes: tuple[str, ...] = ()  # what a reader of the values must be told

    def order(self) -> Sequence[int]:
        """The pairs, the most generic first; of two as generic the earlier."""
        return [int(row) for row in np.argsort(-self.entropy, kind="stable")]

    def half(self, *, high: bool) -> Half:
        """What one of the halves is like."""
        rows = np.flatnonzero(self.is_high == high)
        captions = tuple((self.pairs[row].caption,) for row in rows)
        if not captions:
            return Half(0, 0.0, 0.0, 0, 0.0)
        material = Material(tuple(map(str, rows)), captions)
        found = {score.name: score.corpus for score in diversity(material)}
        return Half(
            len(captions),
            float(self.entropy[rows].mean()),
            found["Length"],
            int(found["Vocabulary"]),
            found["Distinct"],
        )

    def extremes(self, count: int = EXTREMES) -> tuple[list[tuple[str, float]], list[tuple[str, float]]]:
        """The most and the least generic sentences, each once, with their entropy; the most extreme first."""
        values = {self.pairs[row].caption: float(self.entropy[row]) for row in self.order()}
        sentences = list(values.items())
        return sentences[:count], sentences[::-1][:count]

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        most, least = self.extremes()
        return {
            "pairs": len(self.pairs),
            "sentences": len({pair.caption for pair in self.pairs}),
            "pictures": self.pictures,
            "retriever": self.retriever,
            "temperature": self.hesitation.temperature,
            "top_n": self.hesitation.top_n,
            "notes": list(self.notes),
            "high": self.half(high=True).to_json(),
            "low": self.half(high=False).to_json(),
            "most_generic": [{"caption": caption, "entropy": value} for caption, value in most],
            "least_generic": [{"caption": caption, "entropy": value} for caption, value in least],
        }


def to_filter(examples: Sequence[Example]) -> Sequence[Example]:
    """The examples whose captions are divided: those to train on, or all where there are no splits."""
    has_splits = any(example.split for example in examples)
    chosen = [
        example
        for example in examples
        if example.pictured and example.split == ("train" if has_splits else "")
    ]
    if not chosen:
        there = sorted({example.split or "(none)" for example in examples})
        raise TellapartError(
            "there is no picture with captions to train on", hint=f"its splits: {', '.join(there) or 'none'}"
        )
    return chosen


def measure_genericity(
    examples: Sequence[Example],
    retriever: Retriever,
    hesitation: Hesitation,
    *,
    pool: Sequence[Path] | None = None,
    watch: Watch = unwatched,
) -> Genericity:
    """The entropy of every caption over the pictures of a pool, and which half each image-text pair is in.

    Args:
        examples: images with their captions.
        retriever: which says how close a sentence and a picture are.
        hesitation: how entropy is measured.
        pool: the pictures; those of the examples themselves if None, as in the paper.
        watch: told what is done, and how far it is.
    """
    pairs = tuple(Pair(example, caption) for example in examples for caption in example.captions)
    # Each picture once, also where a file has a line for each caption.
    paths = list(dict.fromkeys(example.path for example in examples)) if pool is None else pool
    pictures = retriever.embed_images(paths, watch=lambda done, total: watch("placing pictures", done, total))
    # Once a sentence: it then has one value, however often it was said.
    sentences = {sentence: row for row, sentence in enumerate(dict.fromkeys(pair.caption for pair in pairs))}
    texts = retriever.embed_texts(
        list(sentences), watch=lambda done, total: watch("placing sentences", done, total)
    )
    entropy = retrieval_entropy(
        texts,
        pictures,
        temperature=hesitation.temperature,
        top_n=hesitation.top_n,
        watch=lambda done, total: watch("measuring entropy", done, total),
    )[[sentences[pair.caption] for pair in pairs]]
    notes = tuple(retriever.notes(list(sentences)))
    identity = retriever.identity
    return Genericity(pairs, entropy, high_half(entropy), identity, len(pictures), hesitation, notes)


def expect_free(folder: Path) -> None:
    """An error where something stands already, before minutes of work."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise TellapartError(
            f"{folder}: there is something at this place already", hint="name another folder with --out"
        )


def write_genericity(folder: Path, found: Genericity, everything: Iterable[Example]) -> None:
    """Write the folder or nothing: each caption with its value, both halves, and a summary.

    The halves are caption files to train on. Images that are not divided, those to validate and to test on,
    stand in both as they are.
    """
    expect_free(folder)
    rest = [example for example in everything if example.pictured and example.split in _MEASURED_ON]
    with new_folder(folder) as temporary:
        _write_lines(temporary / ENTROPY, (_line(found, row) for row in found.order()))
        for name, high in ((HIGH, True), (LOW, False)):
            _write_lines(temporary / name, map(_record, [*_captions_of_half(found, high=high), *rest]))
        write_text(temporary / SUMMARY, json.dumps(found.to_json(), indent=2, ensure_ascii=False) + "\n")


def _captions_of_half(found: Genericity, *, high: bool) -> Iterator[Example]:
    """The images of a half, each with those of its captions that are in it."""
    kept = [pair for pair, is_high in zip(found.pairs, found.is_high, strict=True) if is_high == high]
    for _, group in groupby(kept, key=lambda pair: id(pair.example)):
        pairs = list(group)
        yield replace(pairs[0].example, captions=tuple(pair.caption for pair in pairs))


def _line(found: Genericity, row: int) -> dict[str, object]:
    pair = found.pairs[row]
    return {
        "entropy": float(found.entropy[row]),
        "half": "high" if found.is_high[row] else "low",
        "caption": pair.caption,
        "image_id": pair.example.image_id,
        "image": _path(pair.example),
    }


def _record(example: Example) -> dict[str, object]:
    """As the reader of JSONL takes it."""
    fields: dict[str, object] = {
        "image": _path(example),
        "image_id": example.image_id,
        "captions": list(example.captions),
    }
    return fields | ({"split": example.split} if example.split else {})


def _path(example: Example) -> str:
    return str(example.path.absolute())  # the file may be read from any folder


def _write_lines(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
