"""Do the captions of a folder tell its pictures apart? What `tellapart audit` does, for captions by anyone.

A judge looks for the picture of each caption, among all pictures of the folder and among those most like it.
What looks alike is told by the judge's own image vectors. Pictures without captions are looked through as
well: a caption must tell its picture from these, too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from tellapart.audit_findings import Audit, Confused, Recalls
from tellapart.captioned_folder import CaptionedFolder, bring_together
from tellapart.confusion import Surroundings, choose, confused_pairs
from tellapart.data.caption_file import Entry, read_candidates
from tellapart.errors import TellapartError
from tellapart.judges import Author, cautions, find_author, judge_by
from tellapart.metrics.boilerplate import SHARE
from tellapart.retrievers.loading import load_retriever
from tellapart.retrievers.retriever import Retriever
from tellapart.retrievers.rivals import Contest, Standing, first_alike, hold_against
from tellapart.retrievers.store.listing import list_pictures
from tellapart.retrievers.store.pictures import Pictures, gather_pictures
from tellapart.retrievers.store.sentences import gather_sentences
from tellapart.wording import look_at_words
from tellapart.written_captions import captioner_of

PAIRS = 20  # of each kind of confused pairs, for which words are looked for

Watch = Callable[[str, int, int], None]


def unwatched(what: str, done: int, total: int) -> None:
    """Where nobody wants to know."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How captions are audited."""

    contest: Contest = field(default_factory=Contest)
    pairs: int = PAIRS
    share: float = SHARE  # of the captions, from which on a phrase is boiler-plate
    captioner: str = ""  # who wrote the captions, as it is called on the command line; "": as the file says


def audit(
    captions: str | os.PathLike[str],
    images: str | os.PathLike[str] | None = None,
    *,
    by: str | Retriever = "judge",
    terms: Terms | None = None,
    watch: Watch = unwatched,
) -> Audit:
    """Whether the captions of a folder find their pictures, and what is wrong with those that do not.

    Args:
        captions: a file of captions in any format that `tellapart score` takes, or a folder of .txt files.
        images: the folder of pictures, with all folders in it; that of the .txt files if None.
        by: who looks for the pictures: a retriever's name, or one that is loaded.
        terms: how.
        watch: told what is done, and how far it is.
    """
    terms, source = terms or Terms(), Path(captions)
    folder = _folder(source, images)
    entries = read_candidates(source).entries
    author = _author(source, terms.captioner)
    listing = list_pictures(folder)  # before anything takes long: there may be no such folder
    retriever = by if isinstance(by, Retriever) else load_retriever(by)
    pictures = gather_pictures(
        folder, retriever, look=lambda: listing, watch=partial(watch, "looking at pictures")
    )
    unseen = sorted(set(pictures.listing.names) - set(pictures.names))
    material = bring_together(entries, folder, pictures.names, unseen, beside=source.parent)
    _expect_some(material, pictures, source)
    surroundings, note = _place(material, pictures, source, retriever, watch)
    standing = _look(surroundings, terms, watch)
    confused, astray = _confusions(surroundings, standing, terms, watch)
    judge, said = judge_by(retriever), [captioned.caption for captioned in material.captions]
    notes = (
        *_about_files(entries, material),
        *_about_pool(material, standing, terms.contest),
        *(f"{judge.name}: {remark}: it may find them generic" for remark in judge.remark(said)),
        *pictures.notes,
        note,
    )
    return Audit(
        source=source,
        material=material,
        judge=judge,
        author=author,
        cautions=tuple(cautions(judge, author)),
        contest=terms.contest,
        standing=standing,
        recalls=None if standing is None else Recalls.of(standing),
        confused=confused,
        astray=astray,
        wording=look_at_words(material.captions, share=terms.share),
        unknown=tuple(tuple(retriever.unknown_words(text)) for text in said),
        near_duplicates=_near_duplicates(surroundings, terms, watch),
        problems=pictures.problems,
        notes=tuple(filter(None, dict.fromkeys(notes))),
    )


def _folder(captions: Path, images: str | os.PathLike[str] | None) -> Path:
    if images is not None:
        return Path(images)
    if captions.is_dir():
        return captions
    raise TellapartError(
        f"it is not said where the pictures of {captions} are", hint="name their folder with --images"
    )


def _author(source: Path, named: str) -> Author | None:
    """Who wrote the captions; one that the user names must be at hand."""
    if named:
        return find_author(named)
    with suppress(TellapartError):
        written_by = captioner_of(source)
        return find_author(written_by) if written_by else None
    return None


def _expect_some(material: CaptionedFolder, pictures: Pictures, source: Path) -> None:
    if not material.names:
        first = pictures.problems[0]
        raise TellapartError(
            f"{material.folder}: none of its pictures can be read; the first: {first.problem}",
            hint=first.hint,
        )
    if material.captions:
        return
    if not material.left_out:
        raise TellapartError(f"{source}: none of its captions has a word", hint="name a file of captions")
    first_out = material.left_out[0]
    raise TellapartError(
        f"{source}: none of its captions is of a picture in {material.folder}; the first: {first_out.why}",
        hint=f"name the folder of the pictures; this one holds {material.names[0]!r}, for example",
    )


def _place(
    material: CaptionedFolder, pictures: Pictures, source: Path, retriever: Retriever, watch: Watch
) -> tuple[Surroundings, str]:
    """Captions and pictures in the judge's space, and a note where one is needed."""
    said = [captioned.caption for captioned in material.captions]
    sentences = {sentence: row for row, sentence in enumerate(dict.fromkeys(said))}
    rows, note = gather_sentences(
        list(sentences), source, retriever, watch=partial(watch, "reading captions")
    )
    vectors = pictures.pool.block(0, len(pictures.pool))
    texts = rows[[sentences[sentence] for sentence in said]]
    return Surroundings(material.captions, texts, vectors, retriever), note


def _look(surroundings: Surroundings, terms: Terms, watch: Watch) -> Standing | None:
    """What each caption finds; nothing where there is but one picture, which any caption would find."""
    if len(surroundings.pictures) < 2:
        return None
    return hold_against(
        surroundings.texts,
        surroundings.pictures,
        surroundings.own,
        terms.contest,
        watch=partial(watch, "looking for the picture of each caption"),
    )


def _confusions(
    surroundings: Surroundings, standing: Standing | None, terms: Terms, watch: Watch
) -> tuple[tuple[Confused, ...], tuple[Confused, ...]]:
    """Pairs of look-alikes that captions confuse, and captions that are farthest astray."""
    if standing is None:
        return (), ()
    alike, astray = choose(surroundings.captions, standing, terms.pairs)
    watching = partial(watch, "looking for words that would help")
    pairs = confused_pairs(surroundings, standing, [*alike, *astray], watch=watching)
    return pairs[: len(alike)], pairs[len(alike) :]


def _near_duplicates(surroundings: Surroundings, terms: Terms, watch: Watch) -> tuple[tuple[int, ...], ...]:
    """Groups of two pictures or more, the largest first."""
    watching = partial(watch, "looking for near-duplicates")
    alike = first_alike(surroundings.pictures, terms.contest.near, watch=watching)
    order = np.argsort(alike, kind="stable")
    cuts = np.flatnonzero(np.diff(alike[order])) + 1
    groups = [tuple(group.tolist()) for group in np.split(order, cuts) if len(group) > 1]
    return tuple(sorted(groups, key=lambda group: -len(group)))


def _about_files(entries: Sequence[Entry], material: CaptionedFolder) -> list[str]:
    """Captions without pictures, pictures without captions, and captions that were not looked at."""
    notes = []
    if out := material.left_out:
        are = "is" if len(out) == 1 else "are"
        notes.append(f"{_counted(len(out), 'caption')} {are} left out: {_first([each.why for each in out])}")
    for places, what in (
        (material.uncaptioned, "no caption"),
        (material.wordless, "a caption without words"),
    ):
        if places:
            has = "has" if len(places) == 1 else "have"
            names = _first([material.names[place] for place in places])
            notes.append(
                f"{_counted(len(places), 'picture')} {has} {what}: looked through all the same ({names})"
            )
    several = sum(len(entry.captions) > 1 for entry in entries)
    if several:
        has = "has" if several == 1 else "have"
        notes.append(f"{_counted(several, 'image')} {has} several captions: the first is audited")
    return notes


def _about_pool(material: CaptionedFolder, standing: Standing | None, contest: Contest) -> list[str]:
    if standing is None:
        return ["there is but one picture, which its caption finds whatever it says: nothing to be found out"]
    notes = []
    if contest.neighbours > len(material.names) - 1:
        notes.append(f"each picture has but {_counted(len(material.names) - 1, 'neighbour')}")
    alone = int((standing.rivals == 0).sum())
    if alone:
        notes.append(
            f"{_counted(alone, 'caption')} of pictures that all others are near-duplicates of: "
            "no words could tell them apart"
        )
    return notes


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _first(texts: Sequence[str]) -> str:
    more = f"; and {len(texts) - 1:,} more" if len(texts) > 1 else ""
    return f"{texts[0]}{more}"
