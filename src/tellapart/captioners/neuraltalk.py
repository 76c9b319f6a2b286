"""NeuralTalk2 (Karpathy 2015), the network of Vinyals et al. 2015, as Dai & Lin 2017 use it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from tellapart.arrays import Float, Int
from tellapart.captioners.expect import expect_pooled
from tellapart.captioners.settings.recurrent import NeuralTalkConfig
from tellapart.types import Captioner, Prediction, Text, Vision
from tellapart.vision.traits import EncoderTraits


@dataclass(frozen=True, slots=True)
class NeuralTalkState:
    """Hidden state and cell of the LSTM: all that is left of the picture after its first step."""

    hidden: Float[Tensor, "r d"]
    cell: Float[Tensor, "r d"]

    def select(self, rows: Int[Tensor, " r"]) -> NeuralTalkState:
        """The state of these rows."""
        return NeuralTalkState(self.hidden[rows], self.cell[rows])


class NeuralTalk(Captioner[NeuralTalkState]):
    """The picture is the LSTM's first input, the start sign its second (Vinyals et al. 2015, Eq. 10-12).

    ReLU behind the picture's layer and dropout before the last one are those of the code of NeuralTalk2. The
    picture's feature is first scaled to mean 0 and variance 1: as our encoders give it, it would be a tenth
    as loud as a word, and VGG's, which that code was written for, was louder than one.
    """

    needs = frozenset({"pooled"})

    def __init__(self, config: NeuralTalkConfig, *, text: Text, image_width: int) -> None:
        super().__init__()
        self.text = text
        self.embedding = nn.Embedding(len(text), config.embedding)  # W_e, Eq. 11
        self.from_picture = nn.Linear(image_width, config.embedding)  # Eq. 10
        self.lstm = nn.LSTM(config.embedding, config.hidden, batch_first=True)  # Eq. 12
        self.output = nn.Linear(config.hidden, len(text))
        self.dropout = nn.Dropout(config.dropout)

    def predict(self, vision: Vision, tokens: Int[Tensor, "b k t"]) -> Prediction:
        """The picture goes in once for all of its captions, which go on from there."""
        images, captions, length = tokens.shape
        rows = torch.arange(images, device=tokens.device).repeat_interleave(captions)
        state = self.begin(vision).select(rows)
        hidden, _ = self.continue_with(tokens.flatten(0, 1), state)
        hidden = hidden.view(images, captions, length, -1)
        return Prediction(self.output(self.dropout(hidden)), hidden=(hidden,))

    def begin(self, vision: Vision) -> NeuralTalkState:
        """The LSTM after its first input, the picture."""
        expect_pooled(vision.pooled, width=self.from_picture.in_features)
        feature = functional.layer_norm(vision.pooled, vision.pooled.shape[-1:])
        picture = torch.relu(self.from_picture(feature))
        _, (hidden, cell) = self.lstm(picture.unsqueeze(1))
        return NeuralTalkState(hidden[0], cell[0])

    def step(
        self, token: Int[Tensor, " r"], state: NeuralTalkState
    ) -> tuple[Float[Tensor, "r v"], NeuralTalkState]:
        """One word a row."""
        hidden, after = self.continue_with(token.unsqueeze(1), state)
        return self.output(self.dropout(hidden[:, 0])), after

    def continue_with(
        self, tokens: Int[Tensor, "r t"], state: NeuralTalkState
    ) -> tuple[Float[Tensor, "r t d"], NeuralTalkState]:
        """The LSTM's output at each of these tokens, and its state behind the last."""
        before = (state.hidden.unsqueeze(0), state.cell.unsqueeze(0))
        output, (hidden, cell) = self.lstm(self.embedding(tokens), before)
        return output, NeuralTalkState(hidden[0], cell[0])


def build(config: NeuralTalkConfig, *, text: Text, traits: EncoderTraits) -> NeuralTalk:
    """An untrained NeuralTalk2 for the features of that encoder."""
    return NeuralTalk(config, text=text, image_width=traits.pooled())
