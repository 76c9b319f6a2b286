"""Top-down attention with two LSTMs (Anderson et al., CVPR 2018), over a grid as in Lindh et al. 2018."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tellapart.arrays import Float, Int
from tellapart.captioners.additive_attention import additive_scores
from tellapart.captioners.copying import CopyWords
from tellapart.captioners.lstm import lstm_update
from tellapart.captioners.memory import Memory, Remember, grid_needs
from tellapart.captioners.per_image import PerImage
from tellapart.captioners.seen import Seen
from tellapart.captioners.sees_first import SeesFirst
from tellapart.captioners.settings.recurrent import TopDownConfig
from tellapart.data.word_text import WordText
from tellapart.types import Prediction, Vision
from tellapart.vision.traits import EncoderTraits


@dataclass(frozen=True, slots=True)
class Recurrent:
    """Hidden state and cell of the attention LSTM, which looks, and of the language LSTM, which writes."""

    look: Float[Tensor, "r d"]
    look_cell: Float[Tensor, "r d"]
    write: Float[Tensor, "r d"]
    write_cell: Float[Tensor, "r d"]

    def select(self, rows: Int[Tensor, " r"]) -> Recurrent:
        """Those of these rows."""
        return Recurrent(self.look[rows], self.look_cell[rows], self.write[rows], self.write_cell[rows])


@dataclass(frozen=True, slots=True)
class TopDownState:
    """Both LSTMs, and what was seen of the picture."""

    recurrent: Recurrent
    image: PerImage  # what was `Seen`

    def select(self, rows: Int[Tensor, " r"]) -> TopDownState:
        """The state of these rows."""
        return TopDownState(self.recurrent.select(rows), self.image.select(rows))


class TopDown(SeesFirst[TopDownState, Seen]):
    """An LSTM that chooses where to look, and one that writes what was seen there (Eq. 1-7).

    The image features v_i are the places of the grid behind a layer of their own, then the concept words; the
    mean v̄ is of the places alone.
    """

    def __init__(self, config: TopDownConfig, *, text: WordText, traits: EncoderTraits) -> None:
        super().__init__()
        self.text = text
        self.needs = grid_needs(config)
        self.places = traits.grid()[0]
        width, space = config.width, config.attention
        self.embedding = nn.Embedding(len(text), width)  # W_e, Eq. 2
        self.remember = Remember(config, text=text, traits=traits, width=width, dropout=config.dropout)
        # The attention LSTM, whose input is [h²; v̄; W_e Π] (Eq. 2), a layer for each of what it reads.
        self.gates_of_word = nn.Linear(width, 4 * width, bias=False)
        self.gates_of_mean = nn.Linear(width, 4 * width)
        self.look_recurrence = nn.Linear(2 * width, 4 * width, bias=False)  # of h² and its own h¹
        self.write_gates = nn.Linear(
            3 * width, 4 * width
        )  # the language LSTM: of v̂, h¹ (Eq. 6) and its own h²
        self.from_place = nn.Linear(width, space, bias=False)  # W_va, Eq. 3
        self.from_hidden = nn.Linear(width, space, bias=False)  # W_ha
        self.score = nn.Linear(space, 1, bias=False)  # w_a
        self.output = nn.Linear(width, len(text))  # W_p, Eq. 7
        self.copy_words = CopyWords(hidden=width, width=width) if config.copy_words else None
        self.dropout = nn.Dropout(config.dropout)

    def read(self, seen: Seen, tokens: Int[Tensor, "b k t"]) -> Prediction:
        """Word by word, but words go in and logits come out all at once."""
        images, captions, length = tokens.shape
        gates = self.gates_of_word(self.dropout(self.embedding(tokens))) + seen.gates[:, None, None]
        recurrent = self.nothing_read(gates[:, :, 0].flatten(0, 1))
        written, looks = [], []
        for now in gates.flatten(0, 1).unbind(1):
            recurrent, weights = self.advance(now, recurrent, seen)
            written.append(recurrent.write)
            looks.append(weights)
        hidden = torch.stack(written, dim=1).view(images, captions * length, -1)
        logits = self.say(hidden, seen.memory).view(images, captions, length, -1)
        attention = torch.stack(looks, dim=2).unsqueeze(2)  # (b, k, 1, t, n)
        return Prediction(logits, hidden=(hidden.view(images, captions, length, -1),), attention=(attention,))

    def begin(self, vision: Vision) -> TopDownState:
        """LSTMs that have read nothing, and the picture."""
        seen = self.see(vision)
        return TopDownState(self.nothing_read(seen.gates), seen.per_image())

    def step(
        self, token: Int[Tensor, " r"], state: TopDownState
    ) -> tuple[Float[Tensor, "r v"], TopDownState]:
        """One word a row."""
        seen, grouped = Seen.of(state.image), state.image.grouped
        word = self.gates_of_word(self.dropout(self.embedding(token)))
        gates = (grouped(word) + seen.gates.unsqueeze(1)).flatten(0, 1)
        recurrent, _ = self.advance(gates, state.recurrent, seen)
        logits = self.say(grouped(recurrent.write), seen.memory)
        return logits.flatten(0, 1), TopDownState(recurrent, state.image)

    def see(self, vision: Vision) -> Seen:
        """All that needs no words: the places, their keys, and their mean v̄."""
        memory = self.remember(vision, self.embedding)
        mean = memory.values[:, : self.places].mean(1)
        return Seen(memory, self.from_place(memory.values), self.gates_of_mean(mean))

    def nothing_read(self, like: Float[Tensor, "r g"]) -> Recurrent:
        """Both LSTMs before the first word, with as many rows."""
        nothing = like.new_zeros(len(like), self.embedding.embedding_dim)
        return Recurrent(nothing, nothing, nothing, nothing)

    def advance(
        self, gates: Float[Tensor, "r g"], before: Recurrent, seen: Seen
    ) -> tuple[Recurrent, Float[Tensor, "b k n"]]:
        """One word: look (Eq. 1-2), attend (Eq. 3-5), write (Eq. 6); and where it looked."""
        recurrence = self.look_recurrence(torch.cat([before.write, before.look], dim=1))
        look, look_cell = lstm_update(gates + recurrence, before.look_cell)
        queries = self.from_hidden(look).view(len(seen.keys), -1, seen.keys.size(2))
        scores = additive_scores(seen.keys, queries, self.score.weight[0])  # Eq. 3
        weights = (scores + seen.memory.bias.unsqueeze(1)).softmax(2)  # Eq. 4
        attended = (weights @ seen.memory.values).flatten(0, 1)  # Eq. 5
        write_gates = self.write_gates(torch.cat([attended, look, before.write], dim=1))
        write, write_cell = lstm_update(write_gates, before.write_cell)
        return Recurrent(look, look_cell, write, write_cell), weights

    def say(self, hidden: Float[Tensor, "b q d"], memory: Memory) -> Float[Tensor, "b q v"]:
        """Logits of the next word, Eq. 7."""
        logits: Tensor = self.output(self.dropout(hidden))
        return logits if self.copy_words is None else self.copy_words(logits, hidden, memory)


def build(config: TopDownConfig, *, text: WordText, traits: EncoderTraits) -> TopDown:
    """Untrained top-down attention for the features of that encoder."""
    return TopDown(config, text=text, traits=traits)
