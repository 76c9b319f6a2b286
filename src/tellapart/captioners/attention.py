"""Attention in several heads, and the keys and values of the words that a caption already has."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from tellapart.arrays import Float, Int

ROOM = 16  # a buffer of keys and values grows by so many places at once


def split_heads(x: Float[Tensor, "b n d"], parts: int, heads: int) -> Float[Tensor, "parts b heads n e"]:
    """One product's outputs as `parts` (queries, keys, values), each in its heads."""
    images, places, _ = x.shape
    return x.view(images, places, parts, heads, -1).permute(2, 0, 3, 1, 4)


def join_heads(x: Float[Tensor, "*b h n e"]) -> Float[Tensor, "*b n d"]:
    """The heads side by side again."""
    return x.transpose(-3, -2).flatten(-2)


def attend(
    queries: Float[Tensor, "*b q e"],
    keys: Float[Tensor, "*b n e"],
    values: Float[Tensor, "*b n e"],
    bias: Float[Tensor, "*c n"],
) -> tuple[Float[Tensor, "*b q e"], Float[Tensor, "*b q n"]]:
    """softmax(Q Kᵀ / √e + bias) V, Eq. 1 of Vaswani et al., and the softmax."""
    scores = (queries * queries.size(-1) ** -0.5) @ keys.transpose(-2, -1) + bias
    weights = scores.softmax(-1)
    return weights @ values, weights


@dataclass(slots=True)
class Written:
    """How many places of a buffer hold something; shared by all who hold the buffer."""

    places: int = 0


@dataclass(frozen=True, slots=True)
class Past:
    """Keys and values of the words so far, in a buffer with room for more.

    To its holders it never changes. Of those who share a buffer the first to go on writes into its free
    places, which no other looks at; whoever comes second finds them taken and gets a buffer of its own.
    """

    buffer: Float[Tensor, "2 r h room e"]
    length: int = 0
    written: Written = field(default_factory=Written)

    @property
    def keys(self) -> Float[Tensor, "r h t e"]:
        """The keys of all words so far."""
        return self.buffer[0, :, :, : self.length]

    @property
    def values(self) -> Float[Tensor, "r h t e"]:
        """The values of all words so far."""
        return self.buffer[1, :, :, : self.length]

    def append(self, new: Float[Tensor, "2 r h t e"]) -> Past:
        """The past with the keys and values of further words."""
        length = self.length + new.size(3)
        if torch.is_grad_enabled():  # the backward pass reads what was written: nothing may be overwritten
            buffer = torch.cat([self.buffer[:, :, :, : self.length], new], dim=3) if self.length else new
            return Past(buffer, length, Written(length))
        buffer, written = self.buffer, self.written
        if buffer.size(3) < length or written.places != self.length:
            written = Written()
            room = -(-length // ROOM) * ROOM
            buffer = new.new_empty(*new.shape[:3], room, new.size(4))
            buffer[:, :, :, : self.length] = self.buffer[:, :, :, : self.length]
        buffer[:, :, :, self.length : length] = new
        written.places = length
        return Past(buffer, length, written)

    def select(self, rows: Int[Tensor, " s"]) -> Past:
        """The past of these rows, in a buffer of its own."""
        return Past(self.buffer.index_select(1, rows), self.length, Written(self.length))


class CausalAttention(nn.Module):
    """Words attend to themselves and to the words before them.

    No projection has a bias: that of the keys would cancel out in the softmax and never learn.
    """

    def __init__(self, *, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width, bias=False)  # queries, keys, values
        self.output = nn.Linear(width, width)

    def empty(self, rows: int) -> Past:
        """The past of so many captions without a word."""
        weight = self.project.weight
        return Past(weight.new_empty(2, rows, self.heads, 0, weight.size(1) // self.heads))

    def forward(self, x: Float[Tensor, "r t d"], past: Past) -> tuple[Float[Tensor, "r t d"], Past]:
        """Words behind a past."""
        queries, new = split_heads(self.project(x), 3, self.heads).split_with_sizes((1, 2))
        before, past = past.length, past.append(new)
        # Not torch's own attention: where products are of 16 bits it takes ten times as long on captions.
        later = x.new_full((x.size(1), past.length), -torch.inf).triu(before + 1)
        mixed, _ = attend(queries[0], past.keys, past.values, later)
        return self.output(join_heads(mixed)), past


class GridAttention(nn.Module):
    """Rows of the memory attend to one another and to `slots` learned keys and values, if there are any."""

    def __init__(self, *, width: int, heads: int, slots: int = 0) -> None:
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width, bias=False)  # queries, keys, values
        self.output = nn.Linear(width, width)
        self.slots: nn.ParameterList | None = None
        if slots:
            size = width // heads
            self.slots = nn.ParameterList(
                torch.randn(heads, slots, size) * scale**-0.5 for scale in (size, slots)
            )

    def forward(self, x: Float[Tensor, "b n d"], bias: Float[Tensor, "b n"]) -> Float[Tensor, "b n d"]:
        """The bias of a row is added to every score of its key."""
        queries, keys, values = split_heads(self.project(x), 3, self.heads)
        if self.slots is not None:
            slot_keys, slot_values = (slots.expand(len(x), -1, -1, -1) for slots in self.slots)
            keys, values = torch.cat([keys, slot_keys], dim=2), torch.cat([values, slot_values], dim=2)
            bias = torch.cat([bias, bias.new_zeros(len(x), slot_keys.size(2))], dim=1)
        mixed, _ = attend(queries, keys, values, bias[:, None, None])
        joined: Tensor = self.output(join_heads(mixed))
        return joined


class FeedForward(nn.Sequential):
    """Eq. 2 of Vaswani et al.: two linear layers with a ReLU between them."""

    def __init__(self, *, width: int, hidden: int) -> None:
        super().__init__(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width))
