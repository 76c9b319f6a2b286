"""Measures held against people: how well each agrees with human ratings of captions (Kendall's tau).

The two files of Flickr8k (Hodosh et al. 2013) name a caption by the image it was written for and its number
there, `X.jpg#2`; a JSONL file of one's own gives the text itself: {"image_id", "caption", "rating"}.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.stats import kendalltau

from tellapart.data.caption_file import Entry, read_captions
from tellapart.data.readers.document import unique_keys
from tellapart.data.readers.files import is_writable, read_lines
from tellapart.data.readers.records import stem
from tellapart.errors import TellapartError
from tellapart.metrics.material import Material, Watch, unwatched
from tellapart.metrics.score import Floats, Score, plain
from tellapart.metrics.sentences import Ints
from tellapart.scoring import Choice, measure

Tau = Literal["b", "c"]

LEVEL = 0.95
SEED = 0  # of the draws
_LINE = '{"image_id": "17", "caption": "…", "rating": 4}'


@dataclass(frozen=True, slots=True)
class Judgement:
    """What people said of one caption for one image."""

    image_id: str
    caption: str
    ratings: tuple[float, ...]
    where: str


@dataclass(frozen=True, slots=True)
class Agreement:
    """How well one measure agrees with people."""

    name: str
    tau: float
    signature: str
    low: float | None = None  # of 95 % of the draws of images
    high: float | None = None

    def to_json(self) -> dict[str, Any]:
        """As plain values."""
        interval = None if self.low is None or self.high is None else [plain(self.low), plain(self.high)]
        return {"tau": plain(self.tau), "interval": interval, "signature": self.signature}


@dataclass(frozen=True, slots=True)
class Panel:
    """Judgements with the references of their images."""

    judgements: tuple[Judgement, ...]
    references: tuple[tuple[str, ...], ...]
    images: tuple[Entry, ...]  # what stands in the file of references of each judgement's image
    own: int  # judged captions that were references of their image, and were left out

    @property
    def ratings(self) -> int:
        """How many ratings there are."""
        return sum(len(judgement.ratings) for judgement in self.judgements)


def read_panel(judgements: Path, references: Path, *, without: int | None = None) -> Panel:
    """Judgements and references; `without` is the number of a caption that no image keeps as a reference.

    A judged caption that is one of the references its image keeps is left out, as the literature does: a
    measure would find it perfect without looking.
    """
    captions = {entry.image_id: entry for entry in read_captions(references).entries}
    kept = {
        image_id: tuple(text for number, text in enumerate(entry.captions) if number != without)
        for image_id, entry in captions.items()
    }
    rows = _read(judgements)
    if _are_crowd(rows):
        rows = [replace(row, ratings=row.ratings[:1]) for row in rows]
    judged, own = [], 0
    for row in rows:
        if not kept.get(row.image_id):
            problem = "has no reference left" if row.image_id in kept else f"is not in {references}"
            raise TellapartError(
                f"{row.where}: image {row.image_id!r} {problem}",
                hint="name the references of the images that were judged",
            )
        if _is_own(row, kept[row.image_id], without):
            own += 1
        else:
            judged.append(Judgement(row.image_id, _text(row, captions), row.ratings, row.where))
    if not judged:
        raise TellapartError(f"{judgements}: there is no judgement in it", hint="name a file of judgements")
    ids = [judgement.image_id for judgement in judged]
    return Panel(tuple(judged), tuple(map(kept.__getitem__, ids)), tuple(map(captions.__getitem__, ids)), own)


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of a file of judgements: its caption as a text, or as that of an image and its number there."""

    where: str
    image_id: str
    caption: str | tuple[str, int]
    ratings: tuple[float, ...]


def _is_own(row: _Row, kept: Sequence[str], without: int | None) -> bool:
    if isinstance(row.caption, str):
        return row.caption in kept
    return row.caption[0] == row.image_id and row.caption[1] != without


def _text(row: _Row, captions: Mapping[str, Entry]) -> str:
    if isinstance(row.caption, str):
        return row.caption
    image_id, number = row.caption
    texts = captions[image_id].captions if image_id in captions else ()
    if number >= len(texts):
        raise TellapartError(
            f"{row.where}: caption {number} of image {image_id!r} is not among the references",
            hint="name the file of all captions, in their order; they are counted from 0",
        )
    return texts[number]


def _read(path: Path) -> list[_Row]:
    lines = read_lines(path)
    for problem in lines.problems():
        raise problem.error()
    return [
        (_of_json if line.lstrip().startswith("{") else _of_columns)(line, lines.where(number))
        for number, line in lines.good()
    ]


def _of_columns(line: str, where: str) -> _Row:
    """Of experts `image, caption id, rating …`; of the crowd `image, caption id, share of yes, yes, no`."""
    image, _, rest = line.partition("\t")
    caption, _, ratings = rest.partition("\t")
    writer, _, number = caption.rpartition("#")
    if not image or not writer or not number.isdecimal():
        raise TellapartError(
            f"{where}: this is no judgement of a caption",
            hint="expected tabs between image, caption id (X.jpg#2) and ratings",
        )
    return _Row(where, stem(image), (stem(writer), int(number)), _ratings(ratings.split("\t"), where))


def _of_json(line: str, where: str) -> _Row:
    try:
        fields = json.loads(line, object_pairs_hook=unique_keys)
    except (ValueError, RecursionError) as error:
        raise TellapartError(f"{where}: the line is not JSON: {error}", hint=f"write {_LINE}") from error
    image_id, caption = fields.get("image_id"), fields.get("caption")
    if type(image_id) not in (int, str) or not isinstance(caption, str) or not is_writable(caption):
        raise TellapartError(f"{where}: this is no judgement of a caption", hint=f"write {_LINE}")
    ratings = fields.get("ratings", fields.get("rating"))
    return _Row(where, str(image_id), caption, _ratings(ratings, where))


def _ratings(values: object, where: str) -> tuple[float, ...]:
    listed: list[Any] = values if isinstance(values, list) else [values]
    try:
        ratings = tuple(float(value) for value in listed if not isinstance(value, bool))
    except (ValueError, TypeError):
        ratings = ()
    if not ratings or len(ratings) != len(listed) or not all(map(math.isfinite, ratings)):
        raise TellapartError(f"{where}: a rating is missing or no number", hint="drop the line or mend it")
    return ratings


def _are_crowd(rows: Sequence[_Row]) -> bool:
    """Whether every first of three numbers is the share of the second in the other two.

    On the experts' scale, which begins at 1, none can be.
    """
    return bool(rows) and all(
        not isinstance(row.caption, str) and len(row.ratings) == 3 and _is_share(*row.ratings) for row in rows
    )


def _is_share(share: float, yes: float, no: float) -> bool:
    return yes + no > 0 and math.isclose(share, yes / (yes + no), abs_tol=0.01)


def usual_tau(path: Path) -> tuple[Tau, int | None]:
    """How the literature treats a file: its variant of tau, and the reference that is left out.

    Experts' ratings fall on few levels, hence tau-c. The crowd judged captions #2 only, so that those leave
    the references of every image, and its shares of yes call for tau-b.
    """
    return ("b", 2) if _are_crowd(_read(path)) else ("c", None)


def correlate(
    panel: Panel,
    choice: Choice,
    *,
    tau: Tau,
    others: Sequence[Score] = (),
    draws: int = 0,
    watch: Watch = unwatched,
) -> tuple[list[Agreement], tuple[str, ...]]:
    """Kendall's tau of each measure with every single rating, and what is worth knowing about it.

    Args:
        panel: what people said.
        choice: the measures.
        tau: the variant.
        others: measured already, with a value for each judgement.
        draws: of images, so many, from which each tau has an interval.
        watch: told what is being done.
    """
    material = Material(
        tuple(judgement.where for judgement in panel.judgements),
        tuple((judgement.caption,) for judgement in panel.judgements),
        panel.references,
    )
    scores = measure(material, choice, watch=watch)
    repeats = [len(judgement.ratings) for judgement in panel.judgements]
    ratings = np.array([rating for judgement in panel.judgements for rating in judgement.ratings])
    row = np.repeat(np.arange(len(repeats)), repeats)
    rows_of = _rows_by_image(panel, row)
    found, remarks = [], [*scores.notes, *(note for score in others for note in score.notes)]
    measured = [*scores.items(), *((score.name, score) for score in others)]
    for done, (name, score) in enumerate(measured):
        watch("asking people", done, len(measured))
        if score.each is None or not np.isfinite(score.each).all():
            remarks.append(f"{name} was left out: it has no value of every single caption")
            continue
        values = score.each[row]
        agreement = _tau(values, ratings, tau)
        if not math.isfinite(agreement):
            remarks.append(f"{name} has no tau: its values or the ratings are all the same")
        interval = _interval(values, ratings, rows_of, tau=tau, draws=draws)
        found.append(Agreement(name, agreement, f"{score.signature}|tau:{tau}", *interval))
    remarks += [f"{name} was left out: {why}" for name, why in scores.skipped.items()]
    return found, tuple(remarks)


def _tau(values: Floats, ratings: Floats, variant: Tau) -> float:
    if len(values) < 2:
        return math.nan
    return float(kendalltau(values, ratings, variant=variant).statistic)


def _rows_by_image(panel: Panel, row: Ints) -> list[Ints]:
    images = {
        image: number for number, image in enumerate(dict.fromkeys(j.image_id for j in panel.judgements))
    }
    owner = np.array([images[judgement.image_id] for judgement in panel.judgements])[row]
    order = np.argsort(owner, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(owner[order])) + 1)


def _interval(
    values: Floats, ratings: Floats, rows_of: Sequence[Ints], *, tau: Tau, draws: int
) -> tuple[float | None, float | None]:
    """From images drawn anew, each with all its judgements: those of one image hang together."""
    if not draws:
        return None, None
    chance = np.random.default_rng(SEED)
    found = []
    for _ in range(draws):
        drawn = np.concatenate([rows_of[image] for image in chance.integers(0, len(rows_of), len(rows_of))])
        found.append(_tau(values[drawn], ratings[drawn], tau))
    known = [value for value in found if math.isfinite(value)]  # a draw may hold but one rating
    if not known:
        return None, None
    low, high = np.quantile(known, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
