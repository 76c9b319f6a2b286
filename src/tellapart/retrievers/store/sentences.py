"""The captions of a folder or file with their vectors, kept on disk by the sentences themselves."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tellapart.arrays import Float32
from tellapart.retrievers.retriever import Retriever, Watch, unwatched
from tellapart.retrievers.store.keeping import Keeper
from tellapart.retrievers.store.vectors import Entries, Kept, Vector, store_of

TOGETHER = 1024  # sentences placed before any can be kept


def gather_sentences(
    sentences: Sequence[str], source: Path, retriever: Retriever, *, watch: Watch = unwatched
) -> tuple[Float32[np.ndarray, "n d"], str]:
    """A unit row for each sentence, and a note where one is needed.

    Args:
        sentences: captions, all different.
        source: the file or folder they are from: each has a store of its own.
        retriever: who places sentences.
        watch: is told how many of the new ones are done.
    """
    store = store_of("captions", source, retriever)
    kept = store.read()
    numbers = kept.numbers
    digests = [hashlib.sha256(sentence.encode()).digest() for sentence in sentences]
    new = [place for place, digest in enumerate(digests) if digest not in numbers]
    fresh: dict[bytes, Vector] = {}

    def choose(kept: Kept, numbers: Mapping[bytes, int]) -> Entries:
        return Entries([digest for digest in digests if digest in numbers or digest in fresh], {})

    keeper = Keeper(store, choose)
    for first in range(0, len(new), TOGETHER):
        places = new[first : first + TOGETHER]
        watch(first, len(new))
        rows = retriever.embed_texts([sentences[place] for place in places])
        fresh.update(zip((digests[place] for place in places), rows, strict=True))
        keeper.keep_if_due(fresh)
    if new:
        watch(len(new), len(new))
        keeper.keep(fresh, tidy=True)
    whole = kept.extended(fresh)
    numbers = whole.numbers
    rows = whole.vectors[[numbers[digest] for digest in digests]]
    return np.asarray(rows), keeper.note or kept.note
