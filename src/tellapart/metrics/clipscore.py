"""CLIPScore and RefCLIPScore with a CLIP checkpoint of transformers (Hessel et al. 2021).

Every text, caption or reference, stands after "A photo depicts " and is cut at the length the model was made
for, as in the authors' program; how many were cut is told in a note. All in single precision: the published
numbers come from half precision on a graphics card and differ in the last digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tellapart.data.images import read_picture
from tellapart.errors import TellapartError
from tellapart.foreign.clip import CLIP, ClipModel, cut_note, read_clip
from tellapart.metrics.embedding_score import (
    WEIGHT,
    clip_scores,
    reference_clip_scores,
    reference_similarities,
    unit_rows,
)
from tellapart.metrics.material import Material, Metric, Watch, owners
from tellapart.metrics.parts import ClipScoreConfig
from tellapart.metrics.pretrained import distinct, identity
from tellapart.metrics.score import Floats, Score, mean_score, signed

PREFIX = "A photo depicts "
TEXTS, PICTURES = 64, 16  # a batch
_HINT = (
    "name a folder that holds a CLIP checkpoint (--clip FOLDER), or a hub name such as "
    "openai/clip-vit-base-patch32, whose first use needs the network"
)


def build_clipscore(config: ClipScoreConfig) -> Metric:
    """The measure as it is registered."""
    return lambda material: clipscore(material, config)


def clipscore(material: Material, config: ClipScoreConfig) -> list[Score]:
    """CLIPScore of each image's caption and, where there are references, RefCLIPScore."""
    pictures = material.expect_pictures("CLIPScore")
    if config.model is None:
        raise TellapartError("CLIPScore needs a CLIP model, and none is given", hint=_HINT)
    clip = load_clip(config.model)
    seen = clip.see(pictures, material.watch)
    captions, cut = clip.read(material.captions, material.watch, what="captions")
    each = clip_scores(captions, seen)
    notes = [*cut_note(cut, "caption", clip.model), *_empty_note(material.captions)]
    details = {"model": clip.identity, "prefix": PREFIX.strip(), "weight": WEIGHT, "cut": clip.model.longest}
    found = [mean_score("CLIPScore", each, signed(details), notes=tuple(notes))]
    if material.references is not None:
        texts = list(chain.from_iterable(material.references))
        references, cut = clip.read(texts, material.watch, what="references")
        nearest = reference_similarities(captions, references, owners(material.references))
        notes += cut_note(cut, "reference", clip.model)
        details |= {"references": material.base_signature["references"]}
        values = reference_clip_scores(each, nearest)
        found.append(mean_score("RefCLIPScore", values, signed(details), notes=tuple(notes)))
    return found


def _empty_note(captions: Sequence[str]) -> list[str]:
    empty = sum(not caption.strip() for caption in captions)
    if not empty:
        return []
    spoken = "1 caption is" if empty == 1 else f"{empty} captions are"
    return [f'{spoken} empty: their CLIPScore is that of "{PREFIX.strip()}" alone']


@dataclass(frozen=True, slots=True, eq=False)
class Clip:
    """A CLIP model that sees pictures and reads texts after the prefix, in batches."""

    model: ClipModel
    identity: str

    def see(self, pictures: Sequence[Path], watch: Watch) -> Floats:
        """Unit vectors of pictures; one that stands there several times is looked at once."""
        files, where = distinct(pictures)
        return self._embed(files, self._see_batch, PICTURES, watch, "CLIP: pictures")[where]

    def read(self, texts: Sequence[str], watch: Watch, *, what: str) -> tuple[Floats, int]:
        """Unit vectors of texts, and how many of them were cut."""
        once, where = distinct(texts)
        tokens, too_long = self.model.tokens([PREFIX + text for text in once])
        vectors = self._embed(tokens, self.model.read, TEXTS, watch, f"CLIP: {what}")
        return vectors[where], sum(too_long[place] for place in where)

    def _see_batch(self, files: Sequence[Path]) -> torch.Tensor:
        pixels = np.stack([self.model.pixels.prepare(read_picture(file)) for file in files])
        return self.model.see(torch.from_numpy(pixels))

    def _embed(
        self,
        things: Sequence[Any],
        embed: Callable[[Sequence[Any]], torch.Tensor],
        size: int,
        watch: Watch,
        what: str,
    ) -> Floats:
        found = [np.zeros((0, self.model.width))]
        for start in range(0, len(things), size):
            watch(what, start, len(things))
            found.append(embed(things[start : start + size]).double().numpy())
        watch(what, len(things), len(things))
        return unit_rows(np.concatenate(found))


def load_clip(model: str) -> Clip:
    """A CLIP checkpoint, from a folder (never touching the network) or from the hub."""
    read = read_clip(model, CLIP, needed_by="CLIPScore", hint=_HINT)
    return Clip(read, identity(read.source, read.network, asdict(read.pixels)))
