"""Mapping networks: from what the encoder saw to the vectors that stand before a caption.

Section 3.3 of ClipCap: an MLP where the language model is trained as well, a Transformer with learned
constants where it stays as it is.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tellapart.arrays import Float
from tellapart.captioners.expect import expect_grid, expect_pooled
from tellapart.captioners.settings.prefix import PrefixConfig
from tellapart.errors import TellapartError
from tellapart.types import Vision
from tellapart.vision.traits import EncoderTraits


class MLPMapping(nn.Module):
    """Two layers with tanh between them, all vectors of the prefix at once."""

    def __init__(self, *, image_width: int, hidden: int, length: int, width: int) -> None:
        super().__init__()
        self.length = length
        self.hidden = nn.Linear(image_width, hidden)
        self.output = nn.Linear(hidden, length * width)

    def forward(self, vision: Vision) -> Float[Tensor, "b n d"]:
        """The prefix of each image."""
        expect_pooled(vision.pooled, width=self.hidden.in_features)
        flat: Tensor = self.output(torch.tanh(self.hidden(vision.pooled)))
        return flat.view(len(flat), self.length, -1)


class PooledRows(nn.Module):
    """The pooled feature as several vectors, each a projection of its own."""

    def __init__(self, *, image_width: int, rows: int, width: int) -> None:
        super().__init__()
        self.rows = rows
        self.projection = nn.Linear(image_width, rows * width)

    def forward(self, vision: Vision) -> Float[Tensor, "b m d"]:
        """`rows` vectors an image."""
        expect_pooled(vision.pooled, width=self.projection.in_features)
        flat: Tensor = self.projection(vision.pooled)
        return flat.view(len(flat), self.rows, -1)


class GridRows(nn.Module):
    """The places of the grid as vectors, each told apart by a learned one of its own."""

    def __init__(self, *, places: int, image_width: int, width: int) -> None:
        super().__init__()
        self.projection = nn.Linear(image_width, width)
        self.places = nn.Parameter(torch.randn(places, width) * 0.02)

    def forward(self, vision: Vision) -> Float[Tensor, "b m d"]:
        """A vector a place."""
        expect_grid(vision.grid, places=len(self.places), width=self.projection.in_features)
        rows: Tensor = self.projection(vision.grid)
        return rows + self.places


class TransformerMapping(nn.Module):
    """Image vectors and learned constants look at one another; what the constants become is the prefix."""

    def __init__(self, rows: nn.Module, *, length: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.rows = rows
        self.constants = nn.Parameter(torch.randn(length, width))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, heads, dim_feedforward=2 * width, dropout=0.0, batch_first=True, norm_first=True
            )
            for _ in range(layers)
        )

    def forward(self, vision: Vision) -> Float[Tensor, "b n d"]:
        """The prefix of each image."""
        rows: Tensor = self.rows(vision)
        values = torch.cat([rows, self.constants.expand(len(rows), -1, -1)], dim=1)  # (b, m + n, d)
        for layer in self.layers:
            values = layer(values)
        return values[:, rows.size(1) :]


def build_mapping(config: PrefixConfig, *, traits: EncoderTraits, width: int) -> nn.Module:
    """The mapping network of a configuration, for vectors of that width."""
    length = config.prefix_length
    if config.mapping == "mlp":
        hidden = config.mlp_width or max(1, length * width // 2)
        return MLPMapping(image_width=traits.pooled(), hidden=hidden, length=length, width=width)
    if width % config.mapping_heads:
        raise TellapartError(
            f"captioner.mapping_heads: {config.mapping_heads} heads cannot share the {width} numbers of "
            "the language model's vectors",
            hint=f"take a number that divides {width}",
        )
    rows: nn.Module
    if config.look == "grid":
        places, image_width = traits.grid()
        rows = GridRows(places=places, image_width=image_width, width=width)
    else:
        rows = PooledRows(image_width=traits.pooled(), rows=length, width=width)
    return TransformerMapping(
        rows, length=length, width=width, layers=config.mapping_layers, heads=config.mapping_heads
    )
