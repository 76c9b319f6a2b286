"""Measures of captions: exact, fast, without Java; each value carries the signature of how it came about."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tellapart.metrics.ptb.tokenizer import tokenize

__all__ = ["tokenize"]


def __getattr__(name: str) -> Any:
    # Imported when used: the list of measures is asked for by commands that measure nothing.
    if name == "tokenize":
        return import_module("tellapart.metrics.ptb.tokenizer").tokenize
    raise AttributeError(f"module 'tellapart.metrics' has no attribute {name!r}")
