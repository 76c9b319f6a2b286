"""Adaptive attention with a visual sentinel (Lu et al., CVPR 2017, "Knowing When to Look")."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tellapart.arrays import Float, Int
from tellapart.captioners.additive_attention import additive_scores
from tellapart.captioners.copying import CopyWords
from tellapart.captioners.lstm import lstm_update
from tellapart.captioners.memory import Remember, grid_needs
from tellapart.captioners.per_image import PerImage
from tellapart.captioners.seen import Seen
from tellapart.captioners.sees_first import SeesFirst
from tellapart.captioners.settings.recurrent import AdaptiveConfig
from tellapart.data.word_text import WordText
from tellapart.types import Prediction, Vision
from tellapart.vision.traits import EncoderTraits


@dataclass(frozen=True, slots=True)
class AdaptiveState:
    """Hidden state and cell of the LSTM, and what was seen of the picture."""

    hidden: Float[Tensor, "r d"]
    cell: Float[Tensor, "r d"]
    image: PerImage  # what was `Seen`

    def select(self, rows: Int[Tensor, " r"]) -> AdaptiveState:
        """The state of these rows."""
        return AdaptiveState(self.hidden[rows], self.cell[rows], self.image.select(rows))


@dataclass(frozen=True, slots=True)
class Look:
    """The outcome of attention: logits, what the last layer read, and where it looked."""

    logits: Float[Tensor, "b q v"]
    meeting: Float[Tensor, "b q d"]  # ĉ_t + h_t
    weights: Float[Tensor, "b q n"]  # α̂_t


class Adaptive(SeesFirst[AdaptiveState, Seen]):
    """One LSTM; at each word it looks at the grid or trusts its own memory, the sentinel (Eq. 4-16).

    Attention is over the places of the grid, then the concept words, and the sentinel in the last column, so
    that column is β_t. Nothing that was attended to flows back into the LSTM, so all words look at once.
    """

    def __init__(self, config: AdaptiveConfig, *, text: WordText, traits: EncoderTraits) -> None:
        super().__init__()
        self.text = text
        self.needs = grid_needs(config)
        width, space = config.width, config.attention
        self.embedding = nn.Embedding(len(text), width)
        self.remember = Remember(  # Eq. 15
            config, text=text, traits=traits, width=width, dropout=config.dropout
        )
        self.from_mean = nn.Linear(traits.grid()[1], width)  # W_b, Eq. 16
        # The first four are the LSTM's gates (Eq. 4), the fifth is the sentinel's (Eq. 9).
        self.gates_of_word = nn.Linear(width, 5 * width, bias=False)
        self.gates_of_picture = nn.Linear(width, 5 * width)
        self.recurrence = nn.Linear(width, 4 * width, bias=False)
        self.sentinel_recurrence = nn.Linear(width, width, bias=False)  # W_h, Eq. 9
        self.from_place = nn.Linear(width, space, bias=False)  # W_v, Eq. 6
        self.from_hidden = nn.Linear(width, space, bias=False)  # W_g
        self.from_sentinel = nn.Linear(width, space, bias=False)  # W_s, Eq. 12
        self.score = nn.Linear(space, 1, bias=False)  # w_h
        self.output = nn.Linear(width, len(text))  # W_p, Eq. 13
        self.copy_words = CopyWords(hidden=width, width=width) if config.copy_words else None
        self.dropout = nn.Dropout(config.dropout)

    def read(self, seen: Seen, tokens: Int[Tensor, "b k t"]) -> Prediction:
        """Only the LSTM runs word by word; sentinel, attention and last layer take all words at once."""
        images, captions, length = tokens.shape
        gates = self.gates_of_word(self.dropout(self.embedding(tokens))) + seen.gates[:, None, None]
        of_lstm, of_sentinel = torch.split(gates.flatten(0, 1), [4 * self.width, self.width], dim=2)
        hidden = cell = gates.new_zeros(images * captions, self.width)
        hiddens, cells = [hidden], []
        for now in of_lstm.unbind(1):
            hidden, cell = lstm_update(now + self.recurrence(hidden), cell)
            hiddens.append(hidden)
            cells.append(cell)
        before = torch.stack(hiddens[:-1], dim=1)  # (b·k, t, d)
        sentinel = self.stand_guard(of_sentinel, before, torch.stack(cells, dim=1))
        after = torch.stack(hiddens[1:], dim=1)
        look = self.look(seen, *(part.view(images, captions * length, -1) for part in (after, sentinel)))
        logits, meeting, weights = (
            part.view(images, captions, length, -1) for part in (look.logits, look.meeting, look.weights)
        )
        return Prediction(logits, hidden=(meeting,), attention=(weights.unsqueeze(2),))

    def begin(self, vision: Vision) -> AdaptiveState:
        """An LSTM that has read nothing, and the picture."""
        seen = self.see(vision)
        nothing = seen.gates.new_zeros(len(vision), self.width)
        return AdaptiveState(nothing, nothing, seen.per_image())

    def step(
        self, token: Int[Tensor, " r"], state: AdaptiveState
    ) -> tuple[Float[Tensor, "r v"], AdaptiveState]:
        """One word a row."""
        seen, grouped = Seen.of(state.image), state.image.grouped
        word = self.gates_of_word(self.dropout(self.embedding(token)))
        gates = (grouped(word) + seen.gates.unsqueeze(1)).flatten(0, 1)
        of_lstm, of_sentinel = torch.split(gates, [4 * self.width, self.width], dim=1)
        hidden, cell = lstm_update(of_lstm + self.recurrence(state.hidden), state.cell)
        sentinel = self.stand_guard(of_sentinel, state.hidden, cell)
        look = self.look(seen, grouped(hidden), grouped(sentinel))
        return look.logits.flatten(0, 1), AdaptiveState(hidden, cell, state.image)

    @property
    def width(self) -> int:
        """Width of the LSTM."""
        return self.embedding.embedding_dim

    def see(self, vision: Vision) -> Seen:
        """All that needs no words: places (Eq. 15), their keys, and the whole picture v^g (Eq. 14, 16)."""
        memory = self.remember(vision, self.embedding)
        picture = self.dropout(torch.relu(self.from_mean(vision.grid.mean(1))))
        return Seen(memory, self.from_place(memory.values), self.gates_of_picture(picture))

    def stand_guard(
        self, gate: Float[Tensor, "*r d"], before: Float[Tensor, "*r d"], cell: Float[Tensor, "*r d"]
    ) -> Float[Tensor, "*r d"]:
        """The sentinel s_t, Eq. 9-10: as much of the LSTM's memory as its gate lets through."""
        return torch.sigmoid(gate + self.sentinel_recurrence(before)) * torch.tanh(cell)

    def look(self, seen: Seen, hidden: Float[Tensor, "b q d"], sentinel: Float[Tensor, "b q d"]) -> Look:
        """Attention over places and sentinel (Eq. 6, 12), the mixed context (Eq. 8, 11) and words (Eq. 13).

        ĉ_t = β_t s_t + (1 - β_t) c_t is the mean of places and sentinel under α̂_t, whose last element is β_t.
        """
        query, weight = self.from_hidden(hidden), self.score.weight[0]
        scores = additive_scores(seen.keys, query, weight) + seen.memory.bias.unsqueeze(1)
        of_sentinel = self.score(torch.tanh(self.from_sentinel(sentinel) + query))  # (b, q, 1)
        weights = torch.cat([scores, of_sentinel], dim=2).softmax(2)
        context = weights[:, :, :-1] @ seen.memory.values + weights[:, :, -1:] * sentinel
        meeting = context + hidden
        logits = self.output(self.dropout(meeting))
        if self.copy_words is not None:
            logits = self.copy_words(logits, meeting, seen.memory)
        return Look(logits, meeting, weights)


def build(config: AdaptiveConfig, *, text: WordText, traits: EncoderTraits) -> Adaptive:
    """Untrained adaptive attention for the features of that encoder."""
    return Adaptive(config, text=text, traits=traits)
