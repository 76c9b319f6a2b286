"""tellapart: image captions that tell images apart."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["TellapartError", "load", "load_recipe", "load_retriever", "score", "search", "train"]

if TYPE_CHECKING:
    from tellapart.captioning import load
    from tellapart.errors import TellapartError
    from tellapart.recipe import load_recipe
    from tellapart.retrievers.loading import load_retriever
    from tellapart.scoring import score
    from tellapart.searching import search
    from tellapart.training import train

_HOMES = {
    "TellapartError": "tellapart.errors",
    "load": "tellapart.captioning",
    "load_recipe": "tellapart.recipe",
    "load_retriever": "tellapart.retrievers.loading",
    "score": "tellapart.scoring",
    "search": "tellapart.searching",
    "train": "tellapart.training",
}


def __getattr__(name: str) -> Any:
    # Imported when used: `import tellapart` must not cost the seconds that torch takes.
    if name in ("metrics", "objectives"):  # so that `tellapart.metrics.tokenize` needs no import of its own
        return import_module(f"tellapart.{name}")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'tellapart' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
