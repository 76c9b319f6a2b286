"""What a captioner must know of the encoder whose features it reads."""

from __future__ import annotations

from tellapart.errors import TellapartError
from tellapart.registry import Config

TUNED = "-tuned-"  # in the identity of an encoder that was tuned, between the network's name and a hash


def are_related(one: str, another: str) -> bool:
    """Whether two identities are of the same encoder, or of what one network was tuned to and the network."""
    (network, is_tuned, _), (other, is_other_tuned, _) = one.partition(TUNED), another.partition(TUNED)
    if not is_tuned and not is_other_tuned:
        return one == another
    return (network if is_tuned else network.rpartition("-")[0]) == (
        other if is_other_tuned else other.rpartition("-")[0]
    )


class EncoderTraits(Config):
    """An encoder by name and content, the shapes of one picture's features, what its classes are called."""

    name: str  # as a recipe writes it
    identity: str
    shapes: dict[str, tuple[int, ...]]  # of one picture's grid (places, width), pooled and classes
    nouns: tuple[str, ...] = ()  # a plain word for each of its classes

    def grid(self) -> tuple[int, int]:
        """Places of the grid and width of each; an encoder without a grid is refused."""
        places, width = self.shapes.get("grid", (0, 0))
        if not places:
            raise TellapartError(
                f"the encoder {self.name} gives no grid, which this captioner looks at",
                hint="take another encoder, such as efficientnet-lite2, or a captioner of pooled features",
            )
        return places, width

    def classes(self) -> int:
        """How many classes it tells apart; an encoder that names none is refused."""
        (count,) = self.shapes.get("classes", (0,))
        if not count:
            raise TellapartError(
                f"the encoder {self.name} names no classes, which this network looks at",
                hint="take another encoder, such as efficientnet-lite2, or set classes = false",
            )
        return count

    def pooled(self) -> int:
        """Width of the vector of the whole picture; an encoder without one is refused."""
        (width,) = self.shapes.get("pooled", (0,))
        if not width:
            raise TellapartError(
                f"the encoder {self.name} gives no pooled feature, which this captioner looks at",
                hint="take another encoder, such as efficientnet-lite2",
            )
        return width
