"""A small retriever of which one can tell by eye what it must find: pictures are nine coloured fields.

A colour's name lies where a picture all in that colour does; every other word of its vocabulary has a place
of its own, drawn by its letters, and pulls a sentence there. It counts what it places.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float, Float32
from PIL import Image

from tellapart.data.images import read_picture
from tellapart.errors import TellapartError
from tellapart.retrievers.retriever import Placed, Retriever, Watch, unwatched

COLOURS = {
    "red": (255, 0, 0),
    "green": (0, 160, 0),
    "blue": (0, 0, 255),
    "yellow": (255, 255, 0),
    "white": (255, 255, 255),
    "black": (0, 0, 0),
}
OTHERS = ("a", "and", "of", "picture", "the", "field", "dog", "runs", "grass", "on")
SIDE = 3


class SimpleRetriever(Retriever):
    """Knows six colours and a few words."""

    width = 3 * SIDE * SIDE + 1

    def __init__(self, identity: str = "simple@1") -> None:
        self.name = "simple"
        self.identity = identity
        self.placed: list[Path] = []
        self.read: list[str] = []

    def place(self, paths: Iterable[Path | TellapartError]) -> Iterator[Placed | TellapartError]:
        """By the colour of nine fields."""
        for path in paths:
            if isinstance(path, TellapartError):
                yield path
                continue
            self.placed.append(path)
            try:
                picture = read_picture(path)
            except TellapartError as error:
                yield error
                continue
            fields = np.asarray(picture.resize((SIDE, SIDE), Image.Resampling.BOX), np.float64)
            yield Placed(path, _placed(fields.reshape(1, -1))[0])

    def embed_texts(
        self, sentences: Sequence[str], *, watch: Watch = unwatched
    ) -> Float32[np.ndarray, "n d"]:
        """By the mean of the words it knows."""
        self.read += sentences
        rows = [
            np.mean(
                [_of_word(word) for word in _words(sentence) if _is_known(word)]
                or [np.zeros(3 * SIDE * SIDE)],
                axis=0,
            )
            for sentence in sentences
        ]
        watch(len(sentences), len(sentences))
        return _placed(np.array(rows).reshape(len(sentences), -1))

    def unknown_words(self, sentence: str) -> Sequence[str]:
        """Neither colours nor any of the few others."""
        return [word for word in _words(sentence) if not _is_known(word)]


def _words(sentence: str) -> list[str]:
    return re.findall(r"\w+", sentence.lower())


def _is_known(word: str) -> bool:
    return word in COLOURS or word in OTHERS


def _of_word(word: str) -> Float[np.ndarray, " f"]:
    if word in COLOURS:
        return np.tile(np.array(COLOURS[word], np.float64), SIDE * SIDE)
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
    return 127.5 + np.random.default_rng(seed).standard_normal(3 * SIDE * SIDE)


def _placed(fields: Float[np.ndarray, "n f"]) -> Float32[np.ndarray, "n d"]:
    """Around grey; the constant keeps grey itself from having no direction."""
    rows = np.concatenate([fields / 127.5 - 1, np.full((len(fields), 1), 0.1)], axis=1)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)
