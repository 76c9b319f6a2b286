"""Named ways to caption a collection: how true, and how telling, its captions are to be.

What was measured of each stands in docs/results/styles.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace


@dataclass(frozen=True, slots=True)
class Style:
    """A captioner, how it decodes, and how pictures are told apart."""

    apart: str  # "margin", "pragmatic" or "off"
    effort: int
    fit: float = 0.1
    beam: int | None = None  # None: the captioner's own, or as many as candidates are wanted
    length_penalty: float | None = None  # None: the captioner's own
    agree: int = 0  # captions drawn by chance with which a good one agrees
    captioner: str = "default"

    def but(self, said: Said) -> Style:
        """The same with what was said in place of its own."""
        given = {name: value for name, value in asdict(said).items() if value is not None}
        return replace(self, **given)


@dataclass(frozen=True, slots=True)
class Said:
    """What stands in place of a style's own; None where nothing was said."""

    apart: str | None = None
    effort: int | None = None
    fit: float | None = None
    beam: int | None = None
    length_penalty: float | None = None
    agree: int | None = None
    captioner: str | None = None


STYLES: Mapping[str, Style] = {
    "accurate": Style("off", effort=0, fit=0.2, agree=50),
    "balanced": Style("margin", effort=1),
    "distinctive": Style("margin", effort=3, fit=0.02),
}
