"""Named ways to caption a collection: how true, and how telling, its captions are to be.

What was measured of each stands in docs/results/styles.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tellapart.collection.plan import Apart


@dataclass(frozen=True, slots=True)
class Style:
    """A captioner, how it decodes, and how pictures are told apart; "off": each by itself."""

    apart: Apart | Literal["off"]
    effort: int
    fit: float = 0.05
    beam: int | None = None  # None: the captioner's own, or as many as candidates are wanted
    length_penalty: float | None = None  # None: the captioner's own
    captioner: str = "default"


STYLES: Mapping[str, Style] = {
    "accurate": Style("off", effort=0, beam=5),
    "balanced": Style("margin", effort=1),
    "distinctive": Style("margin", effort=3, fit=0.02),
}
