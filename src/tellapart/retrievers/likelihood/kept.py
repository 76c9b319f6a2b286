"""Matrices of scores that are computed once and kept, known by all that they depend on.

They stand in the cache folder and may be removed at any time. Behind each stands its SHA-256: one that is
damaged is made again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch

from tellapart.arrays import Float32
from tellapart.retrievers.likelihood.pairs import score_blocks
from tellapart.retrievers.retriever import Watch
from tellapart.storage import cache_folder, new_file
from tellapart.types import AnyCaptioner, Vision

VERSION = 2  # raised when the same captioner would give other scores
_SUM = hashlib.sha256().digest_size
PICTURES = 8  # seen at once
CAPTIONS = 8192  # whose beginnings are kept at once: some 130 MB of an m-RNN

Sight = Callable[[Sequence[bytes]], Vision]  # what was seen in the pictures that are known by these digests


def kept_scores(
    captioner: AnyCaptioner,
    captions: Sequence[Sequence[int]],
    digests: Sequence[bytes],
    see: Sight,
    *,
    identity: str,
    watch: Watch,
) -> Float32[np.ndarray, "captions pictures"]:
    """The log p(c|I) of each caption for each picture, in single precision, by the products that are set.

    Args:
        captioner: whose opinion is asked.
        captions: tokens from start to end.
        digests: what pictures are known by; one that is there twice is scored once.
        see: gives the features of pictures.
        identity: of the captioner; it changes whenever a score might.
        watch: told how many pictures are done, and of how many; not at all where the scores are there.
    """
    path = cache_folder() / "likelihood" / f"{_key(identity, captions, digests)}.npy"
    shape = (len(captions), len(digests))
    kept = _read(path, shape)
    if kept is not None:
        return kept
    with new_file(path) as temporary:
        scores = np.lib.format.open_memmap(temporary, mode="w+", dtype=np.float32, shape=shape)
        _fill(scores, captioner, captions, digests, see, watch)
        scores.flush()
        with temporary.open("ab") as file:
            file.write(_sum(scores))
    return np.load(path, mmap_mode="r")  # type: ignore[no-any-return]


def _fill(
    scores: Float32[np.ndarray, "captions pictures"],
    captioner: AnyCaptioner,
    captions: Sequence[Sequence[int]],
    digests: Sequence[bytes],
    see: Sight,
    watch: Watch,
) -> None:
    columns: dict[bytes, list[int]] = {}
    for column, digest in enumerate(digests):
        columns.setdefault(digest, []).append(column)
    different = list(columns)
    groups = [different[first : first + PICTURES] for first in range(0, len(different), PICTURES)]
    slabs = list(_slabs(captions))
    for number, slab in enumerate(slabs):
        done = number * len(different)
        found = score_blocks(captioner, map(see, groups), [captions[place] for place in slab])
        for group, block in zip(groups, found, strict=True):
            for column, digest in zip(block.T, group, strict=True):
                scores[np.ix_(slab, columns[digest])] = column[:, None]
            done += len(group)
            watch(done, len(slabs) * len(different))


def _slabs(captions: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Captions by their places, so many at a time; in this order those that begin alike stand together."""
    order = sorted(range(len(captions)), key=lambda place: tuple(captions[place]))
    for first in range(0, len(order), CAPTIONS):
        yield order[first : first + CAPTIONS]


def _read(path: Path, shape: tuple[int, int]) -> Float32[np.ndarray, "captions pictures"] | None:
    """What is kept; None where nothing is, or where the file is damaged and has to be made again."""
    try:
        scores = np.load(path, mmap_mode="r")
        with path.open("rb") as file:
            file.seek(-_SUM, os.SEEK_END)
            written = file.read()
    except (OSError, ValueError, EOFError):
        return None
    if scores.shape != shape or scores.dtype != np.float32 or _sum(scores) != written:
        return None
    return scores  # type: ignore[no-any-return]


def _sum(scores: Float32[np.ndarray, "captions pictures"]) -> bytes:
    return hashlib.sha256(np.ascontiguousarray(scores).data).digest()


def _key(identity: str, captions: Sequence[Sequence[int]], digests: Sequence[bytes]) -> str:
    products = torch.get_float32_matmul_precision()
    key = hashlib.sha256(f"{VERSION} {products} {identity} {len(captions)}\n".encode())
    for caption in captions:
        key.update(np.asarray([len(caption), *caption], np.int64).tobytes())
    for digest in digests:
        key.update(hashlib.sha256(digest).digest())
    return key.hexdigest()
