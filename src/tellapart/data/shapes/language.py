"""A small English about scenes: captions that are true, and the truth of any caption.

A caption says that certain things are in the picture, never that nothing else is: "a red circle" is true
when some thing is a red circle, and "a circle and a circle" takes two. Places are the nine of the layout:
"at the top" means the middle of the top row and is false of the corners. The words of a caption are
lower-case letters with single spaces between, which no way of normalising text changes.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import cycle, permutations

from tellapart.data.shapes.scenes import COLOURS, MOST_THINGS, SHAPES, Scene, Thing
from tellapart.errors import TellapartError

FEWEST_WORDS = 6
MOST_WORDS = 18
MOST_CAPTIONS = 50  # of one scene; the poorest have a few times as many
ANY_SHAPE = ("shape", "object")
SHAPE_WORDS: Mapping[str, tuple[str, ...]] = {shape: (shape,) for shape in SHAPES}
COLOUR_WORDS: Mapping[str, tuple[str, ...]] = {colour: (colour,) for colour in COLOURS}
SIZE_WORDS: Mapping[str, tuple[str, ...]] = {"small": ("small", "little"), "large": ("large", "big")}
PLACE_WORDS: Mapping[str, tuple[str, ...]] = {
    "top left": ("at the top left", "in the top left corner"),
    "top": ("at the top",),
    "top right": ("at the top right", "in the top right corner"),
    "left": ("on the left",),
    "centre": ("in the centre", "in the middle"),
    "right": ("on the right",),
    "bottom left": ("at the bottom left", "in the bottom left corner"),
    "bottom": ("at the bottom",),
    "bottom right": ("at the bottom right", "in the bottom right corner"),
}
RELATION_WORDS: Mapping[str, tuple[str, ...]] = {
    "left of": ("to the left of",),
    "right of": ("to the right of",),
    "above": ("above", "higher than"),
    "below": ("below", "lower than"),
}
# What stands before and after the things themselves; the first, empty one leaves them bare.
FRAMES = (
    ("", ""),
    ("there is", ""),
    ("there is", "in this picture"),
    ("this picture shows", ""),
    ("a picture of", ""),
    ("a drawing of", ""),
    ("a simple drawing with", ""),
    ("here we can see", ""),
    ("somebody drew", ""),
    ("", "on a white background"),
    ("", "drawn on white paper"),
)
# By the number of phrases and of relations. A phrase is never joined by "and" to one that has a relation:
# "a circle above a square and a star" does not say where the star is.
FORMS: Mapping[tuple[int, int], str] = {
    (1, 0): "{phrase0}",
    (2, 0): "{phrase0} and {phrase1}",
    (3, 0): "{phrase0} {phrase1} and {phrase2}",
    (2, 1): "{phrase0} {relation0} {phrase1}",
    (3, 2): "{phrase0} {relation0} {phrase1} and {relation1} {phrase2}",
}
RELATIONS: Mapping[str, Callable[[Thing, Thing], bool]] = {
    "left of": lambda one, other: one.column < other.column,
    "right of": lambda one, other: one.column > other.column,
    "above": lambda one, other: one.row < other.row,
    "below": lambda one, other: one.row > other.row,
}


@dataclass(frozen=True, slots=True)
class Phrase:
    """What a caption says of one thing; an empty string is an attribute left unsaid."""

    shape: str = ""
    colour: str = ""
    size: str = ""
    place: str = ""

    def fits(self, thing: Thing) -> bool:
        """Whether all that is said is so."""
        return (
            self.shape in ("", thing.shape)
            and self.colour in ("", thing.colour)
            and self.size in ("", thing.size)
            and self.place in ("", thing.place)
        )


@dataclass(frozen=True, slots=True)
class Description:
    """The meaning of a caption: its phrases, and how the first thing stands to each of the others."""

    phrases: tuple[Phrase, ...]
    relations: tuple[str, ...] = ()  # none, or one for each phrase after the first

    def __post_init__(self) -> None:
        if (len(self.phrases), len(self.relations)) not in FORMS:
            raise TellapartError(
                f"no sentence has {len(self.phrases)} phrases and {len(self.relations)} relations",
                hint="give one to three phrases, and a relation for each after the first or none at all",
            )

    def holds(self, scene: Scene) -> bool:
        """Whether distinct things of the scene fit the phrases and stand in the relations."""
        return any(self._holds_of(things) for things in permutations(scene.things, len(self.phrases)))

    def _holds_of(self, things: tuple[Thing, ...]) -> bool:
        return all(phrase.fits(thing) for phrase, thing in zip(self.phrases, things, strict=True)) and all(
            RELATIONS[relation](things[0], other)
            for relation, other in zip(self.relations, things[1:], strict=False)
        )


def captions(scene: Scene, *, count: int, seed: int) -> list[str]:
    """Distinct true captions of 6 to 18 words, from those that say little to those that say nearly all."""
    if count > MOST_CAPTIONS:
        raise TellapartError(f"{count} captions of one scene", hint=f"ask for {MOST_CAPTIONS} at most")
    # The scene is part of the seed: otherwise every scene would be spoken of in the same sentences.
    dice = random.Random(f"{seed} {scene}")
    candour = cycle(_CANDOUR)
    written: list[str] = []
    while len(written) < count:
        caption = render(_describe(scene, next(candour), dice), dice)
        if caption not in written and _has_good_length(caption):
            written.append(caption)
    dice.shuffle(written)
    return written


def render(description: Description, dice: random.Random) -> str:
    """One wording of a description, of 6 to 18 words where any frame makes it so, otherwise bare."""
    parts = {f"phrase{index}": _phrase(phrase, dice) for index, phrase in enumerate(description.phrases)}
    for index, relation in enumerate(description.relations):
        parts[f"relation{index}"] = dice.choice(RELATION_WORDS[relation])
    body = FORMS[len(description.phrases), len(description.relations)].format_map(parts)
    framed = [f"{before} {body} {after}".strip() for before, after in FRAMES]
    return dice.choice([caption for caption in framed if _has_good_length(caption)] or [body])


def parse(caption: str) -> Description | None:
    """The meaning of a caption of any length, or None when the grammar does not have it."""
    for body in _bodies(" ".join(caption.split())):
        for (phrases, relations), pattern in _PATTERNS.items():
            match = pattern.fullmatch(body)
            if match:
                said = match.groupdict(default="")
                return Description(
                    tuple(_read_phrase(said, index) for index in range(phrases)),
                    tuple(_MEANINGS["relation"][said[f"relation{index}"]] for index in range(relations)),
                )
    return None


def is_true(caption: str, scene: Scene) -> bool:
    """Whether a caption is in the grammar and what it says is so."""
    return singles_out(caption, scene, ())


def singles_out(caption: str, scene: Scene, others: Iterable[Scene]) -> bool:
    """Whether a caption is true of the scene and of none of the others."""
    description = parse(caption)
    if description is None or not description.holds(scene):
        return False
    return not any(description.holds(other) for other in others)


def _has_good_length(caption: str) -> bool:
    return FEWEST_WORDS <= len(caption.split()) <= MOST_WORDS


# How likely each caption in turn is to name an attribute: a vague one, a common one, a full one.
_CANDOUR = (0.3, 0.6, 1.0)
_SHAPE_IS_NAMED = 0.8  # at least: people seldom leave out what a thing is
_PLACE_IN_LONG_CAPTION = 0.2


def _describe(scene: Scene, candour: float, dice: random.Random) -> Description:
    """Something true of the scene, in as much detail as asked."""
    fewest = len(scene.things) if candour == 1.0 else 1
    things = dice.sample(scene.things, dice.randint(fewest, len(scene.things)))
    relations = tuple(_relations(things, dice)) if dice.random() < 0.5 else ()
    # Two things with their places, or three without, are all that 18 words hold.
    is_long = len(things) + len(relations) > MOST_THINGS - 1
    phrases = (
        Phrase(
            shape=_maybe(thing.shape, max(candour, _SHAPE_IS_NAMED), dice),
            colour=_maybe(thing.colour, candour, dice),
            size=_maybe(thing.size, candour, dice),
            place=_maybe(thing.place, _PLACE_IN_LONG_CAPTION if is_long else candour, dice),
        )
        for thing in things
    )
    return Description(tuple(phrases), relations)


def _maybe(word: str, chance: float, dice: random.Random) -> str:
    return word if dice.random() < chance else ""


def _relations(things: list[Thing], dice: random.Random) -> Iterator[str]:
    """For each thing after the first, one way in which the first stands to it."""
    first, *others = things
    for other in others:
        yield dice.choice([name for name, holds in RELATIONS.items() if holds(first, other)])


def _phrase(phrase: Phrase, dice: random.Random) -> str:
    words = (
        dice.choice(SIZE_WORDS.get(phrase.size, ("",))),
        dice.choice(COLOUR_WORDS.get(phrase.colour, ("",))),
        dice.choice(SHAPE_WORDS.get(phrase.shape, ANY_SHAPE)),
        dice.choice(PLACE_WORDS.get(phrase.place, ("",))),
    )
    said = " ".join(word for word in words if word)
    return f"an {said}" if said[0] in "aeiou" else f"a {said}"


def _bodies(caption: str) -> Iterator[str]:
    """The caption without each of the frames that it could stand in."""
    for before, after in FRAMES:
        opening, closing = f"{before} ".lstrip(), f" {after}".rstrip()
        if caption.startswith(opening) and caption.endswith(closing):
            yield caption.removeprefix(opening).removesuffix(closing)


def _read_phrase(said: Mapping[str, str], index: int) -> Phrase:
    shape, colour, size, place = (
        _MEANINGS[attribute].get(said[f"{attribute}{index}"], "")
        for attribute in ("shape", "colour", "size", "place")
    )
    return Phrase(shape, colour, size, place)


def _inverse(words: Mapping[str, tuple[str, ...]]) -> Mapping[str, str]:
    return {wording: meaning for meaning, wordings in words.items() for wording in wordings}


_MEANINGS: Mapping[str, Mapping[str, str]] = {
    "shape": _inverse({**SHAPE_WORDS, "": ANY_SHAPE}),
    "colour": _inverse(COLOUR_WORDS),
    "size": _inverse(SIZE_WORDS),
    "place": _inverse(PLACE_WORDS),
    "relation": _inverse(RELATION_WORDS),
}


def _group(attribute: str, index: int) -> str:
    return f"(?P<{attribute}{index}>{'|'.join(_MEANINGS[attribute])})"


def _pattern(form: str) -> re.Pattern[str]:
    """The regular expression of all sentences of a form, a group for each thing that it says."""
    parts = {f"relation{index}": _group("relation", index) for index in range(MOST_THINGS - 1)}
    for index in range(MOST_THINGS):
        parts[f"phrase{index}"] = (
            "a(?:n(?= [aeiou])|(?! [aeiou]))"
            f"(?: {_group('size', index)})?(?: {_group('colour', index)})? {_group('shape', index)}"
            f"(?: {_group('place', index)})?"
        )
    return re.compile(form.format_map(parts))


_PATTERNS = {sizes: _pattern(form) for sizes, form in FORMS.items()}

# Every word that a caption can have.
VOCABULARY = frozenset(
    word
    for wording in (
        *(wording for meanings in _MEANINGS.values() for wording in meanings),
        *(part for frame in FRAMES for part in frame),
        "a an and",
    )
    for word in wording.split()
)
