"""ROUGE-L as COCO's evaluation has it (Lin 2004): the longest common subsequence, F with beta = 1.2.

Precision is the best over the references and so is recall, be it of another reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tellapart.metrics.material import Material, Metric
from tellapart.metrics.parts import RougeConfig
from tellapart.metrics.score import Floats, Score, mean_score, signed
from tellapart.metrics.sentences import Ints, Sentences, pair_up

BETA = 1.2
_CELLS = 1 << 17  # of the tables of a block of pairs: few enough to stay in the processor's cache


def build_rouge(config: RougeConfig) -> Metric:
    """The measure as it is registered."""
    return rouge


def rouge(material: Material) -> list[Score]:
    """ROUGE-L of each image's caption, and their mean."""
    material.expect_references("ROUGE-L")
    # Here a token with a blank inside stays one word, and a text without words is one empty word.
    empty = material.lexicon.number("")
    captions, references = material.whole_captions.filled(empty), material.whole_references.filled(empty)
    signature = signed(material.base_signature | {"beta": BETA})
    return [mean_score("ROUGE-L", rouge_values(captions, references), signature)]


def rouge_values(candidates: Sentences, references: Sentences) -> Floats:
    """ROUGE-L of each candidate against the references of its group; no sentence may be empty."""
    candidate, reference = pair_up(candidates, references)
    common = common_subsequences(candidates, references, candidate, reference)
    precision = common / candidates.lengths[candidate]
    recall = common / references.lengths[reference]
    begin = np.searchsorted(candidate, np.arange(len(candidates)))
    best_precision = np.maximum.reduceat(precision, begin)
    best_recall = np.maximum.reduceat(recall, begin)
    product = best_precision * best_recall
    below = best_recall + BETA**2 * best_precision
    found: Floats = np.divide((1 + BETA**2) * product, below, out=np.zeros_like(product), where=product > 0)
    return found


def common_subsequences(
    candidates: Sentences, references: Sentences, candidate: Ints, reference: Ints
) -> Ints:
    """Length of the longest common subsequence of each pair (candidate[i], reference[i])."""
    common = np.zeros(len(candidate), dtype=np.int64)
    for block in _blocks(candidates.lengths[candidate], references.lengths[reference]):
        ours = _padded(candidates, candidate[block], filling=-1)
        theirs = _padded(references, reference[block], filling=-2)
        common[block] = _longest(ours, theirs)
    return common


def _longest(ours: NDArray[np.int32], theirs: NDArray[np.int32]) -> Ints:
    """The usual table, a row a word of ours, for all pairs at once: (m, b), (n, b) -> (b,)."""
    # A cell depends on its left neighbour in the same row only through a maximum, so that a whole row is the
    # running maximum of what comes from the row above. Pairs lie side by side in memory.
    fits = min(len(ours), len(theirs)) < np.iinfo(np.int16).max
    row = np.zeros((len(theirs) + 1, theirs.shape[1]), dtype=np.int16 if fits else np.int32)
    for word in ours:
        grown = row[:-1] + (theirs == word)
        np.maximum(row[1:], grown, out=row[1:])
        _run_up(row)
    found: Ints = row[-1].astype(np.int64)
    return found


def _run_up(row: NDArray[np.signedinteger]) -> None:
    """The running maximum down the first axis, in place; the longer axis is left to numpy's inner loop."""
    if row.shape[1] < row.shape[0]:
        np.maximum.accumulate(row, axis=0, out=row)
        return
    for above, below in pairwise(row):
        np.maximum(above, below, out=below)


def _blocks(ours: Ints, theirs: Ints) -> Iterator[Ints]:
    """Pairs of similar lengths together, so that little is filled up."""
    order = np.lexsort((ours, theirs))
    begin = 0
    while begin < len(order):
        width = int(theirs[order[min(begin + _CELLS, len(order)) - 1]]) + 1
        size = max(1, _CELLS // width)
        yield order[begin : begin + size]
        begin += size


def _padded(sentences: Sentences, rows: Ints, *, filling: int) -> NDArray[np.int32]:
    """Words of some sentences, a column a sentence, filled up to the longest."""
    lengths = sentences.lengths[rows]
    places = np.arange(int(lengths.max()))[:, None]
    inside = places < lengths
    where = np.where(inside, sentences.starts[rows] + places, 0)
    return np.where(inside, sentences.words[where], filling).astype(np.int32)
