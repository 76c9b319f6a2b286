"""The phrases of the paraphrase table that occur in texts, and the paraphrases among them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tellapart.metrics.meteor.extras import compiled
from tellapart.metrics.meteor.matches import Table, Texts
from tellapart.metrics.meteor.packing import LENGTH_BITS, LONGEST_PHRASE, Longs, grown
from tellapart.metrics.meteor.resources import PhraseTree
from tellapart.metrics.meteor.words import Ints

NODE_BITS = 32


class Tree(NamedTuple):
    """The phrases of the paraphrase table, as paths from node 0."""

    words: Ints
    children: Ints


@compiled
def _child(tree: Tree, node: int, word: int) -> int:
    low, high = tree.children[node], tree.children[node + 1]
    while low < high:
        middle = (low + high) // 2
        if tree.words[middle] < word:
            low = middle + 1
        else:
            high = middle
    return low if low < tree.children[node + 1] and tree.words[low] == word else -1


@compiled
def _find_phrases(starts: Ints, words: Ints, tree: Tree) -> tuple[Ints, Longs]:
    """Every occurrence of a phrase: how many before each text, and (position, length, node) packed."""
    before = np.zeros(len(starts), np.int32)
    found = np.empty(1024, np.int64)
    count = 0
    for text in range(len(starts) - 1):
        for first in range(starts[text], starts[text + 1]):
            node = 0
            for place in range(first, min(starts[text + 1], first + LONGEST_PHRASE)):
                node = _child(tree, node, words[place]) if words[place] >= 0 else -1
                if node < 0:
                    break
                found = grown(found, count)
                position, length = first - starts[text], place - first + 1
                found[count] = (((np.int64(position) << LENGTH_BITS) | np.int64(length)) << NODE_BITS) | node
                count += 1
        before[text + 1] = count
    return before, found[:count]


@compiled
def _link_repeats(starts: Ints, phrases: Ints, distinct: int) -> Ints:
    """For each occurrence of a phrase the next one in the same text, or -1."""
    again = np.full(len(phrases), -1, np.int32)
    latest = np.full(distinct, -1, np.int32)
    for text in range(len(starts) - 1):
        for place in range(starts[text + 1] - 1, starts[text] - 1, -1):
            again[place] = latest[phrases[place]]
            latest[phrases[place]] = place
        for place in range(starts[text], starts[text + 1]):
            latest[phrases[place]] = -1
    return again


def with_phrases(starts: Ints, words: Ints, looked_up: Ints, phrases: PhraseTree) -> tuple[Texts, Table]:
    """The texts with their phrases, which are numbered anew, and the paraphrases among these."""
    before, packed = _find_phrases(starts, looked_up, Tree(phrases.words, phrases.children))
    nodes = packed & ((1 << NODE_BITS) - 1)
    renumbered = np.full(len(phrases.words), -1, np.int32)
    renumbered[nodes] = 0
    occurring = np.flatnonzero(renumbered == 0)
    renumbered[occurring] = np.arange(len(occurring))
    numbers = renumbered[nodes]
    texts = Texts(
        starts=starts,
        words=words,
        phrase_starts=before,
        positions=(packed >> (NODE_BITS + LENGTH_BITS)).astype(np.int32),
        lengths=((packed >> NODE_BITS) & LONGEST_PHRASE).astype(np.int32),
        phrases=numbers,
        again=_link_repeats(before, numbers, len(occurring)),
    )
    return texts, _occurring_paraphrases(phrases, occurring, renumbered)


def _occurring_paraphrases(phrases: PhraseTree, occurring: Longs, renumbered: Ints) -> Table:
    firsts = phrases.table.starts[occurring].astype(np.int64)
    counts = phrases.table.starts[occurring + 1] - firsts
    ends = np.cumsum(counts)
    entries = np.arange(ends[-1] if len(ends) else 0) + np.repeat(firsts - (ends - counts), counts)
    values = renumbered[phrases.table.values[entries]]
    owners = np.repeat(np.arange(len(occurring)), counts)[values >= 0]
    kept = np.bincount(owners, minlength=len(occurring))
    return Table(np.cumsum([0, *kept], dtype=np.int32), values[values >= 0])
