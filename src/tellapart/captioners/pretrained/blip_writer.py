"""BLIP's text decoder, which reads an image without projecting it while its captions are few and short.

The library's cross-attention turns all that the tower saw into keys and values, layer by layer, before the
first word: of a short caption that is most of the work. But a score is q·(W_k x) = (W_kᵀ q)·x, and a sum of
values is W_v applied to a sum of x: so that the query can go to the image instead, and no key or value be
made. A row costs more that way; it pays for fewer rows than a head has numbers (docs/adr/020).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from tellapart.arrays import Float
from tellapart.captioners.pretrained.writers import Continuation, LibraryWriter, Passage

FEW = 3  # captions of an image side by side: more of them, of usual length, are worth keys and values


class BlipWriter(LibraryWriter):
    """BLIP's text decoder: through its own forward pass, or past the projections of the image."""

    def read(self, passage: Passage, *, last: int, watch: bool = False) -> Continuation:
        """Layer by layer where few rows are read; else as any other of the library."""
        if watch or not self._is_short(passage):
            return super().read(passage, last=last, watch=watch)
        assert passage.shown is not None
        network = self.network.bert
        states = network.embeddings(inputs_embeds=passage.embedded, position_ids=passage.positions)
        for layer in network.encoder.layer:
            states, _ = layer.attention(states, attention_mask=passage.bias, past_key_values=passage.cache)
            seen = attend_unprojected(layer.crossattention.self, states, passage.shown)
            states = layer.feed_forward_chunk(layer.crossattention.output(seen, states))
        return Continuation(self.network.cls(states[:, -last:]))

    def _is_short(self, passage: Passage) -> bool:
        """Whether so little was written, and side by side, that keys and values would not have paid yet."""
        if passage.cache is None or torch.is_grad_enabled() or self.training:
            return False
        attention = self.network.bert.encoder.layer[0].crossattention.self
        rows = passage.embedded.size(1)
        return (
            rows <= FEW
            and passage.cache.get_seq_length() + rows <= attention.attention_head_size
            and not any(passage.cache.is_updated.values())
            # adapters stand in the place of layers whose weights are not the whole of what they do
            and isinstance(attention.key, nn.Linear)
            and isinstance(attention.value, nn.Linear)
        )


def attend_unprojected(
    attention: Any, states: Float[Tensor, "b q e"], shown: Float[Tensor, "b n d"]
) -> Float[Tensor, "b q e"]:
    """What the library's cross-attention gives, but for the last bits.

    A key's bias adds the same to all scores of a query, so nothing to their softmax; a value's bias comes out
    as it is, since weights sum to 1.
    """
    heads, size = attention.num_attention_heads, attention.attention_head_size
    images, rows, _ = states.shape
    queries = attention.query(states).view(images * rows, heads, size).transpose(0, 1)
    asked = torch.bmm(queries, attention.key.weight.view(heads, size, -1))
    asked = asked.view(heads, images, rows, -1).permute(1, 2, 0, 3).reshape(images, 1, rows * heads, -1)
    all_seen = shown.unsqueeze(1)
    seen = scaled_dot_product_attention(asked, all_seen, all_seen, scale=size**-0.5)
    by_head = seen.view(images * rows, heads, -1).transpose(0, 1)
    values = torch.bmm(by_head, attention.value.weight.view(heads, size, -1).transpose(1, 2))
    found: Tensor = values.transpose(0, 1).reshape(images, rows, -1) + attention.value.bias
    return found
