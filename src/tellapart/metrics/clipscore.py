"""CLIPScore and RefCLIPScore with a CLIP checkpoint of transformers (Hessel et al. 2021).

Every text, caption or reference, stands after "A photo depicts " and is cut at the length the model was made
for, as in the authors' program; how many were cut is told in a note. Pictures are resized, cropped and
normalised as the checkpoint's preprocessor_config.json says. All in single precision: the published numbers
come from half precision on a graphics card and differ in the last digits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from tellapart.data.images import read_picture
from tellapart.errors import TellapartError
from tellapart.extras import import_extra
from tellapart.foreign.source import Source, expect_whole, find_source, loading
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
_HINT = "name a folder that holds a CLIP checkpoint (--clip FOLDER), or a hub name, which needs the network"


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
    notes = [*_cut_note(cut, "caption", clip.longest), *_empty_note(material.captions)]
    details = {"model": clip.identity, "prefix": PREFIX.strip(), "weight": WEIGHT, "cut": clip.longest}
    found = [mean_score("CLIPScore", each, signed(details), notes=tuple(notes))]
    if material.references is not None:
        texts = list(chain.from_iterable(material.references))
        references, cut = clip.read(texts, material.watch, what="references")
        nearest = reference_similarities(captions, references, owners(material.references))
        notes += _cut_note(cut, "reference", clip.longest)
        details |= {"references": material.base_signature["references"]}
        values = reference_clip_scores(each, nearest)
        found.append(mean_score("RefCLIPScore", values, signed(details), notes=tuple(notes)))
    return found


def _cut_note(cut: int, what: str, longest: int) -> list[str]:
    if not cut:
        return []
    spoken = f"1 {what} was" if cut == 1 else f"{cut} {what}s were"
    return [f"{spoken} cut at the {longest} tokens that the CLIP model reads"]


def _empty_note(captions: Sequence[str]) -> list[str]:
    empty = sum(not caption.strip() for caption in captions)
    if not empty:
        return []
    spoken = "1 caption is" if empty == 1 else f"{empty} captions are"
    return [f'{spoken} empty: their CLIPScore is that of "{PREFIX.strip()}" alone']


@dataclass(frozen=True, slots=True)
class ClipPixels:
    """How a CLIP checkpoint wants its pictures."""

    size: int | tuple[int, int]  # of the shorter side, or height and width
    crop: tuple[int, int] | None  # height and width of what is cut out of the middle
    resampling: int
    scale: float
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def prepare(self, picture: Image.Image) -> NDArray[np.float32]:
        """Resize, crop and normalise one RGB picture: (3, height, width)."""
        resized = picture.resize(self._resized(picture), Image.Resampling(self.resampling))
        if self.crop is not None:
            height, width = self.crop
            left, top = (resized.width - width) // 2, (resized.height - height) // 2
            resized = resized.crop((left, top, left + width, top + height))
        scaled = np.asarray(resized, dtype=np.float32) * np.float32(self.scale)
        normal = (scaled - np.asarray(self.mean, np.float32)) / np.asarray(self.std, np.float32)
        return np.ascontiguousarray(normal.transpose(2, 0, 1))

    def _resized(self, picture: Image.Image) -> tuple[int, int]:
        """Width and height; the longer side is rounded down, as CLIP's own program does."""
        if isinstance(self.size, tuple):
            return self.size[1], self.size[0]
        width, height = picture.size
        if width <= height:
            return self.size, int(self.size * height / width)
        return int(self.size * width / height), self.size


@dataclass(frozen=True, slots=True, eq=False)
class Clip:
    """A CLIP model with what stands before it."""

    network: Any
    tokenizer: Any
    pixels: ClipPixels
    longest: int  # tokens of a text, its beginning and end among them
    identity: str

    def see(self, pictures: Sequence[Path], watch: Watch) -> Floats:
        """Unit vectors of pictures; one that stands there several times is looked at once."""
        files, where = distinct(pictures)
        return self._embed(files, self._see_batch, PICTURES, watch, "CLIP: pictures")[where]

    def read(self, texts: Sequence[str], watch: Watch, *, what: str) -> tuple[Floats, int]:
        """Unit vectors of texts, and how many of them were cut."""
        once, where = distinct(texts)
        # The tokenizer is asked for all of it: cutting by itself, it would not say what it cut.
        ids = self.tokenizer([PREFIX + text for text in once], verbose=False)["input_ids"] if once else []
        too_long = [len(tokens) > self.longest for tokens in ids]
        fitting = [
            [*tokens[: self.longest - 1], tokens[-1]] if long else tokens
            for tokens, long in zip(ids, too_long, strict=True)
        ]
        vectors = self._embed(fitting, self._read_batch, TEXTS, watch, f"CLIP: {what}")
        return vectors[where], sum(too_long[place] for place in where)

    def _see_batch(self, files: Sequence[Path]) -> torch.Tensor:
        pixels = np.stack([self.pixels.prepare(read_picture(file)) for file in files])
        seen: torch.Tensor = self.network.get_image_features(pixel_values=torch.from_numpy(pixels))[1]
        return seen

    def _read_batch(self, ids: Sequence[list[int]]) -> torch.Tensor:
        padded = self.tokenizer.pad({"input_ids": list(ids)}, return_tensors="pt")
        # The library's text model pools at the end token, and looks only back: what fills up is never seen.
        read: torch.Tensor = self.network.get_text_features(
            input_ids=padded["input_ids"], attention_mask=padded["attention_mask"]
        )[1]
        return read

    def _embed(
        self,
        things: Sequence[Any],
        embed: Callable[[Sequence[Any]], torch.Tensor],
        size: int,
        watch: Watch,
        what: str,
    ) -> Floats:
        found = [np.zeros((0, self.network.config.projection_dim))]
        for start in range(0, len(things), size):
            watch(what, start, len(things))
            with torch.inference_mode():
                found.append(embed(things[start : start + size]).double().numpy())
        watch(what, len(things), len(things))
        vectors = np.concatenate(found)
        if not np.isfinite(vectors).all():
            raise TellapartError(
                f"the CLIP model {self.identity} gives numbers that are not finite",
                hint="its weights are damaged: copy or download them again",
            )
        return unit_rows(vectors)


def load_clip(model: str) -> Clip:
    """A CLIP checkpoint, from a folder (never touching the network) or from the hub."""
    transformers = import_extra("transformers", needed_by="CLIPScore", extra="transformers")
    source = find_source(model, hint=_HINT)
    with loading(transformers, model, hint=_HINT):
        return _load(transformers, source)


def _load(transformers: Any, source: Source) -> Clip:
    local = source.local_files_only
    config = transformers.AutoConfig.from_pretrained(source.model, local_files_only=local)
    if config.model_type != "clip":
        raise TellapartError(
            f"{source.name} is a model of type {config.model_type}, not CLIP",
            hint="CLIPScore is defined by CLIP, such as openai/clip-vit-base-patch32",
        )
    settings, _ = transformers.ImageProcessingMixin.get_image_processor_dict(
        source.model, local_files_only=local
    )
    network, found = transformers.CLIPModel.from_pretrained(
        source.model, local_files_only=local, dtype=torch.float32, output_loading_info=True
    )
    expect_whole(found, source.name)
    pixels = clip_pixels(settings, source.name)
    network.eval()
    return Clip(
        network,
        transformers.AutoTokenizer.from_pretrained(source.model, local_files_only=local),
        pixels,
        longest=config.text_config.max_position_embeddings,
        identity=identity(source, network, asdict(pixels)),
    )


def clip_pixels(settings: Mapping[str, Any], model: str) -> ClipPixels:
    """The numbers of preprocessor_config.json."""
    for key in ("size", "image_mean", "image_std"):
        if not settings.get(key):
            raise TellapartError(
                f"the checkpoint {model} does not say its {key}",
                hint=f"write {key}, as it was trained, in its preprocessor_config.json",
            )
    size, crop = settings["size"], settings.get("crop_size") or settings["size"]
    plain = settings.get("do_normalize") is False
    return ClipPixels(
        size=_shorter_side(size) or _height_and_width(size, model),
        crop=_height_and_width(crop, model) if settings.get("do_center_crop", True) else None,
        resampling=settings.get("resample", Image.Resampling.BICUBIC),
        scale=1.0 if settings.get("do_rescale") is False else settings.get("rescale_factor", 1 / 255),
        mean=(0.0, 0.0, 0.0) if plain else tuple(settings["image_mean"]),
        std=(1.0, 1.0, 1.0) if plain else tuple(settings["image_std"]),
    )


def _shorter_side(size: object) -> int | None:
    if isinstance(size, int):
        return size
    return size.get("shortest_edge") if isinstance(size, dict) else None


def _height_and_width(size: object, model: str) -> tuple[int, int]:
    if (edge := _shorter_side(size)) is not None:
        return edge, edge
    if isinstance(size, dict) and size.get("height") and size.get("width"):
        return size["height"], size["width"]
    raise TellapartError(
        f"the checkpoint {model} does not say how large its pictures are: {size}",
        hint='write "size": {"shortest_edge": 224} in its preprocessor_config.json',
    )
