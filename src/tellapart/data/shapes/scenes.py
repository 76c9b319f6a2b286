"""What there is in a drawn picture, and pictures that differ from it in a single respect."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from itertools import islice

from tellapart.errors import TellapartError
from tellapart.registry import suggest

SHAPES = ("circle", "square", "triangle", "star", "cross", "heart", "diamond", "moon")
COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "black")
SIZES = ("small", "large")
# In reading order, so that a place's index gives its row and column.
PLACES = ("top left", "top", "top right", "left", "centre", "right", "bottom left", "bottom", "bottom right")
ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    "shape": SHAPES,
    "colour": COLOURS,
    "size": SIZES,
    "place": PLACES,
}
MOST_THINGS = 3
_KINDS = len(SHAPES) * len(COLOURS) * len(SIZES)
DISTINCT_SCENES = sum(math.comb(len(PLACES), number) * _KINDS**number for number in range(1, MOST_THINGS + 1))
# A fuller scene has more things to change, though fewer free places to move them to.
LARGEST_GROUP = 1 + MOST_THINGS * (
    sum(len(words) - 1 for words in (SHAPES, COLOURS, SIZES)) + len(PLACES) - MOST_THINGS
)


@dataclass(frozen=True, slots=True)
class Thing:
    """One drawn thing, each attribute a word of `ATTRIBUTES`."""

    shape: str
    colour: str
    size: str
    place: str

    def __post_init__(self) -> None:
        for attribute, words in ATTRIBUTES.items():
            word = getattr(self, attribute)
            if word not in words:
                raise TellapartError(f"no {attribute} is called {word!r}", hint=suggest(str(word), words))

    @property
    def row(self) -> int:
        """0 at the top, 2 at the bottom."""
        return PLACES.index(self.place) // 3

    @property
    def column(self) -> int:
        """0 at the left, 2 at the right."""
        return PLACES.index(self.place) % 3


@dataclass(frozen=True, slots=True)
class Scene:
    """The things in one picture, one to three, each at a place of its own.

    They are kept in reading order, so that two scenes are equal exactly when their pictures are.
    """

    things: tuple[Thing, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.things) <= MOST_THINGS:
            raise TellapartError(
                f"a scene of {len(self.things)} things", hint=f"give it one to {MOST_THINGS} things"
            )
        if len({thing.place for thing in self.things}) < len(self.things):
            raise TellapartError("two things of a scene are at the same place", hint="move one of them")
        object.__setattr__(
            self, "things", tuple(sorted(self.things, key=lambda thing: PLACES.index(thing.place)))
        )


def draw_scenes(count: int, *, seed: int) -> list[Scene]:
    """That many distinct scenes at random, more of them with three things than with two or one."""
    return [scene for (scene,) in draw_groups(count, 1, seed=seed)]


def look_alikes(scene: Scene, count: int, *, seed: int) -> list[Scene]:
    """Distinct scenes that differ from the given one in exactly one attribute of one thing."""
    # The scene is part of the seed: otherwise every scene would be changed in the same respects.
    found = list(islice(_look_alikes(scene, random.Random(f"{seed} {scene}")), count))
    if len(found) < count:
        raise TellapartError(
            f"{count} look-alikes asked of a scene that has {len(found)}",
            hint=f"ask for {len(found)} at most",
        )
    return found


def draw_groups(groups: int, size: int, *, seed: int) -> list[tuple[Scene, ...]]:
    """Groups of a random scene followed by look-alikes of it; no scene comes twice in the whole answer."""
    _check_demand(groups, size)
    dice = random.Random(seed)
    taken: set[Scene] = set()
    drawn: list[tuple[Scene, ...]] = []
    while len(drawn) < groups:
        group = _draw_group(size, taken, dice)
        if len(group) == size:
            drawn.append(group)
            taken.update(group)
    # The few scenes of one thing run out first: without a shuffle the end of the list would lack them.
    dice.shuffle(drawn)
    return drawn


def _check_demand(groups: int, size: int) -> None:
    if not 1 <= size <= LARGEST_GROUP:
        raise TellapartError(
            f"look-alike groups of {size} scenes", hint=f"a group can have 1 to {LARGEST_GROUP} scenes"
        )
    # Scenes are drawn until an unused one turns up, which takes ever longer as they run out.
    if groups * size > DISTINCT_SCENES // 2:
        raise TellapartError(
            f"{groups * size} distinct scenes", hint=f"ask for {DISTINCT_SCENES // 2} at most"
        )


def _draw_group(size: int, taken: Set[Scene], dice: random.Random) -> tuple[Scene, ...]:
    """A group of scenes not taken yet; shorter than asked where there are too few of them."""
    first = _draw_scene(dice)
    if first in taken:
        return ()
    fresh = (scene for scene in _look_alikes(first, dice) if scene not in taken)
    return (first, *islice(fresh, size - 1))


def _draw_scene(dice: random.Random) -> Scene:
    numbers = range(1, MOST_THINGS + 1)
    (number,) = dice.choices(numbers, weights=numbers)
    return Scene(
        tuple(
            Thing(dice.choice(SHAPES), dice.choice(COLOURS), dice.choice(SIZES), place)
            for place in dice.sample(PLACES, number)
        )
    )


def _look_alikes(scene: Scene, dice: random.Random) -> Iterator[Scene]:
    """Every look-alike once, in random order, made only as they are asked for."""
    taken_places = {thing.place for thing in scene.things}
    changes = [
        (thing, attribute, word)
        for thing in scene.things
        for attribute, words in ATTRIBUTES.items()
        for word in words
        if word != getattr(thing, attribute) and word not in taken_places
    ]
    dice.shuffle(changes)
    for thing, attribute, word in changes:
        others = tuple(other for other in scene.things if other is not thing)
        yield Scene((*others, replace(thing, **{attribute: word})))
