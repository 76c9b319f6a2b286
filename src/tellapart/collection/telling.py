"""The whole way: from a folder of pictures to captions that tell each from those most like it.

First every picture is seen and given candidates (`gathering`); then each one's rivals are known
(`neighbourhood`), unless it is told from none, and one of its candidates is chosen against them (`choosing`).
A caption depends on the picture, on its rivals and on the settings: where all of these are as they were, an
earlier one is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tellapart.arrays import Float32
from tellapart.captioning import Candidate, Captioned, Describer, Wish
from tellapart.collection.cases import Case
from tellapart.collection.choosing import FIRST, Chooser
from tellapart.collection.gathering import Described, Gathering, Listed, Picture, read_candidates
from tellapart.collection.neighbourhood import Neighbourhoods, find_neighbourhoods
from tellapart.collection.places import open_places
from tellapart.collection.speaker import TOGETHER, Speaker
from tellapart.errors import TellapartError
from tellapart.outputs.journal import Journal, fingerprint
from tellapart.reranking.margin import Terms

CHOICE = 2  # raised when the same settings would choose other captions: earlier lines then hold no more
ABOUT = ("content", "found", "neighbours", "attempts", "drawn", "doubles", "faded")
"""Fields of a line, beside its candidates; `faded` is the earlier caption that does not find it any more."""

Watch = Callable[[str, int, int], None]
"""What is being done, how many of how many are done."""


@dataclass(frozen=True, slots=True)
class Told:
    """A picture with the caption that was chosen for it.

    Attributes:
        captioned: the picture, its caption, and the other candidates behind it.
        key: fingerprint of what the caption depends on.
        is_kept: whether the caption is one of an earlier run that still holds.
        has_faded: whether an earlier caption found the picture, and the collection has changed so that it
            does no more; the caption may be another by now that does.
        earlier: captions that the picture had from earlier runs.
    """

    captioned: Captioned
    key: str
    is_kept: bool
    has_faded: bool
    earlier: tuple[str, ...] = ()


def generation_settings(describer: Describer, wish: Wish) -> dict[str, object]:
    """What candidates depend on, beside the picture."""
    return {
        "model": describer.name,
        "weights": describer.fingerprint,
        "beam": wish.width,
        "most_candidates": wish.keep,
        "max_words": wish.max_words,
        "length_penalty": wish.length_penalty,
        "words": asdict(wish.words),
    }


def settings_of(speaker: Speaker) -> dict[str, object]:
    """What all captions of a run have in common; it stands in every line of its journal."""
    plan = speaker.plan
    return generation_settings(speaker.describer, speaker.wish) | {
        "seed": plan.seed,
        "apart": plan.apart,
        "retriever": speaker.retriever.identity,
        "most_neighbours": plan.rivals,
        "effort": plan.effort,
        "fit": plan.fit,
        "agree": plan.agree,
        "choice": CHOICE,
    }


def tell_apart(
    listed: Sequence[Listed],
    speaker: Speaker,
    notes: Journal,
    *,
    journal: Journal | None,
    watch: Watch,
) -> Iterator[Told | TellapartError]:
    """Captions of all pictures that are to have one, in order; what cannot be seen is told first.

    Args:
        listed: the pictures.
        speaker: who captions them.
        notes: where candidates are written down on the way.
        journal: captions of earlier runs, if there are any; it is read, not written.
        watch: told what is being done.
    """
    watch("looking", 0, len(listed))
    with open_places(speaker.retriever.width) as places:
        gathering = Gathering(speaker, notes, _earlier(journal), places)
        yield from gathering.walk(listed, watch=lambda done, total: watch("looking", done, total))
        vectors = places.look()
    pictures = gathering.pictures
    around = Neighbourhoods.nobody(len(pictures))
    if speaker.plan.rivals:
        around = find_neighbourhoods(
            vectors,
            [picture.content for picture in pictures],
            speaker.plan.rivals,
            watch=lambda done, total: watch("comparing", done, total),
        )
        places.let_go()
    # Captions are compared by length as the beam does.
    terms = Terms(fit_weight=speaker.plan.fit, length_penalty=speaker.wish.length_penalty)
    teller = _Teller(gathering, vectors, around, Chooser(speaker, terms), journal)
    wanted = [row for row, picture in enumerate(pictures) if picture.is_wanted]
    watch("captioning", 0, len(wanted))
    for first in range(0, len(wanted), TOGETHER):
        rows = wanted[first : first + TOGETHER]
        yield from teller.tell(rows)
        places.let_go()
        watch("captioning", first + len(rows), len(wanted))


def _earlier(journal: Journal | None) -> Callable[[Picture], Described | None]:
    def find(picture: Picture) -> Described | None:
        fields = journal.current(picture.image_id) if journal else None
        if fields is None or fields["content"] != picture.content:
            return None
        # What further attempts gave is not taken along: a collection that grows is to get the captions that
        # it would get at once.
        known = Described.read(fields)
        first = [Candidate(one.caption, one.logprob) for one in known.candidates if one.by == FIRST]
        return Described(first, known.drawn) if first else None

    return find


def kept_caption(path: Path, fields: Mapping[str, Any]) -> Captioned:
    """What a line of a journal says of a picture."""
    about = {name: fields[name] for name in ABOUT if name in fields}
    return Captioned(path, fields["image_id"], tuple(read_candidates(fields)), about)


@dataclass(frozen=True, slots=True)
class _Teller:
    """Chooses captions for some pictures at a time."""

    gathering: Gathering
    vectors: Float32[np.ndarray, "n d"]  # of its pictures
    around: Neighbourhoods
    chooser: Chooser
    journal: Journal | None

    def tell(self, rows: Sequence[int]) -> Iterator[Told]:
        """The captions of these pictures, chosen now or kept."""
        keys = {row: self._key(row) for row in rows}
        kept = {row: self._kept(row, keys[row]) for row in rows}
        cases = {row: self._case(row) for row in rows if kept[row] is None}
        pictures = self.gathering.pictures
        rivals = {row: [pictures[other] for other in self.around.rivals_of(row)] for row in cases}
        self.chooser.choose(list(cases.values()), rivals)
        faded = self._faded(list(cases.values()))
        for row in rows:
            found = kept[row] or self._captioned(cases[row], faded.get(row))
            yield Told(found, keys[row], kept[row] is not None, self._has_faded(found, kept[row] is not None))

    def _key(self, row: int) -> str:
        pictures = self.gathering.pictures
        return fingerprint(
            {
                "content": pictures[row].content,
                "rivals": [pictures[other].content for other in self.around.rivals_of(row)],
                "doubles": sorted(pictures[other].content for other in self.around.doubles_of(row)),
            }
        )

    def _kept(self, row: int, key: str) -> Captioned | None:
        """The caption of an earlier run, where all that it depends on is as it was."""
        picture = self.gathering.pictures[row]
        if self.journal is None or not self.journal.holds(picture.image_id, key):
            return None
        fields = self.journal.fields(picture.image_id)
        assert fields is not None
        return kept_caption(picture.path, fields)

    def _case(self, row: int) -> Case:
        pictures, rivals = self.gathering.pictures, self.around.rivals_of(row)
        picture = pictures[row]
        places = self.vectors[[row, *rivals]]
        of_rivals = [self._captions_of(pictures[other]) for other in rivals]
        described = self.gathering.described(picture)
        longest = self.gathering.speaker.wish.max_words
        case = Case(row, picture, places, of_rivals, described.drawn, longest)
        case.add(described.candidates, by=FIRST)
        return case

    def _captions_of(self, rival: Picture) -> frozenset[str]:
        """What came into question first for a rival; for one that is to have no caption, nothing did."""
        found = self.gathering.described(rival).candidates if rival.is_wanted else ()
        return frozenset(candidate.caption for candidate in found)

    def _captioned(self, case: Case, faded: str | None) -> Captioned:
        """What is said of a picture, and where that came from."""
        picture = case.picture
        names = [self.gathering.pictures[other].image_id for other in self.around.rivals_of(case.row)]
        closeness = self.around.closeness[case.row].tolist()
        about = {
            "content": picture.content,
            "found": case.is_found,
            "neighbours": [
                {"image_id": name, "closeness": round(value, 4)}
                for name, value in zip(names, closeness, strict=False)
            ],
            "attempts": [attempt.to_json() for attempt in case.attempts],
        }
        if case.drawn:
            about["drawn"] = list(case.drawn)
        if doubles := self.around.doubles_of(case.row):
            about["doubles"] = [self.gathering.pictures[other].image_id for other in doubles]
        if faded is not None:
            about["faded"] = faded
        return Captioned(picture.path, picture.image_id, tuple(case.candidates), about)

    def _faded(self, cases: Sequence[Case]) -> dict[int, str]:
        """Earlier captions, by rows, that found a picture which is still the same, and find it no more."""
        if self.journal is None:
            return {}
        before = [(case, self.journal.fields(case.picture.image_id)) for case in cases]
        found = [
            (case, str(fields["caption"]))
            for case, fields in before
            if fields is not None and fields["found"] and fields["content"] == case.picture.content
        ]
        vectors = self.chooser.speaker.read([caption for _, caption in found])
        return {
            case.row: caption
            for (case, caption), vector in zip(found, vectors, strict=True)
            if not case.is_found_by(vector)
        }

    def _has_faded(self, captioned: Captioned, is_kept: bool) -> bool:
        """Of a caption that is kept, only if its run was broken off before it could tell."""
        is_told = is_kept and self.journal is not None and not self.journal.earlier(captioned.image_id)
        return "faded" in captioned.about and not is_told
