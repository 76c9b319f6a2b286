"""Files of captions brought together: candidates with their references, training captions and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tellapart.data.caption_file import CaptionFile, Entry, read_candidates, read_captions
from tellapart.data.named_pictures import by_name, of_name, pictures_of
from tellapart.errors import TellapartError
from tellapart.metrics.material import Material
from tellapart.metrics.score import Floats

_ROWS = 1024  # of a matrix looked at together: it may be larger than memory


def read_material(
    candidates: Path,
    references: Path | None = None,
    *,
    train: Path | None = None,
    images: Path | None = None,
    similarity: Path | None = None,
    features: Path | None = None,
) -> tuple[Material, tuple[str, ...]]:
    """The material of some files, in the order of the candidates, and what is worth knowing about it."""
    captions = read_candidates(candidates)
    entries = captions.entries
    ids = tuple(entry.image_id for entry in entries)
    remarks: list[str] = []
    matched: list[Entry] | None = None
    if references is not None:
        found = read_captions(references)
        matched = match(captions, found)
        remarks += _left_over(matched, found)
    material = Material(
        ids,
        tuple(entry.captions for entry in entries),
        None if matched is None else tuple(entry.captions for entry in matched),
        None if train is None else _training(train),
        None if images is None else pictures_of(images, entries, matched),
        None if similarity is None else read_matrix(similarity, ids=ids),
        None if features is None else read_matrix(features),
    )
    return material, tuple(remarks)


def match(candidates: CaptionFile, references: CaptionFile) -> list[Entry]:
    """The references of each candidate, by image id, else by the name of the picture's file."""
    by_id = {entry.image_id: entry for entry in references.entries}
    strangers = [entry for entry in candidates.entries if entry.image_id not in by_id]
    named = by_name((entry.name, entry) for entry in references.entries if strangers and entry.name)
    renamed = {
        entry.image_id: own
        for entry in strangers
        if (own := of_name(entry, [entry.name, entry.image_id], named)) is not None
    }
    missing = [entry for entry in strangers if entry.image_id not in renamed]
    if missing:
        raise TellapartError(
            f"{missing[0].where}: image {missing[0].image_id!r} is not in {references.path}"
            f" ({len(missing)} of {len(candidates.entries)} are not)",
            hint=f"that file calls its first image {references.entries[0].image_id!r}",
        )
    found = [by_id.get(entry.image_id) or renamed[entry.image_id] for entry in candidates.entries]
    for entry, own in zip(candidates.entries, found, strict=True):
        if not own.captions:
            raise TellapartError(
                f"{own.where}: image {own.image_id!r} has no references",
                hint=f"add some, or drop its candidate at {entry.where}",
            )
    if renamed:
        _expect_distinct(found, candidates)
    return found


def _expect_distinct(found: Sequence[Entry], candidates: CaptionFile) -> None:
    seen: dict[str, Entry] = {}
    for entry, own in zip(candidates.entries, found, strict=True):
        other = seen.setdefault(own.image_id, entry)
        if other is not entry:
            raise TellapartError(
                f"{entry.where}: {entry.image_id!r} and {other.image_id!r} are one image, "
                f"called {own.image_id!r} at {own.where}",
                hint="drop one of the two",
            )


def _left_over(matched: Sequence[Entry], references: CaptionFile) -> list[str]:
    """A word about images that ought to have a candidate: those of the same splits."""
    taken = {entry.image_id for entry in matched}
    splits = {entry.split for entry in matched}
    left = [entry for entry in references.entries if entry.split in splits and entry.image_id not in taken]
    if not left:
        return []
    share = f"{len(left)} of the {len(left) + len(matched)} images in {references.path.name}"
    return [f"no candidate for {share} (first: {left[0].image_id!r}): left out"]


def _training(path: Path) -> tuple[tuple[str, ...], ...]:
    """Captions that were trained on: those of the split "train", where the file has splits."""
    entries = read_captions(path).entries
    kept = [entry for entry in entries if entry.split == "train"] or entries
    return tuple(entry.captions for entry in kept if entry.captions)


def read_matrix(path: Path, *, ids: Sequence[str] | None = None) -> Floats:
    """A matrix of finite numbers from a .npy file, of which only what is looked at need be in memory.

    Args:
        path: the file.
        ids: the images that its rows are of, where there has to be one row for each.
    """
    try:
        matrix = np.lib.format.open_memmap(path, mode="r")
    except FileNotFoundError as error:
        raise TellapartError(f"{path} does not exist", hint="check the spelling of the path") from error
    except (ValueError, OSError) as error:
        raise TellapartError(
            f"{path}: this is no matrix: {error}", hint="write it with numpy.save"
        ) from error
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiu":
        raise TellapartError(f"{path}: this is no matrix of numbers", hint="rows are captions or pictures")
    if ids is not None and len(matrix) != len(ids):
        raise TellapartError(
            f"{path}: the matrix has {len(matrix)} rows, and there are {len(ids)} candidates",
            hint="one row a candidate, in the order of their file",
        )
    for first in range(0, len(matrix), _ROWS):
        bad = np.argwhere(~np.isfinite(matrix[first : first + _ROWS]))
        if len(bad):
            row, column = first + int(bad[0, 0]), int(bad[0, 1])
            whose = "" if ids is None else f" (image {ids[row]!r})"
            raise TellapartError(
                f"{path}: row {row}{whose}, column {column} is {matrix[row, column]}, which is no score",
                hint="counted from 0; mend what wrote the matrix",
            )
    return matrix
