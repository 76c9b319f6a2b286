"""Networks that read a sentence: InferSent's BiLSTM over word vectors, and MiniLM as it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from tellapart.arrays import Bool, Float, Int
from tellapart.data.word_text import WordText
from tellapart.retrievers.dual.words import read_words
from tellapart.retrievers.settings import DualConfig

Read = np.ndarray  # a sentence as its network takes it in: numbers of words, or a vector


class SentenceEncoder(nn.Module, ABC):
    """A sentence becomes a vector; reading it, which never changes, is apart from what is learned."""

    width: int
    fingerprint: str  # of all that gives a read sentence its meaning

    @abstractmethod
    def read(self, sentences: Sequence[str]) -> Sequence[Read]:
        """Each sentence as the network takes it in."""

    @abstractmethod
    def forward(self, read: Sequence[Read]) -> Float[Tensor, "n s"]:
        """The vectors of sentences that were read."""

    @abstractmethod
    def from_words(
        self, one_hot: Float[Tensor, "n t v"], mask: Bool[Tensor, "n t"], words: Sequence[str]
    ) -> Float[Tensor, "n s"]:
        """The vectors of sentences given as weights of words; column i of the weights is words[i]."""


class BiLstm(SentenceEncoder):
    """InferSent: a BiLSTM over word vectors, of whose states the greatest of each unit is taken.

    No sign stands before or behind the sentence, as in Lindh et al.'s use of it; a sentence without words is
    one unknown word.
    """

    def __init__(self, config: DualConfig, text: WordText, vectors: Float[Tensor, "v e"] | None) -> None:
        super().__init__()
        self.text = text
        self.fingerprint = text.fingerprint
        self.width = 2 * config.hidden
        if vectors is None:
            self.vectors: Tensor = nn.Parameter(torch.randn(len(text), config.word_width))
        else:
            self.register_buffer("vectors", vectors)
        self.lstm = nn.LSTM(config.word_width, config.hidden, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(config.dropout)

    def read(self, sentences: Sequence[str]) -> Sequence[Int[np.ndarray, " _"]]:
        """The numbers of its words."""
        return [read_words(sentence, self.text) for sentence in sentences]

    def forward(self, read: Sequence[Read]) -> Float[Tensor, "n s"]:
        """Look the words up, and read."""
        lengths = torch.tensor([len(numbers) for numbers in read])
        padded = nn.utils.rnn.pad_sequence([torch.from_numpy(numbers) for numbers in read], batch_first=True)
        return self._read_vectors(self.vectors[padded], lengths)

    def from_words(
        self, one_hot: Float[Tensor, "n t v"], mask: Bool[Tensor, "n t"], words: Sequence[str]
    ) -> Float[Tensor, "n s"]:
        """Word vectors weighed by the given weights: the gradient passes to all words of each place.

        A word that is not known, or the empty name of a sign that is no word, has GloVe's zeros or the vector
        of the unknown word. Places outside the mask must lie behind the sentence.
        """
        vocabulary = self.text.vocabulary
        table = self.vectors[[vocabulary.id(word) for word in words]]
        lengths = mask.sum(1)
        empty = lengths == 0
        vectors = one_hot @ table
        if empty.any():
            nothing = torch.zeros_like(vectors)
            nothing[:, 0] = self.vectors[vocabulary.unknown]
            vectors = torch.where(empty[:, None, None], nothing, vectors)
        return self._read_vectors(vectors, lengths.clamp_min(1))

    def _read_vectors(
        self, vectors: Float[Tensor, "n t e"], lengths: Int[Tensor, " n"]
    ) -> Float[Tensor, "n s"]:
        packed = pack_padded_sequence(
            self.dropout(vectors), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        states: PackedSequence
        states, _ = self.lstm(packed)
        # Behind a sentence's end stands less than any state can be, so that it is never the greatest.
        unpacked, _ = pad_packed_sequence(states, batch_first=True, padding_value=-2.0)
        greatest: Tensor = unpacked.amax(1)
        return greatest
