"""Scores on disk: a report need not measure anew what it has measured."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tellapart.metrics.fluency import corpus_perplexity
from tellapart.metrics.score import Floats, Pooled, Score, Scores
from tellapart.reproduction.ways import SET
from tellapart.scoring import Choice, choose, gather, measure
from tellapart.storage import new_file

_FORMULAS = ("bleu", "meteor", "sets")  # measures of which some are formulas on sums over pictures


def write_scores(path: Path, scores: Scores, *, key: str) -> None:
    """Write them, under a key that tells what they were measured on."""
    about: dict[str, Any] = {"key": key, "ids": scores.ids, "skipped": dict(scores.skipped), "scores": {}}
    arrays: dict[str, Floats] = {}
    for number, (name, score) in enumerate(scores.parts.items()):
        about["scores"][name] = [score.corpus, score.signature, list(score.notes)]
        if score.pooled is not None:
            assert name in _formulas(), f"read again, {name} would have lost its interval"
            arrays[f"pooled-{number}"] = score.pooled.statistics
        if score.each is not None:
            arrays[f"each-{number}"] = score.each
    with new_file(path, lasting=False) as temporary, temporary.open("wb") as file:
        save: Any = np.savez_compressed  # its type has no names of one's own
        save(file, about=np.array(json.dumps(about)), **arrays)


def read_scores(path: Path, *, key: str) -> Scores | None:
    """Scores that were measured on the same; None where there are none."""
    try:
        with path.open("rb") as stream, np.load(stream) as file:
            about = json.loads(str(file["about"]))
            if about["key"] != key or about["skipped"]:  # what could not be measured then may be now
                return None
            parts = {
                name: Score(
                    name, corpus, signature, _each(file, number), _pooled(file, number, name), tuple(notes)
                )
                for number, (name, (corpus, signature, notes)) in enumerate(about["scores"].items())
            }
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
        return None  # not there, or damaged: what it held is measured anew
    return Scores(tuple(about["ids"]), parts, about["skipped"])


def _each(file: Mapping[str, Floats], number: int) -> Floats | None:
    return file.get(f"each-{number}")


def _pooled(file: Mapping[str, Floats], number: int, name: str) -> Pooled | None:
    return Pooled(file[f"pooled-{number}"], _formulas()[name]) if f"pooled-{number}" in file else None


@cache
def _formulas() -> Mapping[str, Callable[[Floats], Floats]]:
    """The formulas by the names of their scores, from measuring captions that all of them can measure."""
    material = gather([["a dog runs along the beach"] * SET], [["a dog runs on a beach"]])
    found = measure(material, Choice(choose(list(_FORMULAS)).measures, must_run=False))
    known = {name: score.pooled.formula for name, score in found.parts.items() if score.pooled is not None}
    return known | {"Perplexity-corpus": corpus_perplexity}  # a language model need not be asked for it
