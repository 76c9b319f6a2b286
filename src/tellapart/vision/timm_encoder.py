"""Image models of timm as encoders."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

from torch import Tensor

from tellapart.arrays import Float
from tellapart.vision.torch_encoder import Pixels, TorchEncoder, View, make_encoder, no_classes, row_by_row


def load(timm: ModuleType, model: str) -> TorchEncoder:
    """Load a model by its name, or from a folder without touching the network."""
    folder = Path(model).expanduser()
    network = timm.create_model(f"local-dir:{folder}" if folder.is_dir() else model, pretrained=True)
    about: dict[str, Any] = network.pretrained_cfg
    names = _class_names(about, network)

    def see(pixels: Float[Tensor, "b 3 h w"]) -> View:
        features = network.forward_features(pixels)
        grid = _grid(features, network)
        classes = network.forward_head(features).softmax(-1) if names else no_classes(grid)
        return View(
            grid=grid, pooled=network.forward_head(features, pre_logits=True).flatten(1), classes=classes
        )

    _, height, width = about["input_size"]
    return make_encoder(
        f"timm:{model}",
        network,
        see,
        pixels=Pixels(height=height, width=width, mean=tuple(about["mean"]), std=tuple(about["std"])),
        class_names=names,
        settings={"architecture": about.get("architecture", model)},
    )


def _grid(features: Tensor, network: Any) -> Float[Tensor, "b n d"]:
    if features.ndim == 3:
        return features[:, getattr(network, "num_prefix_tokens", 0) :]
    if getattr(network, "output_fmt", "NCHW") == "NHWC":
        return features.flatten(1, 2)
    return row_by_row(features)


def _class_names(about: dict[str, Any], network: Any) -> tuple[str, ...]:
    """Names that the checkpoint itself carries, or those of ImageNet for a model that timm itself offers."""
    count = getattr(network, "num_classes", 0)
    if names := about.get("label_names"):
        descriptions = about.get("label_descriptions") or {}
        return tuple(descriptions.get(name, name) for name in names) if len(names) == count else ()
    if about.get("source") == "local-dir":
        return ()
    return _imagenet_names(count)


def _imagenet_names(count: int) -> tuple[str, ...]:
    from timm.data import ImageNetInfo, infer_imagenet_subset

    subset = infer_imagenet_subset({"num_classes": count})
    if subset is None:
        return ()
    info = ImageNetInfo(subset)
    return tuple(info.index_to_description(index) for index in range(count))
