"""The multimodal recurrent network of Mao et al. (ICLR 2015), section 3.2, layer by layer as drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from tellapart.captioners.parts import MRNNConfig
from tellapart.data.vocabulary import Vocabulary
from tellapart.types import Captioner, Prediction, Vision


def scaled_tanh(x: Float[Tensor, ...]) -> Float[Tensor, ...]:
    """g2, Eq. 4."""
    return 1.7159 * torch.tanh(x * (2 / 3))


@dataclass(frozen=True, slots=True)
class MRNNState:
    """The recurrent layer, and the image as the multimodal layer takes it: V_I · I, the same all along."""

    recurrent: Float[Tensor, "r d"]
    image: Float[Tensor, "r m"]

    def select(self, rows: Int[Tensor, " r"]) -> MRNNState:
        """The state of these rows."""
        return MRNNState(self.recurrent[rows], self.image[rows])


class MRNN(Captioner[MRNNState]):
    """Two embedding layers, recurrent, multimodal and softmax layer; the recurrence never sees the image."""

    needs = frozenset({"pooled"})

    def __init__(self, config: MRNNConfig, *, vocabulary: Vocabulary, image_width: int) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        words = config.embedding_two
        self.embedding_one = nn.Embedding(len(vocabulary), config.embedding_one)
        self.embedding_two = nn.Linear(config.embedding_one, words, bias=False)
        self.recurrence = nn.Linear(words, words, bias=False)  # U_r
        self.from_word = nn.Linear(words, config.multimodal, bias=False)  # V_w
        self.from_recurrent = nn.Linear(words, config.multimodal, bias=False)  # V_r
        self.from_image = nn.Linear(image_width, config.multimodal, bias=False)  # V_I
        self.output = nn.Linear(config.multimodal, len(vocabulary))
        self.dropout = nn.Dropout(config.dropout)

    def predict(self, vision: Vision, tokens: Int[Tensor, "b k t"]) -> Prediction:
        """Only the recurrence runs word by word; every other layer takes all words at once."""
        word = self.embed(tokens)  # (b, k, t, d)
        recurrent = torch.zeros_like(word[:, :, 0])
        states = []
        for at in range(tokens.size(2)):
            recurrent = self.recur(recurrent, word[:, :, at])
            states.append(recurrent)
        image = self.from_image(vision.pooled)[:, None, None]  # (b, 1, 1, m)
        multimodal = self.meet(word, torch.stack(states, dim=2), image)
        return Prediction(self.output(self.dropout(multimodal)), hidden=(multimodal,))

    def begin(self, vision: Vision) -> MRNNState:
        """r(0) = 0, and V_I · I once an image."""
        image = self.from_image(vision.pooled)
        return MRNNState(image.new_zeros(len(image), self.recurrence.in_features), image)

    def step(self, token: Int[Tensor, " r"], state: MRNNState) -> tuple[Float[Tensor, "r v"], MRNNState]:
        """One word a row."""
        word = self.embed(token)
        recurrent = self.recur(state.recurrent, word)
        multimodal = self.meet(word, recurrent, state.image)
        return self.output(self.dropout(multimodal)), MRNNState(recurrent, state.image)

    def embed(self, tokens: Int[Tensor, ...]) -> Float[Tensor, "... d"]:
        """w(t): the activation of word embedding layer II."""
        word: Tensor = self.dropout(self.embedding_two(self.embedding_one(tokens)))
        return word

    def recur(
        self, recurrent: Float[Tensor, "... d"], word: Float[Tensor, "... d"]
    ) -> Float[Tensor, "... d"]:
        """r(t), Eq. 2: by addition, with ReLU."""
        return torch.relu(self.recurrence(recurrent) + word)

    def meet(
        self,
        word: Float[Tensor, "... d"],
        recurrent: Float[Tensor, "... d"],
        image: Float[Tensor, "... m"],
    ) -> Float[Tensor, "... m"]:
        """m(t), Eq. 3: word, recurrent layer and image in one space, added."""
        return scaled_tanh(self.from_word(word) + self.from_recurrent(self.dropout(recurrent)) + image)


def build(config: MRNNConfig, *, vocabulary: Vocabulary, shapes: Mapping[str, tuple[int, ...]]) -> MRNN:
    """An untrained m-RNN for features of these shapes."""
    (image_width,) = shapes["pooled"]
    return MRNN(config, vocabulary=vocabulary, image_width=image_width)
