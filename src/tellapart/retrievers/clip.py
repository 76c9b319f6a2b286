"""CLIP and SigLIP as retrievers, out of a folder or from the hub (Radford et al. 2021, Zhai et al. 2023).

What they see in a picture is kept in the feature cache like that of any encoder, in half precision and by
the content of checkpoint and picture.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.nn.functional import normalize

from tellapart.arrays import Float32
from tellapart.errors import TellapartError
from tellapart.foreign.clip import CLIP, SIGLIP, ClipModel, Family, cut_note, read_clip
from tellapart.retrievers.retriever import Placed, Retriever, Watch, expect_several, unwatched
from tellapart.storage import cache_folder
from tellapart.vision.cache import FeatureCache
from tellapart.vision.features import Features
from tellapart.vision.looking import look
from tellapart.vision.torch_encoder import fingerprint
from tellapart.vision.transformers_encoder import deciding

TEXTS = 64  # a batch
_HINT = (
    "name a folder that holds a whole checkpoint, or a hub name, whose first use needs the network: "
    "clip:openai/clip-vit-base-patch32, siglip:google/siglip2-base-patch16-224"
)


def load_clip(model: str) -> Retriever:
    """CLIP from a folder, or by its name on the hub."""
    return _load(model, CLIP)


def load_siglip(model: str) -> Retriever:
    """SigLIP or SigLIP 2 from a folder, or by its name on the hub."""
    return _load(model, SIGLIP)


def _load(model: str, family: Family) -> Retriever:
    read = read_clip(model, family, needed_by=f"the {family.name} retriever", hint=_HINT)
    name, identity = f"{family.name.lower()}:{model}", _identity(read)
    return ClipRetriever(name, identity, read.width, read, ClipSight(name, identity, read))


def _identity(model: ClipModel) -> str:
    """The same for equal checkpoints, wherever they lie and whatever they are called."""
    settings: dict[str, object] = {
        "config": deciding(model.network),
        "pixels": asdict(model.pixels),
        "tokenizer": _spelling(model.tokenizer),
    }
    return f"{model.kind}@{fingerprint(model.network, settings)}"


def _spelling(tokenizer: Any) -> str:
    """All that decides how a text becomes tokens."""
    if tokenizer.is_fast:
        text: str = tokenizer.backend_tokenizer.to_str()
        return text
    return hashlib.sha256(tokenizer.sp_model.serialized_model_proto()).hexdigest()


@dataclass(frozen=True, slots=True, eq=False)
class ClipSight:
    """The side of the model that sees, as an encoder whose only feature is a picture's place."""

    name: str
    identity: str
    model: ClipModel
    class_names: tuple[str, ...] = ()
    batch_size: int = 1  # a picture's place must not depend on its neighbours, not even in the last bit
    threads: int = 1  # torch spreads one call over all cores by itself

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Of one picture's parts."""
        return {"grid": (0, 0), "pooled": (self.model.width,), "classes": (0,)}

    @property
    def size(self) -> int:
        """Pixels of the shorter side with which a JPEG may be decoded."""
        return self.model.pixels.enough

    def prepare(self, picture: Image.Image) -> Float32[np.ndarray, "3 h w"]:
        """As the checkpoint's files say."""
        return self.model.pixels.prepare(picture)

    def encode(self, pixels: Float32[np.ndarray, "b 3 h w"]) -> Features:
        """The places of prepared pictures."""
        # Of length 1 before they are rounded: half precision has no room for long vectors.
        seen = normalize(self.model.see(torch.from_numpy(pixels))).half().numpy()
        empty = np.empty((len(seen), 0), np.float16)
        return Features(grid=empty[:, None, :][:, :0], pooled=seen, classes=empty)


@dataclass(frozen=True, eq=False)
class ClipRetriever(Retriever):
    """Pictures and sentences where a checkpoint of CLIP or SigLIP puts them."""

    name: str
    identity: str
    width: int
    model: ClipModel
    sight: ClipSight

    def place(self, paths: Iterable[Path | TellapartError]) -> Iterator[Placed | TellapartError]:
        """The place of each picture file, in order; a bad file gives its error in its place."""
        cache = FeatureCache(cache_folder(), self.sight)
        for seen in look(paths, self.sight, parts=("pooled",), cache=cache):
            if isinstance(seen, TellapartError):
                yield seen
            else:
                vector = seen.features.pooled[0].astype(np.float32)
                yield Placed(seen.path, vector / np.linalg.norm(vector))

    def embed_texts(
        self, sentences: Sequence[str], *, watch: Watch = unwatched
    ) -> Float32[np.ndarray, "n d"]:
        """A unit row for each sentence; those that are read alike have the very same one."""
        expect_several(sentences, "sentences")
        places: dict[tuple[int, ...], int] = {}
        tokens, _ = self.model.tokens(sentences)
        where = [places.setdefault(tuple(ids), len(places)) for ids in tokens]
        # Sentences of a length stand together, or the short ones of a batch would wait for the longest.
        by_length = sorted(places, key=len)
        rows = np.empty((len(places), self.width), np.float32)
        for start in range(0, len(by_length), TEXTS):
            some = by_length[start : start + TEXTS]
            read = self.model.read([list(ids) for ids in some])
            rows[[places[ids] for ids in some]] = normalize(read).numpy()
            watch(start + len(some), len(by_length))
        return rows[np.asarray(where, dtype=np.intp)]

    def unknown_words(self, sentence: str) -> Sequence[str]:
        """None: what is no word of its own is read in pieces, at the worst letter by letter."""
        return ()

    def notes(self, sentences: Sequence[str]) -> list[str]:
        """What a report must say of these sentences: how many of them were cut, and where."""
        _, cut = self.model.tokens(sentences)
        return cut_note(sum(cut), "sentence", self.model)
