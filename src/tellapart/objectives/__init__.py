"""What training minimises: pure losses a token, lifted once to objectives.

`smile` is also of use alone, with logits and labels of any model; `smile_loss` is for transformers' Trainer.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["mle", "smile", "smile_loss"]

if TYPE_CHECKING:
    from tellapart.objectives.semipermeable import smile
    from tellapart.objectives.tokens import mle
    from tellapart.objectives.trainer_loss import smile_loss

_HOMES = {
    "mle": "tellapart.objectives.tokens",
    "smile": "tellapart.objectives.semipermeable",
    "smile_loss": "tellapart.objectives.trainer_loss",
}


def __getattr__(name: str) -> Any:
    # Imported when used: settings of objectives, which live here too, are checked without torch.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'tellapart.objectives' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
