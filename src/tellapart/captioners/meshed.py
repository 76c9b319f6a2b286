"""The meshed-memory Transformer of Cornia et al. (2020): M², section 3."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tellapart.arrays import Float
from tellapart.captioners.attention import FeedForward, GridAttention, Past
from tellapart.captioners.settings.transformer import MeshedConfig
from tellapart.captioners.transformer import DecoderLayer, Transformer
from tellapart.data.word_text import WordText
from tellapart.vision.traits import EncoderTraits


class MemoryLayer(nn.Module):
    """Rows of the memory attend to one another and to learned slots (Eq. 3 and 5)."""

    def __init__(self, config: MeshedConfig) -> None:
        super().__init__()
        self.attention = GridAttention(width=config.width, heads=config.heads, slots=config.slots)
        self.feed_forward = FeedForward(width=config.width, hidden=config.feed_forward)
        self.norms = nn.ModuleList(nn.LayerNorm(config.width) for _ in range(2))
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Float[Tensor, "b n d"], bias: Float[Tensor, "b n"]) -> Float[Tensor, "b n d"]:
        """X̃, Eq. 5."""
        x = self.norms[0](x + self.dropout(self.attention(x, bias)))
        normed: Tensor = self.norms[1](x + self.dropout(self.feed_forward(x)))
        return normed


class MemoryEncoder(nn.Module):
    """All layers' outputs are shown to the decoder."""

    def __init__(self, config: MeshedConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(MemoryLayer(config) for _ in range(config.layers))

    def forward(self, x: Float[Tensor, "b n d"], bias: Float[Tensor, "b n"]) -> Float[Tensor, "b l n d"]:
        """X̃ of every layer, the lowest first."""
        levels = []
        for layer in self.layers:
            x = layer(x, bias)
            levels.append(x)
        return torch.stack(levels, dim=1)


class Gates(nn.Module):
    """α_i = σ(W_i [Y, C_i] + b_i), Eq. 8: how much of each level passes, feature by feature."""

    def __init__(self, *, levels: int, width: int) -> None:
        super().__init__()
        self.from_words = nn.Linear(width, levels * width)  # the left half of every W_i, and b_i
        self.from_level = nn.Parameter(torch.empty(levels, width, width))  # the right halves, transposed
        for matrix in self.from_level:
            nn.init.xavier_uniform_(matrix.data)

    def forward(
        self, words: Float[Tensor, "b q d"], seen: Float[Tensor, "b l q d"]
    ) -> Float[Tensor, "b l q d"]:
        """Between 0 and 1."""
        images, levels, queries, _ = seen.shape
        told = self.from_words(words).view(images * queries, levels, -1).transpose(0, 1)
        # One product a level for all images: a broadcast one would copy the matrices for each image.
        level_first = seen.transpose(0, 1).reshape(levels, images * queries, -1)
        gates = torch.baddbmm(told, level_first, self.from_level).sigmoid()
        return gates.view(levels, images, queries, -1).transpose(0, 1)


class MeshedLayer(DecoderLayer):
    """Words attend to the words so far, then to every level of the encoder through gates (Eq. 6-9)."""

    def __init__(self, config: MeshedConfig) -> None:
        super().__init__(config)
        self.gates = Gates(levels=config.layers, width=config.width)

    def forward(
        self,
        x: Float[Tensor, "b k t d"],
        past: Past,
        kept: tuple[Float[Tensor, "b l h n e"], Float[Tensor, "b l h n e"]],
        bias: Float[Tensor, "b n"],
    ) -> tuple[Float[Tensor, "b k t d"], Float[Tensor, "b h q n"], Past]:
        """Ỹ of Eq. 9, the attention (q = k·t; mean of the levels) and the past with these words."""
        heard, past = self.words(x.flatten(0, 1), past)
        x = self.norms[0](x + self.dropout(heard.view_as(x)))
        asking = x.flatten(1, 2)
        seen, weights = self.memory(asking, *kept, bias)  # C of every level, Eq. 7
        # Divided by √levels as in the authors' code, so that the sum keeps its size.
        meshed = (self.gates(asking, seen) * seen).sum(1) * seen.size(1) ** -0.5  # Eq. 6
        x = self.norms[1](x + self.dropout(meshed.view_as(x)))
        x = self.norms[2](x + self.dropout(self.feed_forward(x)))
        return x, weights.mean(1), past


def build(config: MeshedConfig, *, text: WordText, traits: EncoderTraits) -> Transformer:
    """An untrained meshed-memory Transformer for the grid of that encoder.

    Its `attention` is the mean over the encoder's levels: gates act on features, not on rows of the
    memory, so that no one weight of a level would be true. Layers are normalised behind each sublayer, as
    Eq. 5 and 9 say.
    """
    return Transformer(
        config,
        text=text,
        traits=traits,
        encoder=MemoryEncoder(config),
        layers=[MeshedLayer(config) for _ in range(config.layers)],
        norm=nn.Identity(),
    )
