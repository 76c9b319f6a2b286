"""Retrievers by the name that a user writes."""

from __future__ import annotations

import os
from pathlib import Path

from tellapart.errors import TellapartError
from tellapart.model_folder import CONFIG
from tellapart.retrievers.dual.runtime import load_dual
from tellapart.retrievers.retriever import Retriever
from tellapart.shipped import find_shipped

SHIPPED = ("judge", "reranker")
TOWERS = ("clip", "siglip")


def load_retriever(name: str | os.PathLike[str] = "judge") -> Retriever:
    """A retriever, ready to take pictures and sentences.

    Args:
        name: one that ships ("judge" or "reranker", trained apart from each other), the folder of one or of
            a run that trained it, or CLIP or SigLIP: "clip:FOLDER_OR_HUB_NAME", "siglip:FOLDER_OR_HUB_NAME".
    """
    kind, colon, model = str(name).partition(":")
    if not str(name) or (colon and kind in TOWERS and not model):
        raise TellapartError(f"{name!r} names no retriever", hint=_hint())
    if colon and kind in TOWERS:
        from tellapart.retrievers.clip import load_clip, load_siglip  # bring torch along

        return load_clip(model) if kind == "clip" else load_siglip(model)
    return load_dual(str(name), find_retriever(name))


def find_retriever(name: str | os.PathLike[str]) -> Path:
    """The folder of a dual encoder that a name stands for."""
    if str(name) in SHIPPED and (shipped := find_shipped(name)):
        return shipped
    folder = Path(name)
    if not folder.is_dir():
        raise TellapartError(
            f"{name}: no retriever is called so, and no folder",
            hint=_hint(),
        )
    inside = folder / "retriever"  # of a run
    return inside if not (folder / CONFIG).exists() and inside.is_dir() else folder


def _hint() -> str:
    return f"there are: {', '.join(SHIPPED)}; or name a folder, clip:MODEL or siglip:MODEL"
