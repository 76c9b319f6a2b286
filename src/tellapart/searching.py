"""From a sentence or a picture to the nearest pictures of a folder: what `tellapart search` does.

The way of a sentence through a folder that was searched before imports neither torch nor onnxruntime: the
answer comes in less time than these take to start.

Pictures with the same bytes are all shown, the later ones marked as the same picture as the first. Pictures
that differ but whose vectors have a cosine of NEAR or more are marked as nearly the same: no two photographs
of Flickr8k come nearer than .97; copies of them saved again or enlarged stay above .99, those shrunk or
cropped do not. Which of them comes first is decided as for any other tie, by their names.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tellapart.arrays import Float32, Int64
from tellapart.data.picture_files import PICTURE_SUFFIXES, read_bytes
from tellapart.errors import TellapartError
from tellapart.retrievers.index import Nearest, nearest, pool_of
from tellapart.retrievers.retriever import Retriever, Watch, unwatched
from tellapart.retrievers.store.captions import Captions, read_caption_file, read_sidecars
from tellapart.retrievers.store.listing import Listing, list_pictures, without_ending
from tellapart.retrievers.store.pictures import Pictures, gather_pictures
from tellapart.retrievers.store.sentences import gather_sentences

NEAR = 0.99
COMPARED = 1000  # of the best hits, that are compared with one another

_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Query:
    """A sentence, or a picture's file."""

    text: str
    image: Path | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A picture that was found."""

    path: Path
    name: str  # its path inside the folder
    score: float  # the cosine with the query
    captions: tuple[str, ...] = ()
    same_as: Path | None = None  # a better hit, or the query, with the same bytes
    like: Path | None = None  # one that is nearly the same

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "image": str(self.path),
            "image_id": without_ending(self.name),
            "score": round(self.score, 6),
            "captions": list(self.captions),
            "same_as": str(self.same_as) if self.same_as else None,
            "like": str(self.like) if self.like else None,
        }


@dataclass(frozen=True, slots=True)
class CaptionHit:
    """A caption that was found, and the pictures that have it."""

    caption: str
    score: float
    images: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return {"caption": self.caption, "score": round(self.score, 6), "images": list(self.images)}


@dataclass(frozen=True, slots=True)
class Found:
    """The answer.

    Attributes:
        query: what was asked.
        folder: where.
        retriever: by whom.
        count: how many pictures were searched.
        hits: pictures, best first.
        captions: captions, best first, where the query is a picture.
        problems: one for each file that could not be searched.
        notes: what else a person should know.
    """

    query: Query
    folder: Path
    retriever: str
    count: int
    hits: tuple[Hit, ...]
    captions: tuple[CaptionHit, ...]
    problems: tuple[TellapartError, ...]
    notes: tuple[str, ...]

    def mark(self, hit: Hit) -> str:
        """In words, what a hit is the same as; "" where it is like no other."""
        other = hit.same_as or hit.like
        if other is None:
            return ""
        name = "the query" if other == self.query.image else str(other)
        return f"same picture as {name}" if hit.same_as else f"nearly the same as {name}"

    def to_json(self) -> dict[str, Any]:
        """As one JSON object."""
        return {
            "query": self.query.text,
            "kind": "picture" if self.query.image else "sentence",
            "folder": str(self.folder),
            "retriever": self.retriever,
            "pictures": self.count,
            "hits": [hit.to_json() for hit in self.hits],
            "captions": [caption.to_json() for caption in self.captions],
            "problems": [error.problem for error in self.problems],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class Wish:
    """How many are wanted, by which index, and the file of captions, where they are in one."""

    count: int = 10
    index: str = "auto"
    captions: Path | None = None


def search(
    query: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    k: int = 10,
    *,
    retriever: str | Retriever = "reranker",
    captions: str | os.PathLike[str] | None = None,
    index: str = "auto",
) -> Found:
    """The pictures of a folder nearest to a sentence, or to a picture; and for a picture, nearest captions.

    Vectors of pictures are kept in the cache and brought up to date when files come, go or change.

    Args:
        query: a sentence, or the path of a picture.
        folder: of pictures, with all folders in it.
        k: how many to find; all, where there are fewer.
        retriever: its name, as `load_retriever` takes it, or one that is loaded.
        captions: a file of captions; without one, those in .txt files beside the pictures count.
        index: "exact", "faiss" or "auto".
    """
    asked = read_query(query)
    seen = list_pictures(Path(folder))  # before anything takes long: there may be no such folder
    wish = Wish(k, index, Path(captions) if captions is not None else None)
    found = find(asked, Path(folder), named_retriever(retriever), wish, look=lambda: seen)
    if not found.count:
        raise nothing_to_search(found)
    return found


def named_retriever(name: str | Retriever) -> Retriever:
    """The retriever of that name."""
    if isinstance(name, Retriever):
        return name
    from tellapart.retrievers.loading import load_retriever  # only where it is asked for by name

    return load_retriever(name)


def nothing_to_search(found: Found) -> TellapartError:
    """What to say where every picture is bad."""
    return TellapartError(
        f"{found.folder}: none of its pictures can be searched; the first: {found.problems[0].problem}",
        hint=found.problems[0].hint,
    )


def read_query(query: str | os.PathLike[str]) -> Query:
    """Tell a sentence from a picture's file.

    A path object is a file. A text is one if it ends as pictures do and has a folder before its name or no
    space in it; or if there is a file of that name, with an ending or a folder before it.
    """
    if not isinstance(query, str):
        return Query(os.fspath(query), Path(query))
    text = query.strip()
    if not text:
        raise TellapartError("the query is empty", hint="say what to look for, or name a picture")
    ending = Path(text).suffix.lower()
    is_file = os.path.isfile(query)  # noqa: PTH113 - Path.is_file fails on long sentences
    is_name = "/" in text or not any(sign.isspace() for sign in text)
    if (ending in PICTURE_SUFFIXES and is_name) or (is_file and (ending or "/" in text)):
        return Query(query, Path(query if is_file else text))
    return Query(text)


def find(
    query: Query,
    folder: Path,
    retriever: Retriever,
    wish: Wish,
    *,
    look: Callable[[], Listing],
    watch: Watch = unwatched,
) -> Found:
    """Answer a query about a folder.

    Args:
        query: what is looked for.
        folder: where.
        retriever: by whom.
        wish: how many, and how.
        look: gives the folder as it is now; asked for only when all is ready that does not need it.
        watch: is told of the pictures and captions to be placed first.
    """
    if wish.count < 1:
        raise TellapartError(f"{wish.count} pictures were asked for", hint="ask for 1 or more")
    asked = _Asked.of(query, retriever)
    given = read_caption_file(wish.captions, look()) if wish.captions else None
    pictures = gather_pictures(folder, retriever, look=look, watch=watch)
    notes = [*asked.notes, *pictures.notes]
    if wish.count > len(pictures.names) > 0:
        notes.append(f"{folder} has {len(pictures.names)} pictures to search: all are shown")
    vector = asked.vector(pictures, retriever)
    if not np.isfinite(vector).all():
        raise TellapartError(
            f"the retriever {retriever.name!r} has no place for the query: it gave what is no number",
            hint="use another retriever, or ask otherwise",
        )
    best = nearest(vector[None], pictures.pool, wish.count, kind=wish.index)
    names = [pictures.names[place] for place in best.places[0].tolist()]
    captions = given or read_sidecars(pictures.listing, pictures.names if query.image else names)
    lines, note = _nearest_captions(vector, captions, retriever, wish, watch) if query.image else ((), "")
    return Found(
        query,
        folder,
        retriever.name,
        len(pictures.names),
        _hits(asked, vector, best, pictures, captions),
        lines,
        pictures.problems,
        tuple(dict.fromkeys(text for text in (*notes, *captions.notes, note) if text)),
    )


@dataclass(frozen=True, slots=True)
class _Asked:
    """A query that was found to make sense."""

    query: Query
    text_vector: Float32[np.ndarray, " d"] | None  # None: a picture
    digest: bytes  # of the picture
    notes: tuple[str, ...]

    @classmethod
    def of(cls, query: Query, retriever: Retriever) -> _Asked:
        """Refuse what is no picture, and words of which none is known, before any work is done."""
        if query.image is not None:
            from tellapart.data.images import decode

            data = read_bytes(query.image)
            decode(data, name=str(query.image), at_least=1)
            return cls(query, None, hashlib.sha256(data).digest(), ())
        notes = _about_words(query.text, retriever)
        return cls(query, retriever.embed_texts([query.text])[0], b"", notes)

    def row(self, pictures: Pictures) -> int | None:
        """The row of the folder's vectors that was made of the same bytes as the query."""
        if not self.digest:
            return None
        same = (pictures.digests == np.frombuffer(self.digest, np.uint8)).all(axis=1)
        rows = np.flatnonzero(same & np.isin(np.arange(len(same)), pictures.pool.rows))
        return int(rows[0]) if len(rows) else None

    def vector(self, pictures: Pictures, retriever: Retriever) -> Float32[np.ndarray, " d"]:
        """Where the query lies; a picture of the folder itself need not be looked at again."""
        if self.text_vector is not None:
            return self.text_vector
        row = self.row(pictures)
        if row is not None:
            return np.asarray(pictures.pool.vectors[row])
        assert self.query.image is not None
        return np.asarray(retriever.embed_images([self.query.image])[0])


def _about_words(text: str, retriever: Retriever) -> tuple[str, ...]:
    """A note about words that the retriever does not know; an error where it knows none."""
    words = _WORD.findall(text.lower())
    if not words:
        raise TellapartError(f"there is no word in the query {text!r}", hint="say what to look for")
    unknown = list(dict.fromkeys(retriever.unknown_words(text)))
    if not unknown:
        return ()
    said = ", ".join(repr(word) for word in unknown)
    parts = {part for word in unknown for part in _WORD.findall(word.lower())}
    if parts.issuperset(words):
        raise TellapartError(
            f"the retriever {retriever.name!r} knows no word of the query: {said}",
            hint="check the spelling, or use everyday words for what can be seen",
        )
    return (f"the retriever {retriever.name!r} does not know {said}: the other words decide",)


def _hits(
    asked: _Asked,
    vector: Float32[np.ndarray, " d"],
    best: Nearest,
    pictures: Pictures,
    captions: Captions,
) -> tuple[Hit, ...]:
    places = best.places[0]
    folder = pictures.listing.folder
    paths = [folder / pictures.names[place] for place in places.tolist()]
    same, like = _marks(asked, vector, pictures, places, paths)
    return tuple(
        Hit(path, pictures.names[place], score, captions.by_picture.get(pictures.names[place], ()), *marks)
        for place, path, score, *marks in zip(
            places.tolist(), paths, best.scores[0].tolist(), same, like, strict=True
        )
    )


def _marks(
    asked: _Asked,
    vector: Float32[np.ndarray, " d"],
    pictures: Pictures,
    places: Int64[np.ndarray, " k"],
    paths: Sequence[Path],
) -> tuple[list[Path | None], list[Path | None]]:
    """For each hit, what it is the same as, and what it is nearly the same as: the query, or a better hit."""
    rows: list[int | None] = pictures.pool.rows[places].tolist()
    named: list[Path] = list(paths)
    vectors = pictures.pool.take(places[:COMPARED])
    if asked.query.image is not None:
        rows, named = [asked.row(pictures), *rows], [asked.query.image, *named]
        vectors = np.concatenate([vector[None], vectors])
    near = np.tril(vectors @ vectors.T >= NEAR, -1)
    first: dict[int | None, Path] = {}
    same: list[Path | None] = []
    like: list[Path | None] = []
    for number, (row, path) in enumerate(zip(rows, named, strict=True)):
        same.append(first.get(row))
        first.setdefault(row, path)
        is_near = same[-1] is None and number < len(near) and bool(near[number].any())
        like.append(named[int(near[number].argmax())] if is_near else None)
    return same[-len(paths) :] if paths else [], like[-len(paths) :] if paths else []


def _nearest_captions(
    vector: Float32[np.ndarray, " d"], captions: Captions, retriever: Retriever, wish: Wish, watch: Watch
) -> tuple[tuple[CaptionHit, ...], str]:
    """The captions nearest to a picture, and a note where one is needed."""
    pictures = captions.pictures_by_caption()
    sentences = list(pictures)
    if not sentences:
        return (), ""
    rows, note = gather_sentences(sentences, captions.source, retriever, watch=watch)
    best = nearest(vector[None], pool_of(rows), wish.count, kind=wish.index)
    return tuple(
        CaptionHit(sentences[place], score, tuple(pictures[sentences[place]]))
        for place, score in zip(best.places[0].tolist(), best.scores[0].tolist(), strict=True)
    ), note
