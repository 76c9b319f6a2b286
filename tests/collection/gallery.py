"""Small collections of which one can compute by hand who is like whom, and who captions them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64
from PIL import Image
from tests.retrievers.simple_retriever import SIDE, SimpleRetriever

from tellapart.captioning import Describer, Words, load
from tellapart.collection.plan import Plan
from tellapart.collection.session import Request, caption_collection
from tellapart.collection.speaker import Speaker
from tellapart.collection.telling import Told
from tellapart.errors import TellapartError
from tellapart.retrievers.retriever import Retriever

PLAN = Plan(neighbours=3)
Tell = Callable[..., list[Told]]


def draw(path: Path, seed: int, *, changed: int = 0) -> Path:
    """Nine fields of random colours; a picture with one of them a little changed is nearly the same."""
    fields = np.random.default_rng(seed).integers(0, 250, (SIDE, SIDE, 3), np.uint8)
    fields[0, 0] += changed
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(fields.repeat(4, axis=0).repeat(4, axis=1)).save(path)
    return path


def draw_many(folder: Path, count: int, *, first: int = 0) -> Path:
    """A folder of pictures that all differ: 00.png, 01.png and so on."""
    for seed in range(first, first + count):
        draw(folder / f"{seed:02}.png", seed)
    return folder


def speaker(
    captioner: Path | Describer,
    plan: Plan = PLAN,
    *,
    retriever: Retriever | None = None,
    words: Words | None = None,
    keep: int = 10,
) -> Speaker:
    """The tiny captioner and the simple retriever."""
    describer = load(captioner, cached=False) if isinstance(captioner, Path) else captioner
    return Speaker(describer, retriever or SimpleRetriever(), describer.wish(keep=keep, words=words), plan)


def tell(request: Request | Path, who: Speaker) -> list[Told]:
    """All that is told of a folder in which nothing is wrong."""
    results = tell_all(request, who)
    assert not [result for result in results if isinstance(result, TellapartError)]
    return [result for result in results if isinstance(result, Told)]


def tell_all(request: Request | Path, who: Speaker) -> list[Told | TellapartError]:
    """All that is told of a folder, complaints included."""
    asked = Request([request]) if isinstance(request, Path) else request
    return list(caption_collection(asked, who, watch=lambda what, done, total: None))


def captions(told: Sequence[Told]) -> dict[str, str]:
    return {one.captioned.image_id: one.captioned.caption for one in told}


def lines(journal: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]


def cosines(folder: Path) -> tuple[list[str], Float64[np.ndarray, "n n"]]:
    """The names of the pictures in a folder, and how close each is to each, by looking at every pair."""
    paths = sorted(folder.glob("*.png"))
    vectors = SimpleRetriever().embed_images(paths).astype(np.float64)
    return [path.stem for path in paths], vectors @ vectors.T


def nearest_names(folder: Path, count: int) -> dict[str, list[str]]:
    """The names of the pictures most like each."""
    names, close = cosines(folder)
    np.fill_diagonal(close, -np.inf)
    order = np.argsort(-close, axis=1, kind="stable")[:, : min(count, len(names) - 1)]
    return {name: [names[other] for other in row] for name, row in zip(names, order.tolist(), strict=True)}
