"""MiniLM as the sentence encoder of a dual encoder: it stays as it is, only a projection of it is learned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from tellapart.arrays import Bool, Float, Float32
from tellapart.foreign.minilm import WIDTH, MiniLM, Spelling, load_minilm
from tellapart.retrievers.dual.sentences import Read, SentenceEncoder


class MiniLmSentences(SentenceEncoder):
    """MiniLM's vector of the sentence; its weights are not among this network's."""

    width = WIDTH

    def __init__(self) -> None:
        super().__init__()
        self._minilm: MiniLM = load_minilm(needed_by="a retriever with sentences = 'minilm'")
        self.fingerprint = self._minilm.identity
        self._spellings: dict[tuple[str, ...], Spelling] = {}

    def read(self, sentences: Sequence[str]) -> Sequence[Float32[np.ndarray, " s"]]:
        """The vectors themselves: they never change."""
        return list(self._minilm.sentence_features(sentences))

    def forward(self, read: Sequence[Read]) -> Float[Tensor, "n s"]:
        """What was read, as one batch."""
        return torch.from_numpy(np.stack(read))

    def from_words(
        self, one_hot: Float[Tensor, "n t v"], mask: Bool[Tensor, "n t"], words: Sequence[str]
    ) -> Float[Tensor, "n s"]:
        """Read the heaviest word of each place; the gradient passes to all (see `MiniLM.hard_inputs`)."""
        key = tuple(words)
        if key not in self._spellings:
            self._spellings[key] = self._minilm.spell(words)
        return self._minilm.embed_pieces(*self._minilm.hard_inputs(one_hot, mask, self._spellings[key]))
