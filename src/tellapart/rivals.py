"""The pictures of a folder that are most like a picture: those from which its caption must tell it apart.

Copies of the picture, which no words could tell apart, are no rivals; several copies of another picture are
one rival.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tellapart.arrays import Float32, Float64, Int64
from tellapart.data.picture_files import read_bytes
from tellapart.errors import TellapartError
from tellapart.retrievers.distinct import dot_products
from tellapart.retrievers.index import Pool, nearest
from tellapart.retrievers.retriever import Retriever, Watch, unwatched
from tellapart.retrievers.store.pictures import Pictures, gather_pictures


@dataclass(frozen=True, slots=True)
class Rivals:
    """A picture and those that are most like it, the most alike first.

    Attributes:
        paths: of the rivals.
        likeness: the cosine of each with the picture.
        vectors: first the picture's own, then those of the rivals.
        others: pictures in the folder beside the picture and its copies, each counted once.
        copies: other files in the folder with the same bytes as the picture.
        problems: one for each file that cannot be compared.
        notes: what else a person should know.
    """

    paths: tuple[Path, ...]
    likeness: tuple[float, ...]
    vectors: Float32[np.ndarray, "pictures d"]
    others: int
    copies: int
    problems: tuple[TellapartError, ...]
    notes: tuple[str, ...]

    def closeness(self, sentences: Float32[np.ndarray, "n d"]) -> Float64[np.ndarray, "n pictures"]:
        """The cosine of each sentence with the picture (first) and with each rival."""
        return dot_products(sentences.astype(np.float64), self.vectors.astype(np.float64))


def margins(closeness: Float64[np.ndarray, "n pictures"]) -> Float64[np.ndarray, " n"]:
    """How much closer each sentence is to the picture than to the rival it comes closest to."""
    return np.asarray(closeness[:, 0] - closeness[:, 1:].max(1))


def find_rivals(
    image: Path, folder: Path, retriever: Retriever, count: int, *, watch: Watch = unwatched
) -> Rivals:
    """The `count` pictures of a folder most like a picture, or all where there are fewer.

    The folder's vectors are kept, as those of a search are.
    """
    if count < 1:
        raise TellapartError(f"{count} neighbours were asked for", hint="ask for 1 or more")
    digest = hashlib.sha256(read_bytes(image)).digest()
    pictures = gather_pictures(folder, retriever, watch=watch)
    own = _rows_of(digest, pictures)
    vector = pictures.pool.vectors[own[0]] if len(own) else retriever.embed_images([image])[0]
    if not np.isfinite(vector).all():
        raise TellapartError(
            f"the retriever {retriever.name!r} has no place for {image}: it gave what is no number",
            hint="use another retriever",
        )
    rows, first = np.unique(pictures.pool.rows, return_index=True)
    first = np.sort(first[~np.isin(rows, own)])  # in the order of their names
    pool = Pool(pictures.pool.vectors, pictures.pool.rows[first])
    best = nearest(np.asarray(vector)[None], pool, count)
    places = first[best.places[0]].tolist()
    return Rivals(
        tuple(folder / pictures.names[place] for place in places),
        tuple(best.scores[0].tolist()),
        np.concatenate([np.asarray(vector)[None], pool.take(best.places[0])]),
        len(first),
        _copies(image, own, pictures),
        pictures.problems,
        pictures.notes,
    )


def _rows_of(digest: bytes, pictures: Pictures) -> Int64[np.ndarray, " r"]:
    """The rows of the folder's vectors that were made of these bytes; of those in use one at most."""
    same = (pictures.digests == np.frombuffer(digest, np.uint8)).all(axis=1)
    return np.intersect1d(np.flatnonzero(same), pictures.pool.rows)


def _copies(image: Path, own: Int64[np.ndarray, " r"], pictures: Pictures) -> int:
    """How many files of the folder hold the picture, beside its own."""
    places = np.flatnonzero(np.isin(pictures.pool.rows, own)).tolist()
    same = [pictures.listing.folder / pictures.names[place] for place in places]
    return sum(path.resolve() != image.resolve() for path in same)
