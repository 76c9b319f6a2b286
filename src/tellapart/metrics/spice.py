"""SPICE (Anderson et al. 2016): F-score over the propositions of scene graphs, by its authors' program.

The program reads the captions as they are written: capitals and full stops steer its parser. COCO's
evaluation script hands it tokenized text instead, and gets other values for most captions; `text="ptb"` does
as it does.

SPICE is 0 for a caption without any proposition, and where the references have none. A subset (colours, say)
is undefined where no reference of the image names one: such images have NaN, and the subset's value is the
mean over the others, as in the program's own summary.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np

from tellapart.metrics.material import Material, Metric, Watch
from tellapart.metrics.parts import SpiceConfig
from tellapart.metrics.score import Floats, Pooled, Score, signed
from tellapart.metrics.spice_cache import ResultCache, Values, content_key
from tellapart.metrics.spice_jars import CATEGORIES, Job, find_jars, fingerprint, run_spice
from tellapart.storage import cache_folder

NAMES = (
    "SPICE",
    "SPICE-object",
    "SPICE-relation",
    "SPICE-attribute",
    "SPICE-colour",
    "SPICE-count",
    "SPICE-size",
)
LONGEST_SENTENCE = 100  # words: the parser takes the cube of their number in time, here some 15 s
_CAPTIONS_A_RUN = 5_000  # some six minutes: what is lost at most when a run is killed
_START_SECONDS, _CAPTION_SECONDS = 20, 0.08
_WORD = re.compile(r"(?P<end>[.?!]+(?=\s|$))|\w+|[^\w\s]")

Text = Literal["raw", "ptb"]


def build_spice(config: SpiceConfig) -> Metric:
    """The measure as it is registered."""
    return lambda material: spice(material, jars=config.jars, text=config.text)


def spice(material: Material, *, jars: str | None = None, text: Text = "raw") -> list[Score]:
    """SPICE and its six subsets of each image's caption against its references."""
    material.expect_references("SPICE")
    jobs, shortened = _shortened(_jobs(material, text))
    values, remarks = spice_values(jobs, jars=jars, watch=material.watch)
    notes = (*_notes(material, values, shortened), *remarks)
    signature = signed(
        {
            "text": text,
            "references": material.base_signature["references"],
            "program": "spice-1.0",
            "jars": fingerprint(find_jars(jars))[:8],
            "longest-sentence": LONGEST_SENTENCE,
        }
    )
    subset_notes = (*notes, *_defined(values))
    return [
        _score(name, each, signature, notes if name == "SPICE" else subset_notes)
        for name, each in zip(NAMES, values.T, strict=True)
    ]


def _jobs(material: Material, text: Text) -> list[Job]:
    if text == "raw":
        references = material.expect_references("SPICE")
        return [Job(caption, refs) for caption, refs in zip(material.captions, references, strict=True)]
    tokenized = map(" ".join, material.reference_tokens)
    return [
        Job(" ".join(tokens), tuple(islice(tokenized, len(refs))))
        for tokens, refs in zip(material.caption_tokens, material.expect_references("SPICE"), strict=True)
    ]


def _score(name: str, each: Floats, signature: str, notes: tuple[str, ...]) -> Score:
    defined = ~np.isnan(each)
    statistics = np.stack([np.where(defined, each, 0.0), defined], axis=1).astype(np.float64)
    corpus = float(mean_of_defined(statistics.sum(axis=0)))
    return Score(name, corpus, signature, each, Pooled(statistics, mean_of_defined), notes)


def mean_of_defined(sums: Floats) -> Floats:
    """The mean from the sum of values and their number, NaN where there is none: (…, 2) -> (…)."""
    total, number = sums[..., 0], sums[..., 1]
    return np.divide(total, number, out=np.full_like(total, math.nan), where=number > 0)


def _notes(material: Material, values: Floats, shortened: list[int]) -> tuple[str, ...]:
    empty = [row for row, caption in enumerate(material.captions) if not caption.strip()]
    wordless = np.flatnonzero(np.isnan(values[:, NAMES.index("SPICE-object")])).tolist()
    found = (
        (empty, "SPICE is 0 where the caption is empty"),
        (wordless, "SPICE is 0 where the references name no object at all"),
        (shortened, f"SPICE read sentences only up to their word {LONGEST_SENTENCE}"),
    )
    return tuple(
        f"{what}: {len(rows)} of {len(material)} images, first {material.ids[rows[0]]!r}"
        for rows, what in found
        if rows
    )


def _defined(values: Floats) -> tuple[str, ...]:
    numbers = (~np.isnan(values)).sum(axis=0)
    if (numbers == len(values)).all():
        return ()
    spoken = ", ".join(f"{name} {number}" for name, number in zip(NAMES[1:], numbers[1:], strict=True))
    what = "SPICE's subsets are means over the images whose references hold such a proposition"
    return (f"{what}: {spoken} of {len(values)}",)


def _shortened(jobs: Sequence[Job]) -> tuple[list[Job], list[int]]:
    """The jobs with sentences that can be parsed, and the numbers of those that had longer ones."""
    found = [Job(shorten(job.caption), tuple(map(shorten, job.references))) for job in jobs]
    return found, [row for row, (one, other) in enumerate(zip(jobs, found, strict=True)) if one != other]


def shorten(text: str) -> str:
    """A text whose sentences have at most LONGEST_SENTENCE words; one that has no longer ones, as it is."""
    kept, begin, words = [], 0, 0
    for word in _WORD.finditer(text):
        words = 0 if word["end"] else words + 1
        if words == LONGEST_SENTENCE:
            kept.append(text[begin : word.end()])
        if words >= LONGEST_SENTENCE:
            begin = word.end()
    return "".join(kept) + text[begin:]


def spice_values(jobs: Sequence[Job], *, jars: str | None, watch: Watch) -> tuple[Floats, tuple[str, ...]]:
    """F-scores of each job, a column each of NAMES, and remarks; what was found before is not run again."""
    paths = find_jars(jars)
    kind = fingerprint(paths)
    folder = cache_folder() / "spice" / kind
    cache = ResultCache(folder / "results.sqlite", width=len(CATEGORIES))
    keys = [content_key(kind, job.caption, *job.references) for job in jobs]
    known, trouble = _recalled(cache, keys)
    missing = {key: job for key, job in zip(keys, jobs, strict=True) if key not in known}
    runs = _runs(missing)
    what, done = _costs(missing, len(runs)), len(jobs) - len(missing)
    for run in runs:
        watch(what, done, len(jobs))
        fresh = run_spice(
            [missing[key] for key in run],
            paths,
            folder / "parses",
            _shown(watch, what, range(done, done + len(run)), len(jobs)),
        )
        found = dict(zip(run, fresh, strict=True))
        trouble = _kept(cache, found) or trouble
        known |= found
        done += len(run)
    if runs:
        watch(what, len(jobs), len(jobs))
    values = np.array([known[key] for key in keys], dtype=np.float64).reshape(len(jobs), len(CATEGORIES))
    return values, (trouble,) if trouble else ()


def _shown(watch: Watch, what: str, part: range, total: int) -> Callable[[float], None]:
    return lambda share: watch(what, part.start + int(share * len(part)), total)


def _runs(missing: dict[bytes, Job]) -> list[list[bytes]]:
    """Keys of the jobs that go to one Java process each: few enough that a killed run loses minutes."""
    runs: list[list[bytes]] = []
    captions = _CAPTIONS_A_RUN
    for key, job in missing.items():
        if captions >= _CAPTIONS_A_RUN:
            runs.append([])
            captions = 0
        runs[-1].append(key)
        captions += 1 + len(job.references)
    return runs


def _costs(missing: dict[bytes, Job], runs: int) -> str:
    captions = sum(1 + len(job.references) for job in missing.values())
    minutes = math.ceil((runs * _START_SECONDS + captions * _CAPTION_SECONDS) / 60)
    return f"SPICE: about {minutes} minute{'s' if minutes != 1 else ''} and 4 GB of memory"


def _recalled(cache: ResultCache, keys: Sequence[bytes]) -> tuple[dict[bytes, Values], str]:
    try:
        return cache.get(keys), ""
    except (OSError, sqlite3.OperationalError) as error:
        return {}, _unkept(cache.file, error)


def _kept(cache: ResultCache, found: dict[bytes, Values]) -> str:
    try:
        cache.put(found)
    except (OSError, sqlite3.OperationalError) as error:
        return _unkept(cache.file, error)
    return ""


def _unkept(file: Path, error: Exception) -> str:
    return f"SPICE's results cannot be kept for the next time ({file}: {error})"
