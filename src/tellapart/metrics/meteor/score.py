"""METEOR 1.5 of captions against references: statistics an image, and the formula that makes them scores."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tellapart.errors import TellapartError
from tellapart.metrics.meteor.extras import stem_function
from tellapart.metrics.meteor.lines import candidate_line, reference_line
from tellapart.metrics.meteor.resources import Resources
from tellapart.metrics.meteor.words import Ints, key_of

if TYPE_CHECKING:
    from tellapart.metrics.meteor.matches import Lexicon

STATISTICS = 23
MODULES = ("exact", "stem", "synonym", "paraphrase")
WEIGHTS = (1.0, 0.6, 0.8, 0.6)
ALPHA, BETA, GAMMA, DELTA = 0.85, 0.2, 0.6, 0.75  # METEOR 1.5's for English, its task "rank"
TOGETHER = 5_000  # images that are aligned at a time, which bounds the memory

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class MeteorStatistics:
    """What METEOR counts for each image against the reference that suits its caption best.

    The columns are those of the jar's statistics line: words of the candidate and of the reference, function
    words of both, then for each module matched content words of both and function words of both, and at
    last chunks and matched words of both.
    """

    each: Longs  # (images, 23)


def meteor(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    resources: Resources,
    *,
    modules: int = len(MODULES),
) -> MeteorStatistics:
    """The statistics of each candidate, given PTB-tokenized texts; `modules` counts the modules in use."""
    check_sizes(candidates, references)
    parts = [
        _best_statistics(
            candidates[first : first + TOGETHER], references[first : first + TOGETHER], resources, modules
        )
        for first in range(0, len(candidates), TOGETHER)
    ]
    return MeteorStatistics(np.concatenate([np.zeros((0, STATISTICS), np.int64), *parts]))


def check_sizes(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> None:
    """Refuse candidates that have no references."""
    if len(candidates) != len(references):
        raise TellapartError(
            f"{len(candidates)} candidates, but references for {len(references)}",
            hint="give a list of references for each candidate, in the same order",
        )
    bare = [place for place, group in enumerate(references) if not group]
    if bare:
        raise TellapartError(
            f"candidate {bare[0]} has no references" + (f", as {len(bare) - 1} more" if bare[1:] else ""),
            hint="METEOR compares with references: leave these out, or give them some",
        )


def segment_scores(statistics: Longs | Floats) -> Floats:
    """METEOR of statistics (…, 23) -> (…): F (1 - γ frag^β), Denkowski and Lavie 2014, section 2."""
    values = np.asarray(statistics, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        precision = _weighted_matches(values, 0) / _weighted_length(values, 0)
        recall = _weighted_matches(values, 1) / _weighted_length(values, 1)
        mean = 1.0 / ((1.0 - ALPHA) / precision + ALPHA / recall)
        chunks, matched = values[..., 20], (values[..., 21] + values[..., 22]) / 2
        fragmentation = np.where(_is_perfect(values), 0.0, chunks / matched)
        scores = mean * (1.0 - GAMMA * fragmentation**BETA)
    return np.maximum(np.where(np.isnan(scores), 0.0, scores), 0.0)


def addends(statistics: Longs) -> Longs:
    """What each image adds to the sums of the corpus: a perfect one adds no chunk."""
    found = statistics.copy()
    found[..., 20] = np.where(_is_perfect(statistics), 0, statistics[..., 20])
    return found


def corpus_score(sums: Longs | Floats) -> Floats:
    """METEOR of a corpus, given sums (…, 23) over the addends of its images: the formula of one image."""
    return segment_scores(sums)


def _is_perfect(statistics: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Whether all words of both texts are matched in one chunk."""
    values: Floats = np.asarray(statistics, np.float64)
    whole = (values[..., 21] == values[..., 0]) & (values[..., 22] == values[..., 1])
    return np.asarray(whole & (values[..., 20] == 1.0))


def _weighted_length(values: Floats, side: int) -> Floats:
    function = values[..., 2 + side]
    return np.asarray(DELTA * (values[..., side] - function) + (1.0 - DELTA) * function)


def _weighted_matches(values: Floats, side: int) -> Floats:
    # Summed in the jar's order, so that no reference is preferred by a rounding error.
    total = np.zeros(values.shape[:-1])
    for first, share in ((4 + side, DELTA), (6 + side, 1.0 - DELTA)):
        for module, weight in enumerate(WEIGHTS):
            total = total + values[..., first + 4 * module] * weight * share
    return total


def _best_statistics(
    candidates: Sequence[str], references: Sequence[Sequence[str]], resources: Resources, modules: int
) -> Longs:
    from tellapart.metrics.meteor.alignment import align  # numba takes half a second to import
    from tellapart.metrics.meteor.packing import LONGEST
    from tellapart.metrics.meteor.phrases import with_phrases

    pairs, lines = _numbered(candidates, references)
    texts = [resources.normalizer.words(line) for line in lines]
    if max(map(len, texts)) > LONGEST:
        raise TellapartError(f"a caption has more than {LONGEST} words", hint="cut it, or leave it out")
    starts = np.cumsum([0, *map(len, texts)], dtype=np.int32)
    flat = list(chain.from_iterable(texts))
    vocabulary = {word: number for number, word in enumerate(dict.fromkeys(flat))}
    words = np.fromiter(map(vocabulary.__getitem__, flat), np.int32, len(flat))
    lexicon, known = _lexicon(list(vocabulary), resources)
    occurring, table = with_phrases(starts, words, known[words], resources.phrases)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with ThreadPoolExecutor(cores) as pool:  # compiled code lets other threads run meanwhile
        shares = [np.ascontiguousarray(share) for share in np.array_split(pairs, cores)]
        parts = [pool.submit(align, occurring, table, lexicon, share, modules) for share in shares]
        found = np.concatenate([part.result() for part in parts])
    firsts = np.cumsum([0, *map(len, references)])[:-1]
    return found[_first_best(segment_scores(found), firsts)]


def _numbered(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> tuple[Ints, list[str]]:
    """Pairs of candidate and reference, by their places among the distinct lines."""
    numbers: dict[str, int] = {}
    pairs = []
    for candidate, group in zip(candidates, references, strict=True):
        one = numbers.setdefault(candidate_line(candidate), len(numbers))
        pairs += [(one, numbers.setdefault(reference_line(reference), len(numbers))) for reference in group]
    return np.array(pairs, np.int32), list(numbers)


def _first_best(scores: Floats, firsts: Longs) -> Longs:
    """The row of the first greatest score in each run of rows."""
    best = np.repeat(np.maximum.reduceat(scores, firsts), np.diff([*firsts, len(scores)]))
    rows = np.where(scores == best, np.arange(len(scores)), len(scores))
    return np.minimum.reduceat(rows, firsts)


def _lexicon(words: list[str], resources: Resources) -> tuple[Lexicon, Ints]:
    """What is known of these words, and their numbers in the resources, or -1."""
    from tellapart.metrics.meteor.matches import Lexicon

    known = np.array([resources.numbers.get(word, -1) for word in words], np.int32)
    stem = stem_function()
    stems = resources.stems[known]
    for place in np.flatnonzero(known < 0):
        stems[place] = key_of(stem(words[place]))
    synsets = [resources.synonyms.of(word) for word in words]
    lexicon = Lexicon(
        exact=np.array([key_of(word) for word in words], np.int32),
        stem=stems,
        function=resources.functions[known] & (known >= 0),
        synset_starts=np.cumsum([0, *map(len, synsets)], dtype=np.int32),
        synsets=np.array([synset for found in synsets for synset in found], np.int32),
    )
    return lexicon, known
