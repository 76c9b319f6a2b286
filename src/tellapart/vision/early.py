"""The blocks of EfficientNet-Lite that tuning leaves as they are, as an encoder.

What is tuned looks through them once, and not in every epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tellapart.arrays import Float32
from tellapart.storage import cache_folder
from tellapart.vision.efficientnet import EfficientNetLite, content_of, export, load_network, open_session
from tellapart.vision.encoder import Encoder
from tellapart.vision.features import Features


@dataclass(frozen=True, slots=True)
class EarlyBlocks:
    """Its grid is what the first blocks give; the pooled feature and the classes are the whole network's."""

    whole: EfficientNetLite
    name: str
    identity: str
    shapes: Mapping[str, tuple[int, ...]]
    session: Any

    @property
    def class_names(self) -> tuple[str, ...]:
        """The whole network's."""
        return self.whole.class_names

    @property
    def size(self) -> int:
        """The whole network's."""
        return self.whole.size

    @property
    def batch_size(self) -> int:
        """The whole network's."""
        return self.whole.batch_size

    @property
    def threads(self) -> int:
        """The whole network's."""
        return self.whole.threads

    def prepare(self, picture: Image.Image) -> Float32[np.ndarray, "3 h w"]:
        """As the whole network's."""
        return self.whole.prepare(picture)

    def encode(self, pixels: Float32[np.ndarray, "b 3 h w"]) -> Features:
        """Run the network, and keep what the first blocks gave."""
        grid, pooled, classes = self.session.run(None, {"pixels": pixels})
        return Features(grid.astype(np.float16), pooled.astype(np.float16), classes.astype(np.float16))


def build_early(number: int, whole: EfficientNetLite, *, first: int) -> Encoder:
    """The blocks before the first that is tuned, of the Lite network of that number."""
    identity = f"efficientnet-lite{number}-before-{first}-{content_of(number)}"
    exported = cache_folder() / "encoders" / f"{identity}.onnx"
    session = open_session(exported, lambda path: _export(load_network(number), path, first, whole.size))
    grid = session.run(None, {"pixels": np.zeros((1, 3, whole.size, whole.size), np.float32)})[0]
    shapes = {**whole.shapes, "grid": grid.shape[1:]}
    return EarlyBlocks(whole, identity.rpartition("-")[0], identity, shapes, session)


def _export(network: Any, path: Path, first: int, side: int) -> None:
    import torch

    class Outputs(torch.nn.Module):
        """What the first blocks give, and what the whole network says."""

        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
            places = network._swish(network._bn0(network._conv_stem(pixels)))  # noqa: SLF001
            for number, block in enumerate(network._blocks):  # noqa: SLF001
                if number == first:
                    early = places.flatten(2).transpose(1, 2)
                places = block(places)
            places = network._swish(network._bn1(network._conv_head(places)))  # noqa: SLF001
            pooled = places.mean((2, 3))
            return early, pooled, network._fc(pooled).softmax(-1)  # noqa: SLF001

    export(Outputs(), path, side=side)
