"""Checkpoints of transformers that measures run: which they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from tellapart.foreign.source import Source
from tellapart.vision.torch_encoder import fingerprint


def identity(source: Source, network: nn.Module, settings: dict[str, object]) -> str:
    """The model's name, and eight digits that change with any weight or setting."""
    return f"{source.name}@{fingerprint(network, settings)[:8]}"


def distinct(values: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """Each value once, in the order of first appearance, and the place of each original among them."""
    places: dict[Any, int] = {}
    where = [places.setdefault(value, len(places)) for value in values]
    return list(places), where
