"""Named ways to caption a collection: how true, and how telling, its captions are to be.

What was measured of each stands in docs/results/styles.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Style:
    """A captioner, how it decodes, and how pictures are told apart."""

    apart: str  # "margin", "pragmatic" or "off"
    effort: int
    fit: float = 0.1
    beam: int | None = None  # None: the captioner's own, or as many as candidates are wanted
    length_penalty: float | None = None  # None: the captioner's own
    captioner: str = "default"

    def but(
        self,
        *,
        captioner: str | None = None,
        apart: str | None = None,
        effort: int | None = None,
        fit: float | None = None,
        beam: int | None = None,
        length_penalty: float | None = None,
    ) -> Style:
        """The same with these in place of its own, where they are given."""
        return Style(
            apart or self.apart,
            self.effort if effort is None else effort,
            self.fit if fit is None else fit,
            beam or self.beam,
            self.length_penalty if length_penalty is None else length_penalty,
            captioner or self.captioner,
        )


STYLES: Mapping[str, Style] = {
    "accurate": Style("off", effort=0, beam=5),
    "balanced": Style("margin", effort=1),
    "distinctive": Style("margin", effort=3, fit=0.02),
}
