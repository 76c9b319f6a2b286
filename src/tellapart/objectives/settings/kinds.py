"""What the kinds of objectives have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from tellapart.registry import Part

# Where the authors' code and their paper differ, the paper is the default.
Compat = Literal["paper", "authors"]


def never(config: Any) -> bool:
    """Whatever the settings: no."""
    return False


@dataclass(frozen=True, slots=True)
class ObjectivePart(Part):
    """A kind of objective: `build(config, supplies)` makes one, or says what is missing."""

    # Settings that name other captioners, one or a list; "": none. Pictures are then looked at for those too.
    captioners: tuple[str, ...] = ()
    # Settings that name a retriever.
    retrievers: tuple[str, ...] = ()
    # Whether it learns, with given settings, from photographs that have no captions.
    without_captions: Callable[[Any], bool] = never
