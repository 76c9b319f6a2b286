"""A retriever that knows nothing but colours: by hand one can tell what it must answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float32
from PIL import Image

from tellapart.data.images import read_picture
from tellapart.errors import TellapartError
from tellapart.retrievers.retriever import Placed, Retriever, Watch, unwatched

COLOURS = {
    "red": (255, 0, 0),
    "green": (0, 255, 0),
    "blue": (0, 0, 255),
    "yellow": (255, 255, 0),
    "purple": (255, 0, 255),
    "white": (255, 255, 255),
}


class ColourRetriever(Retriever):
    """A picture lies where its mean colour points; a sentence where the sum of its colours does."""

    name = "colours"
    identity = "colours@c01"
    width = 3

    def place(self, paths: Iterable[Path | TellapartError]) -> Iterator[Placed | TellapartError]:
        """By the mean of all pixels."""
        for path in paths:
            if isinstance(path, TellapartError):
                yield path
                continue
            try:
                picture = read_picture(path)
            except TellapartError as error:
                yield error
                continue
            yield Placed(path, unit(np.asarray(picture, np.float64).mean(axis=(0, 1))[None])[0])

    def embed_texts(
        self, sentences: Sequence[str], *, watch: Watch = unwatched
    ) -> Float32[np.ndarray, "n d"]:
        """Grey, where a sentence names no colour."""
        sums = [
            np.sum([COLOURS[word] for word in sentence.split() if word in COLOURS] or [(1, 1, 1)], axis=0)
            for sentence in sentences
        ]
        watch(len(sentences), len(sentences))
        return unit(np.array(sums, np.float64))

    def unknown_words(self, sentence: str) -> Sequence[str]:
        """All that is no colour."""
        return [word for word in sentence.split() if word not in COLOURS]


def unit(rows: np.ndarray) -> Float32[np.ndarray, "n d"]:
    """Rows of length 1."""
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


def paint(path: Path, *colours: str) -> Path:
    """A picture with a stripe of each colour."""
    picture = Image.new("RGB", (12 * len(colours), 12))
    for number, colour in enumerate(colours):
        picture.paste(COLOURS[colour], (12 * number, 0, 12 * number + 12, 12))
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.save(path)
    return path
