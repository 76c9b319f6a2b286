"""A page that explains a caption: its words, its rivals, what words cost, where the captioner looked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader, select_autoescape

from tellapart.data.images import read_picture
from tellapart.errors import TellapartError
from tellapart.explanation import Explanation, Look
from tellapart.report.heat import colour
from tellapart.report.thumbnails import Thumbnail, as_text, thumbnail
from tellapart.storage import new_file
from tellapart.word_penalties import END, Guess, Penalty

SIDE = 720  # pixels of the longer side of the picture itself
MAP_SIDE = 300  # of a map


@dataclass(frozen=True, slots=True)
class Part:
    """A word, what it adds, and how far its bar and colour reach."""

    word: str
    drop: str  # with its sign; "" where there is none
    other: str  # of closeness, where `drop` is of the margin
    share: float  # of the greatest drop, from -1 to 1


@dataclass(frozen=True, slots=True)
class Row:
    """What a word costs: two bars, as shares of the longest, and what was likelier."""

    word: str
    mle: str
    smile: str
    mle_share: float
    smile_share: float
    likeliest: str
    likeliest_own: str


@dataclass(frozen=True, slots=True)
class Card:
    """A picture, in the order in which the caption finds them."""

    place: int
    picture: Thumbnail | None  # None: gone since it was looked at
    name: str
    score: str
    kind: str  # "own", "strongest" or ""
    remark: str


@dataclass(frozen=True, slots=True)
class Map:
    """Where the captioner looked when it wrote a word."""

    word: str
    picture: Thumbnail
    remark: str


def write_explain_page(path: Path, found: Explanation) -> None:
    """Write the page; it needs no other file and no network."""
    pages = Environment(loader=PackageLoader("tellapart.report"), autoescape=select_autoescape(["html"]))
    parts = _parts(found)
    pieces = pages.get_template("explain.html").generate(
        found=found,
        name=found.image.name,
        picture=_small(found.image, SIDE),
        standing=_standing(found),
        parts=parts,
        ranked=[parts[place] for place in found.ranking],
        rows=_rows(found),
        total=_total(found),
        cards=list(_cards(found)),
        helpful=[(each.word, _signed(each.gain)) for each in found.helpful],
        maps=list(_maps(found)),
    )
    # The name of a picture need not be text: what cannot be written is spelt out.
    with (
        new_file(path) as temporary,
        temporary.open("w", encoding="utf-8", errors="backslashreplace") as file,
    ):
        file.writelines(pieces)


def _small(path: Path, side: int) -> Thumbnail:
    picture = read_picture(path, at_least=side)
    picture.thumbnail((side, side))
    return as_text(picture)


def _standing(found: Explanation) -> str:
    if found.margin is None:
        return "There is no rival, so it cannot be said whether the caption tells the picture apart."
    better = sum(rival.closeness >= found.closeness for rival in found.rivals)
    if len(found.rivals) == 1 and better:
        return "The caption is as close to the most similar picture as to its own, or closer."
    if len(found.rivals) == 1:
        return "The caption is closer to its own picture than to the most similar one."
    among = f"{len(found.rivals)} most similar pictures"
    if better:
        return f"The caption does not find its picture: it is as close or closer to {better} of the {among}."
    return f"The caption finds its picture: to none of the {among} is it as close."


def _parts(found: Explanation) -> list[Part]:
    """The words in the order of the sentence; by closeness where there is no margin."""
    by_margin = found.margin is not None
    drops = [word.margin_drop if by_margin else word.closeness_drop for word in found.words]
    greatest = max((abs(drop) for drop in drops if drop is not None), default=0.0) or 1.0
    return [
        Part(
            word.text,
            _signed(drop),
            _signed(word.closeness_drop) if by_margin else "",
            0.0 if drop is None else drop / greatest,
        )
        for word, drop in zip(found.words, drops, strict=True)
    ]


def _rows(found: Explanation) -> list[Row]:
    penalties = [*((word.text, word.penalty) for word in found.words), (END, found.end)]
    longest = max(max(penalty.mle, penalty.smile) for _, penalty in penalties) or 1.0
    return [
        Row(
            word,
            f"{penalty.mle:.2f}",
            f"{penalty.smile:.2f}",
            penalty.mle / longest,
            penalty.smile / longest,
            _rather(penalty.likeliest),
            _rather(penalty.likeliest_own),
        )
        for word, penalty in penalties
    ]


def _rather(guess: Guess | None) -> str:
    """What was likeliest, where it was another word."""
    return "" if guess is None or guess.is_said else f"{guess.word} {guess.probability:.0%}"


def _total(found: Explanation) -> tuple[str, str]:
    penalties: Sequence[Penalty] = [*(word.penalty for word in found.words), found.end]
    return f"{sum(each.mle for each in penalties):.2f}", f"{sum(each.smile for each in penalties):.2f}"


def _cards(found: Explanation) -> Iterator[Card]:
    """Its own picture among its rivals, closest to the caption first; ties count against the picture."""
    strongest = found.strongest
    shown = [(found.image, found.closeness, "own", "")]
    for rival in found.rivals:
        remark = "nearly the same picture; " if rival.is_near else ""
        kind = "strongest" if rival is strongest else ""
        shown.append((rival.path, rival.closeness, kind, f"{remark}likeness {rival.likeness:.3f}"))
    ordered = sorted(shown, key=lambda each: (-each[1], each[2] == "own"))
    for place, (path, score, kind, remark) in enumerate(ordered, start=1):
        try:
            picture = thumbnail(path)
        except TellapartError:
            picture = None
        yield Card(place, picture, path.name, f"{score:.3f}", kind, remark)


def _maps(found: Explanation) -> Iterator[Map]:
    looks = [(word.text, word.look) for word in found.words if word.look is not None]
    if not looks:
        return
    picture = read_picture(found.image, at_least=MAP_SIDE)
    picture.thumbnail((MAP_SIDE, MAP_SIDE))
    for word, look in looks:
        yield Map(word, as_text(colour(picture, look.map)), _shares(look))


def _shares(look: Look) -> str:
    """How much went to the picture and to its strongest place, and how much elsewhere."""
    said = [f"on the picture {look.map.sum():.0%}, in the strongest place {look.map.max():.1%}"]
    said += [f"{name} {share:.0%}" for name, share in look.elsewhere.items()]
    return "; ".join(said)


def _signed(value: float | None) -> str:
    return "" if value is None else f"{round(value, 3) + 0.0:+.3f}"
