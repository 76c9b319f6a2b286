"""What the words of captions alone tell: shared by pictures, said over and over, in loops, broken off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tellapart.captioned_folder import Captioned
from tellapart.metrics.boilerplate import Phrase, fragments, openers, same_captions
from tellapart.metrics.form import ends_badly, repeats


@dataclass(frozen=True, slots=True)
class Wording:
    """What is to be said of the words of some captions, which are named by their rows.

    Attributes:
        shared: captions that say the same of different pictures, in groups, the largest first.
        openers: how many captions begin.
        fragments: what many captions say somewhere.
        repeating: captions that repeat themselves.
        broken_off: captions that end in the middle.
    """

    shared: tuple[tuple[int, ...], ...]
    openers: tuple[Phrase, ...]
    fragments: tuple[Phrase, ...]
    repeating: tuple[int, ...]
    broken_off: tuple[int, ...]


def look_at_words(captions: Sequence[Captioned], *, share: float) -> Wording:
    """Look through the words of captions.

    Args:
        captions: what is said, and of which picture.
        share: of the captions, from which on a phrase is boiler-plate.
    """
    plain = [captioned.words for captioned in captions]
    # A file may say the same of one picture twice.
    shared = [rows for rows in same_captions(plain) if len({captions[row].picture for row in rows}) > 1]
    return Wording(
        shared=tuple(map(tuple, shared)),
        openers=tuple(openers(plain, share=share)),
        fragments=tuple(fragments(plain, share=share)),
        repeating=tuple(row for row, words in enumerate(plain) if repeats(words)),
        broken_off=tuple(row for row, words in enumerate(plain) if ends_badly(words)),
    )
