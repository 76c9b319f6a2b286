"""The work of comparing captions, cut so that memory stays the same however many there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """Hypotheses of one image, from `begin` up to, not including, `end`."""

    image: int
    begin: int
    end: int


def plan_pieces(hypotheses: Sequence[int], captions: Sequence[int], *, pairs: int) -> Iterator[list[Piece]]:
    """All hypotheses in their order, in batches of so many pairs at the most, or of a single hypothesis.

    Args:
        hypotheses: how many each image has.
        captions: how many each hypothesis of the image is compared with.
        pairs: compared together.
    """
    batch: list[Piece] = []
    left = pairs
    for image, (count, against) in enumerate(zip(hypotheses, captions, strict=True)):
        begin = 0
        while begin < count:
            room = left // max(1, against)
            if room < 1 and batch:
                yield batch
                batch, left = [], pairs
                continue
            end = min(count, begin + max(1, room))
            batch.append(Piece(image, begin, end))
            left -= (end - begin) * against
            begin = end
    if batch:
        yield batch
