"""Further candidates for pictures that no caption finds yet, each way more costly than the one before.

more        drawn by chance, many of them
pragmatic   written with the rivals in view
longer      the same, and longer than what was said so far
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from tellapart.arrays import Int
from tellapart.captioning import Candidate, candidates_of
from tellapart.collection.cases import Case
from tellapart.collection.drawing import draw
from tellapart.collection.gathering import Picture
from tellapart.collection.speaker import Speaker
from tellapart.corpus import as_vision
from tellapart.decoding.pragmatic import Company, pragmatic
from tellapart.decoding.rules import Rule, minimum_words
from tellapart.types import Vision
from tellapart.vision.features import stack

SAMPLES = 50
RATIONALITY = 1.0  # α of the pragmatic speaker
LONGER = 3  # words more than the caption that was chosen so far
TARGETS = 8  # pictures whose rivals are read together: a captioner of grids holds 11 grids for each


@dataclass(frozen=True, slots=True)
class Group:
    """Pictures to be captioned again, with their rivals, as the captioner sees them now."""

    cases: Sequence[Case]
    vision: Vision
    rows: Int[Tensor, "b p"]  # of the vision: each picture, then its rivals; -1 where there is none


Candidates = list[tuple[Candidate, ...]]  # of each picture
Way = Callable[[Speaker, Group], Candidates]


def see_group(
    speaker: Speaker, cases: Sequence[Case], rivals: Mapping[int, Sequence[Picture]]
) -> Group | None:
    """Look at pictures and their rivals once more; at the pictures alone where no rivals are given.

    A picture that is gone or has changed since it was seen is left out; a rival that is gone is no rival.
    None where nothing is left.
    """
    pictures = {
        picture.path: picture.content
        for case in cases
        for picture in (case.picture, *rivals.get(case.row, ()))
    }
    seen = speaker.see_again(pictures)
    places = {path: place for place, path in enumerate(seen)}
    left = [case for case in cases if case.picture.path in places]
    if not left:
        return None
    rows = torch.full((len(left), 1 + max(len(rivals.get(case.row, ())) for case in left)), -1)
    for number, case in enumerate(left):
        company = [
            case.picture.path,
            *(rival.path for rival in rivals.get(case.row, ()) if rival.path in places),
        ]
        rows[number, : len(company)] = torch.tensor([places[path] for path in company])
    return Group(left, as_vision(stack([one.features for one in seen.values()])), rows)


def more(speaker: Speaker, group: Group) -> Candidates:
    """Candidates drawn by chance; what a picture draws does not depend on its company."""
    contents = [case.picture.content for case in group.cases]
    drawn = draw(speaker, group.vision.select(group.rows[:, 0]), contents, SAMPLES)
    return candidates_of(speaker.describer.saved.captioner.text, drawn)


def with_rivals_in_view(speaker: Speaker, group: Group) -> Candidates:
    """Candidates of a pragmatic speaker."""
    return _pragmatic(speaker, group, ())


def longer(speaker: Speaker, group: Group) -> Candidates:
    """Candidates of a pragmatic speaker who may not stop as early as before."""
    text, longest = speaker.describer.saved.captioner.text, speaker.wish.max_words
    found: list[tuple[Candidate, ...]] = []
    for number, case in enumerate(group.cases):
        words = min(len(case.candidates[0].caption.split()) + LONGER, longest)
        alone = Group([case], group.vision, group.rows[number : number + 1])
        found += _pragmatic(speaker, alone, (minimum_words(text, words),))
    return found


def _pragmatic(speaker: Speaker, group: Group, rules: Sequence[Rule]) -> Candidates:
    captioner, wish = speaker.describer.saved.captioner, speaker.wish
    found = pragmatic(
        captioner,
        Company(group.vision, group.rows, RATIONALITY),
        width=wish.width,
        max_words=wish.max_words,
        length_penalty=wish.length_penalty,
        rules=(*wish.rules, *rules),
    )
    return candidates_of(captioner.text, found)


@dataclass(frozen=True, slots=True)
class Rung:
    """A way to further candidates, and whether it looks at the rivals too."""

    way: Way
    with_rivals: bool = True


LADDER: Mapping[str, Rung] = {
    "more": Rung(more, with_rivals=False),
    "pragmatic": Rung(with_rivals_in_view),
    "longer": Rung(longer),
}
"""What is tried, in this order, as far as the effort goes."""
