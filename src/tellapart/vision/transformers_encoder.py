"""Vision towers and image classifiers of transformers as encoders."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from tellapart.arrays import Float
from tellapart.errors import TellapartError
from tellapart.foreign.processor import expect_side, read_colours
from tellapart.foreign.source import Source, find_source
from tellapart.vision.torch_encoder import Pixels, TorchEncoder, View, make_encoder, no_classes, row_by_row

TOWERS = ("vision_tower", "vision_model", "vision_encoder", "image_encoder", "visual")
"""What models of pictures and text call the part that sees."""


def load(transformers: ModuleType, model: str) -> TorchEncoder:
    """Load the part of a checkpoint that sees, from a folder (never touching the network) or from the hub."""
    source = find_seeing(model)
    config = transformers.AutoConfig.from_pretrained(source.model, local_files_only=source.local_files_only)
    pixels = read_pixels(processor_settings(transformers, source), model)
    whole, missing = _read(transformers, source, config)
    path, tower = _tower(whole, model)
    names = _class_names(whole)
    network = whole if names else tower
    if unread := [key for key in missing if names or key.startswith(path)]:
        raise TellapartError(
            f"the checkpoint {model} lacks {len(unread)} weights of its tower, such as {unread[0]}",
            hint="the file is incomplete, or its config.json names another architecture",
        )
    return make_encoder(
        f"transformers:{model}",
        network,
        _Sight(network, tower, pixels),
        pixels=pixels,
        class_names=names,
        settings=deciding(network),
    )


def find_seeing(model: str) -> Source:
    """A checkpoint that sees: a folder with an image processor's settings too, or a name on the hub."""
    files = (("config.json",), ("preprocessor_config.json", "processor_config.json"))
    return find_source(model, hint="name a folder with a checkpoint, or a hub name", files=files)


def processor_settings(transformers: ModuleType, source: Source) -> Mapping[str, Any]:
    """The numbers of preprocessor_config.json, or of the newer processor_config.json."""
    settings: Mapping[str, Any]
    settings, _ = transformers.ImageProcessingMixin.get_image_processor_dict(
        source.model, local_files_only=source.local_files_only
    )
    if not isinstance(settings, dict):
        raise TellapartError(
            f"the image processor's settings of {source.name} are no JSON object",
            hint="copy preprocessor_config.json again from where the checkpoint came from",
        )
    return settings


def read_pixels(settings: Mapping[str, Any], model: str) -> Pixels:
    """How large, and in which colours, a checkpoint with these settings wants its pictures."""
    height, width = _edges(settings["crop_size"] if _cuts(settings) else settings.get("size"), model)
    colours = read_colours(settings, model)
    return Pixels(height, width, mean=colours.mean, std=colours.std, scale=colours.scale)


def uncut_size(settings: Mapping[str, Any], model: str) -> int | tuple[int, int] | None:
    """Shorter side, or height and width, of what it cuts the middle out of; None: it cuts nothing off."""
    size = settings.get("size")
    if not _cuts(settings):
        return None
    shorter = size.get("shortest_edge") if isinstance(size, dict) else size
    return expect_side(shorter, "size", model) if shorter else _edges(size, model)


def _cuts(settings: Mapping[str, Any]) -> bool:
    """Whether it cuts off the edges; CLIP's own processor does so where its file says nothing."""
    kind = str(settings.get("image_processor_type") or settings.get("feature_extractor_type") or "")
    return bool(settings.get("do_center_crop", kind.startswith("CLIP")) and settings.get("crop_size"))


def _edges(size: object, model: str) -> tuple[int, int]:
    """Height and width; a bound on one edge stands for a square."""
    if isinstance(size, dict) and {"height", "width"} <= size.keys():
        return expect_side(size["height"], "size", model), expect_side(size["width"], "size", model)
    edge = (size.get("shortest_edge") or size.get("longest_edge")) if isinstance(size, dict) else size
    if edge:
        return expect_side(edge, "size", model), expect_side(edge, "size", model)
    raise TellapartError(
        f"the checkpoint {model} does not say how large its pictures are: {size}",
        hint='write "size": {"height": 224, "width": 224} in its preprocessor_config.json',
    )


def _read(transformers: ModuleType, source: Source, config: Any) -> tuple[Any, list[str]]:
    """The whole model as the checkpoint names it, and the weights that the file did not hold."""
    named = (config.architectures or ["AutoModel"])[0]
    architecture = getattr(transformers, named, None)
    if architecture is None:
        raise TellapartError(
            f"transformers {transformers.__version__} knows no {named}, the architecture of {source.model}",
            hint="pip install --upgrade transformers",
        )
    whole, loading = architecture.from_pretrained(
        source.model,
        local_files_only=source.local_files_only,
        dtype=torch.float32,
        output_loading_info=True,
    )
    return whole, sorted(loading["missing_keys"])


def _tower(whole: Any, model: str) -> tuple[str, Any]:
    """The part that sees, and how the names of its weights begin in the whole."""
    for path, module in whole.named_modules():
        if path.rpartition(".")[2] in TOWERS:
            return f"{path}.", module
    if getattr(whole, "main_input_name", "") != "pixel_values":
        raise TellapartError(
            f"the checkpoint {model} has no vision tower ({type(whole).__name__})",
            hint="name a model of pictures, such as CLIP, SigLIP, ViT, DINOv2 or BLIP",
        )
    base = whole.base_model
    return ("" if base is whole else f"{whole.base_model_prefix}."), base


def _class_names(whole: Any) -> tuple[str, ...]:
    """What a classifier's outputs are called; nothing where they are only numbered."""
    if not type(whole).__name__.endswith("ForImageClassification"):
        return ()
    labels = whole.config.id2label
    names = tuple(str(labels[index]) for index in range(len(labels)))
    return () if all(re.fullmatch(r"LABEL_\d+", name) for name in names) else names


def deciding(network: Any) -> dict[str, object]:
    """The configuration without what says only where and by which version it was written."""
    settings: dict[str, object] = network.config.to_dict()
    return {
        key: value
        for key, value in settings.items()
        if not key.startswith("_") and key != "transformers_version"
    }


class _Sight:
    """Features of prepared pictures, by running a tower or a classifier around it."""

    def __init__(self, network: nn.Module, tower: Any, pixels: Pixels) -> None:
        self._network = network
        self._places = _places(tower.config, pixels)
        self._kept = threading.local()  # several threads may run the network at once
        tower.register_forward_hook(self._keep)

    def __call__(self, pixels: Float[Tensor, "b 3 h w"]) -> View:
        logits = getattr(self._network(pixel_values=pixels), "logits", None)
        seen = self._kept.output
        del self._kept.output
        grid = self._grid(seen.last_hidden_state)
        pooled = getattr(seen, "pooler_output", None)
        return View(
            grid=grid,
            pooled=grid.mean(1) if pooled is None else pooled.flatten(1),
            classes=no_classes(grid) if logits is None else logits.softmax(-1),
        )

    def _keep(self, tower: nn.Module, arguments: object, output: object) -> None:
        self._kept.output = output

    def _grid(self, states: Tensor) -> Float[Tensor, "b n d"]:
        if states.ndim == 4:
            return row_by_row(states)
        # Class, register and distillation tokens stand before those of the patches.
        extra = states.shape[1] - self._places
        return states[:, extra:] if self._places and extra > 0 else states


def _places(config: Any, pixels: Pixels) -> int:
    """How many patches a picture is cut into; 0 where the network does not cut it."""
    patch = getattr(config, "patch_size", None)
    if not patch:
        return 0
    tall, wide = (patch, patch) if isinstance(patch, int) else patch
    return (pixels.height // tall) * (pixels.width // wide)
