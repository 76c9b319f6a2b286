"""Pools of pictures that captions are held against: a whole split, its most similar pictures, or sets.

Pictures without captions may join as distractors, as in the pool of CapEnrich (Yao et al. 2023) that SMILE is
measured on. What looks alike is told by an encoder, the same for all judges, and by none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tellapart.arrays import Float, Int
from tellapart.data.picture_files import find_pictures
from tellapart.data.readers import read_dataset
from tellapart.errors import TellapartError
from tellapart.retrievers.pools import GROUP, distractor_sets, hard_pool, similar_pictures
from tellapart.retrievers.retriever import Watch, unwatched
from tellapart.storage import cache_folder
from tellapart.vision.cache import FeatureCache
from tellapart.vision.encoder import Encoder
from tellapart.vision.looking import look

HARD_SHARE = 5  # one picture in so many of a split makes its hard pool
SET = 9  # others in a picture's own set


@dataclass(frozen=True, slots=True)
class Pictures:
    """Picture files with what an encoder saw in them, and the digests of their content."""

    paths: tuple[Path, ...]
    features: Float[np.ndarray, "m d"]
    digests: tuple[bytes, ...]

    def __len__(self) -> int:
        return len(self.paths)

    def take(self, rows: Iterable[int]) -> Pictures:
        """Some of them, in this order."""
        chosen = list(rows)
        return Pictures(
            tuple(self.paths[row] for row in chosen),
            self.features[chosen],
            tuple(self.digests[row] for row in chosen),
        )

    def joined(self, others: Pictures) -> Pictures:
        """These, and then the others."""
        features = np.concatenate([self.features, others.features])
        return Pictures((*self.paths, *others.paths), features, (*self.digests, *others.digests))

    def strangers(self, others: Pictures) -> Pictures:
        """Those of the others that are none of these, each once, by their content."""
        first = {digest: row for row, digest in reversed(list(enumerate(others.digests)))}
        known = set(self.digests)
        return others.take(sorted(row for digest, row in first.items() if digest not in known))


@dataclass(frozen=True, slots=True)
class Pool:
    """Captions, and the pictures they are held against: first their own, in their order, then others."""

    name: str  # how signatures call the choice of pictures
    ids: tuple[str, ...]
    captions: tuple[str, ...]
    pictures: Pictures
    inside: int  # so many of the pictures, the first ones, are in the pool; the rest shows how hard it is
    sets: Int[np.ndarray, "n k"] | None = None  # rows of the others in each caption's own set; None: all
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many pictures a caption is held against, its own included."""
        return self.inside if self.sets is None else 1 + self.sets.shape[1]

    @property
    def is_chosen(self) -> bool:
        """Whether a caption is held against some only of all the pictures there are."""
        return self.size < len(self.pictures)

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "choice": self.name,
            "size": self.size,
            "captions": len(self.ids),
            "pictures_without_captions": self.inside - len(self.ids),
        }


def see_pictures(
    paths: Iterable[Path | TellapartError], encoder: Encoder, *, total: int = 0, watch: Watch = unwatched
) -> tuple[Pictures, list[TellapartError]]:
    """What an encoder sees in picture files, through the cache of features; and what cannot be seen."""
    (width,) = encoder.shapes["pooled"]
    if not width:
        raise TellapartError(
            f"the encoder {encoder.name} gives no pooled feature, by which pictures are compared",
            hint="take another encoder, such as efficientnet-lite2",
        )
    good, bad = [], []
    cache = FeatureCache(cache_folder(), encoder)
    for done, seen in enumerate(look(paths, encoder, parts=["pooled"], cache=cache), start=1):
        if isinstance(seen, TellapartError):
            bad.append(seen)
        else:
            good.append(seen)
        watch(done, total)
    features = [seen.features.pooled for seen in good]
    return (
        Pictures(
            tuple(seen.path for seen in good),
            np.concatenate(features) if features else np.empty((0, width), np.float16),
            tuple(seen.digest for seen in good),
        ),
        bad,
    )


def find_distractors(source: Path) -> list[Path | TellapartError]:
    """The pictures of a folder, or those that a caption file speaks of."""
    if source.is_dir():
        found = list(find_pictures([source]))
        if all(isinstance(path, TellapartError) for path in found):
            raise next(path for path in found if isinstance(path, TellapartError))
        return found
    return [example.path for example in read_dataset(source).strict()]


def whole_pool(
    ids: Sequence[str], captions: Sequence[str], own: Pictures, distractors: Pictures | None = None
) -> Pool:
    """All pictures that have captions, and all distractors that are none of them."""
    notes = []
    pictures = own
    if distractors is not None:
        others = own.strangers(distractors)
        pictures = own.joined(others)
        if len(others) < len(distractors):
            left = len(distractors) - len(others)
            notes.append(f"{left} distractors are pictures that are in the pool already: left out")
    _expect_two(len(pictures))
    return Pool("split", tuple(ids), tuple(captions), pictures, len(pictures), notes=tuple(notes))


def hardest_pool(
    pool: Pool, *, size: int | None = None, group: int = GROUP, watch: Watch = unwatched
) -> Pool:
    """The pictures with captions that are most like each other, and the distractors that look like them.

    Only captions of the pictures chosen are judged. Of the distractors, those stay that are among the
    `group` nearest of a picture chosen.

    Args:
        pool: a whole one.
        size: how many pictures with captions; one in five, but no less than a group, if None.
        group: pictures that are taken together (see `tellapart.retrievers.pools.hard_pool`).
        watch: told how many pictures were held against all others.
    """
    captioned = len(pool.ids)
    wanted = size or max(group, captioned // HARD_SHARE)
    chosen = hard_pool(pool.pictures.features[:captioned], wanted, group=group, watch=watch).tolist()
    features = pool.pictures.features
    inside = list(chosen)
    if captioned < len(features):
        inside += (captioned + similar_pictures(features[chosen], features[captioned:], group)).tolist()
    _expect_two(len(inside))
    outside = np.setdiff1d(np.arange(len(features)), inside).tolist()
    every = f"the hard pool is all of the {captioned} pictures that have captions"
    return Pool(
        f"hard-in-groups-of-{group}",
        tuple(pool.ids[row] for row in chosen),
        tuple(pool.captions[row] for row in chosen),
        pool.pictures.take([*inside, *outside]),
        len(inside),
        notes=(*pool.notes, every) if wanted >= captioned else pool.notes,
    )


def pool_of_sets(pool: Pool, *, others: int = SET, watch: Watch = unwatched) -> Pool:
    """The same pictures, but each caption is held against its own and the nearest others to that only."""
    sets = distractor_sets(pool.pictures.features, len(pool.ids), others, watch=watch)
    there = sets.shape[1]
    fewer = f"each set has {there} others and not {others}: there are no more pictures"
    notes = (*pool.notes, fewer) if there < others else pool.notes
    return replace(pool, name=f"nearest-{there}-of-each", sets=sets, notes=notes)


def _expect_two(pictures: int) -> None:
    if pictures < 2:
        raise TellapartError(
            "there is but one picture in the pool, which its caption finds whatever it says",
            hint="give captions of several pictures, a larger --size, or --distractors",
        )
