"""The Transformer of Vaswani et al. (2017) over the places of a grid.

Layers are normalised before each sublayer instead of behind it: the gradient then reaches every layer
undiminished from the first step on (Xiong et al. 2020), where the other order needs a long warm-up, and the
longer the more layers there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from tellapart.arrays import Float, Int
from tellapart.captioners.attention import (
    CausalAttention,
    FeedForward,
    GridAttention,
    Past,
    attend,
    join_heads,
    split_heads,
)
from tellapart.captioners.copying import CopyWords
from tellapart.captioners.memory import Memory, Remember, grid_needs
from tellapart.captioners.per_image import PerImage
from tellapart.captioners.quick_linear import PackedWeights
from tellapart.captioners.sees_first import SeesFirst
from tellapart.captioners.settings.transformer import TransformerConfig, TransformerSizes
from tellapart.data.word_text import WordText
from tellapart.errors import TellapartError
from tellapart.types import Prediction, Vision
from tellapart.vision.traits import EncoderTraits

LONGEST = 256  # tokens of a caption

Encoded = tuple[Tensor, ...]
"""Bias and concept words of the memory, the memory as the encoder left it, keys and values of each layer."""


class WordTable(nn.Module):
    """Reads words and writes them, by one table for both where it is tied (section 3.4).

    A concept word that is hardly seen in training is then written by the vector that it is read by.
    """

    def __init__(self, *, words: int, width: int, tied: bool) -> None:
        super().__init__()
        self.read = nn.Parameter(torch.randn(words, width) * width**-0.5)
        self.write = None if tied else nn.Parameter(torch.randn(words, width) * width**-0.5)
        self.bias = nn.Parameter(torch.zeros(words))
        self.packed = PackedWeights()

    def forward(self, tokens: Int[Tensor, "*b"]) -> Float[Tensor, "*b d"]:
        """Vectors of words, of length √d or so, as the places' are."""
        read: Tensor = embedding(tokens, self.read)
        return read * math.sqrt(self.read.size(1))

    def logits(self, hidden: Float[Tensor, "*b d"]) -> Float[Tensor, "*b v"]:
        """How well each word fits."""
        logits: Tensor = self.packed(hidden, self.read if self.write is None else self.write, self.bias)
        return logits


def sinusoids(length: int, width: int) -> Float[Tensor, "t d"]:
    """A vector a place in the caption: sines and cosines of falling frequency (section 3.5)."""
    frequency = 10000 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * frequency
    return torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1).to(torch.get_default_dtype())


class EncoderLayer(nn.Module):
    """Attention among the rows of the memory, then a feed-forward layer."""

    def __init__(self, config: TransformerSizes) -> None:
        super().__init__()
        self.attention = GridAttention(width=config.width, heads=config.heads)
        self.feed_forward = FeedForward(width=config.width, hidden=config.feed_forward)
        self.norms = nn.ModuleList(nn.LayerNorm(config.width) for _ in range(2))
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Float[Tensor, "b n d"], bias: Float[Tensor, "b n"]) -> Float[Tensor, "b n d"]:
        """The same rows, each knowing of the others."""
        x = x + self.dropout(self.attention(self.norms[0](x), bias))
        added: Tensor = self.dropout(self.feed_forward(self.norms[1](x)))
        return x + added


class Encoder(nn.Module):
    """Layers over the memory; only the last one's output is shown to the decoder."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_layers))
        self.norm = nn.LayerNorm(config.width)

    def forward(self, x: Float[Tensor, "b n d"], bias: Float[Tensor, "b n"]) -> Float[Tensor, "b 1 n d"]:
        """The rows as the decoder sees them."""
        for layer in self.layers:
            x = layer(x, bias)
        normed: Tensor = self.norm(x)
        return normed.unsqueeze(1)


class CrossAttention(nn.Module):
    """Words attend to the rows of the memory, whose keys and values are computed once an image.

    `l` levels of the encoder share the projections.
    """

    def __init__(self, *, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width, bias=False)
        self.look = nn.Linear(width, 2 * width, bias=False)  # keys and values of the memory
        self.output = nn.Linear(width, width)

    def keep(
        self, encoded: Float[Tensor, "b l n d"]
    ) -> tuple[Float[Tensor, "b l h n e"], Float[Tensor, "b l h n e"]]:
        """Keys and values, laid out for the products to come."""
        keys, values = split_heads(self.look(encoded.flatten(0, 1)), 2, self.heads)
        levels = encoded.shape[:2]
        return keys.unflatten(0, levels).contiguous(), values.unflatten(0, levels).contiguous()

    def forward(
        self,
        x: Float[Tensor, "b q d"],
        keys: Float[Tensor, "b l h n e"],
        values: Float[Tensor, "b l h n e"],
        bias: Float[Tensor, "b n"],
    ) -> tuple[Float[Tensor, "b l q d"], Float[Tensor, "b l h q n"]]:
        """What each word sees of each level, and how much of each row."""
        queries = (
            split_heads(self.query(x), 1, self.heads)[0].unsqueeze(1).expand(-1, keys.size(1), -1, -1, -1)
        )
        mixed, weights = attend(queries, keys, values, bias[:, None, None, None])
        return self.output(join_heads(mixed)), weights


class DecoderLayer(nn.Module):
    """Attention to the words so far, then to the memory, then a feed-forward layer."""

    def __init__(self, config: TransformerSizes) -> None:
        super().__init__()
        self.words = CausalAttention(width=config.width, heads=config.heads)
        self.memory = CrossAttention(width=config.width, heads=config.heads)
        self.feed_forward = FeedForward(width=config.width, hidden=config.feed_forward)
        self.norms = nn.ModuleList(nn.LayerNorm(config.width) for _ in range(3))
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        x: Float[Tensor, "b k t d"],
        past: Past,
        kept: tuple[Float[Tensor, "b 1 h n e"], Float[Tensor, "b 1 h n e"]],
        bias: Float[Tensor, "b n"],
    ) -> tuple[Float[Tensor, "b k t d"], Float[Tensor, "b h q n"], Past]:
        """The same words, what they attended to (q = k·t), and the past with them."""
        heard, past = self.words(self.norms[0](x).flatten(0, 1), past)
        x = x + self.dropout(heard.view_as(x))
        seen, weights = self.memory(self.norms[1](x).flatten(1, 2), *kept, bias)
        x = x + self.dropout(seen.view_as(x))
        x = x + self.dropout(self.feed_forward(self.norms[2](x)))
        return x, weights.squeeze(1), past


@dataclass(frozen=True, slots=True)
class TransformerState:
    """Once an image: the memory, and each layer's keys and values of it. A row: those of the words so far."""

    images: PerImage
    pasts: tuple[Past, ...]

    def select(self, rows: Int[Tensor, " r"]) -> TransformerState:
        """The state of these rows."""
        return TransformerState(self.images.select(rows), tuple(past.select(rows) for past in self.pasts))


class Transformer(SeesFirst[TransformerState, Encoded]):
    """An encoder of the memory and a decoder of words, of whatever layers it is given.

    `hidden` is the output of every decoder layer, `attention` what its words attended to in the memory: the
    places of the grid, then the concept words.
    """

    moments: Tensor  # (LONGEST, d): a vector a place in the caption

    def __init__(
        self,
        config: TransformerSizes,
        *,
        text: WordText,
        traits: EncoderTraits,
        encoder: nn.Module,
        layers: Sequence[DecoderLayer],
        norm: nn.Module,
    ) -> None:
        super().__init__()
        self.text = text
        self.needs = grid_needs(config)
        width = config.width
        self.words = WordTable(words=len(text), width=width, tied=config.tied)
        self.remember = Remember(config, text=text, traits=traits, width=width, dropout=config.dropout)
        self.places = nn.Parameter(torch.randn(self.remember.places, width) * 0.02)  # of the grid
        self.longest = LONGEST
        self.register_buffer("moments", sinusoids(LONGEST, width), persistent=False)
        self.encoder, self.layers, self.norm = encoder, nn.ModuleList(layers), norm
        self.dropout = nn.Dropout(config.dropout)
        self.copy_words = CopyWords(hidden=width, width=width) if config.copy_words else None
        for module in (*self.encoder.modules(), *self.layers.modules()):
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)

    @property
    def decoder(self) -> Sequence[DecoderLayer]:
        """Its layers, the lowest first."""
        return [cast("DecoderLayer", layer) for layer in self.layers]

    def read(self, seen: Encoded, tokens: Int[Tensor, "b k t"]) -> Prediction:
        """All words of all captions at once."""
        return self.advance(tokens, self.state(seen, group=tokens.size(1)))[0]

    def begin(self, vision: Vision) -> TransformerState:
        """The memory, and no word."""
        return self.state(self.see(vision), group=1)

    def step(
        self, token: Int[Tensor, " r"], state: TransformerState
    ) -> tuple[Float[Tensor, "r v"], TransformerState]:
        """One word a row; those of an image look at its memory together."""
        prediction, after = self.advance(state.images.grouped(token).unsqueeze(2), state)
        return prediction.logits.flatten(0, 2), after

    def see(self, vision: Vision) -> Encoded:
        """All that needs no words: the memory, encoded, and each layer's keys and values of it."""
        memory = self.remember_places(vision)
        encoded = self.encoder(memory.values, memory.bias)
        kept = [tensor for layer in self.decoder for tensor in layer.memory.keep(encoded)]
        return memory.bias, memory.words, encoded[:, -1], *kept

    def state(self, seen: Encoded, *, group: int) -> TransformerState:
        """Before the first word of `group` captions an image."""
        rows = len(seen[0]) * group
        return TransformerState(
            PerImage(seen, group), tuple(layer.words.empty(rows) for layer in self.decoder)
        )

    def remember_places(self, vision: Vision) -> Memory:
        """The memory with the places of the grid marked."""
        memory = self.remember(vision, self.words)
        concepts = memory.words.size(1)
        places = torch.cat([self.places, self.places.new_zeros(concepts, self.places.size(1))])
        return Memory(memory.values + places, memory.bias, memory.words)

    def advance(
        self, tokens: Int[Tensor, "b k t"], state: TransformerState
    ) -> tuple[Prediction, TransformerState]:
        """Take one further token of each caption, or all tokens of captions that have none yet."""
        bias, words, encoded, *kept = state.images.tensors
        x = self.dropout(self.words(tokens) + self.when(state.pasts[0].length, tokens.size(2)))
        hidden, attention, pasts = [], [], []
        for layer, keys, values, past in zip(self.decoder, kept[::2], kept[1::2], state.pasts, strict=True):
            x, weights, longer = layer(x, past, (keys, values), bias)
            hidden.append(x)
            # (b, h, k·t, n) to (b, k, h, t, n)
            attention.append(weights.unflatten(2, tokens.shape[1:]).transpose(1, 2))
            pasts.append(longer)
        last = self.norm(x).flatten(1, 2)  # (b, k·t, d)
        logits = self.words.logits(last)
        if self.copy_words is not None:
            logits = self.copy_words(logits, last, Memory(encoded, bias, words))
        prediction = Prediction(logits.view(*tokens.shape, -1), tuple(hidden), tuple(attention))
        return prediction, TransformerState(state.images, tuple(pasts))

    def when(self, begin: int, count: int) -> Float[Tensor, "t d"]:
        """The vectors of so many places in a caption."""
        if begin + count > LONGEST:
            raise TellapartError(
                f"a caption of {begin + count} tokens: this captioner reads and writes {LONGEST} at most",
                hint="lower data.max_words or decoding.max_words",
            )
        return self.moments[begin : begin + count]


def build(config: TransformerConfig, *, text: WordText, traits: EncoderTraits) -> Transformer:
    """An untrained Transformer for the grid of that encoder."""
    layers = [DecoderLayer(config) for _ in range(config.decoder_layers)]
    return Transformer(
        config,
        text=text,
        traits=traits,
        encoder=Encoder(config),
        layers=layers,
        norm=nn.LayerNorm(config.width),
    )
