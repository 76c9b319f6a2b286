"""First-token shifting of SMILE: the first word of a caption in a form that no caption begins with.

The paper (section 3.3) takes for "a" the piece "##a" of BERT's vocabulary, which continues a word: it is
unfamiliar in front, so the captioner has to learn it, even where it competes with few words only. Word pieces
are shifted so, both as labels and, since they are then also written, where they are read.

A vocabulary of words has no second form of a word. There the unknown word is the label: no caption begins
with it, and since no decoder writes it, the real word stays where captions are read. What is learnt is that
none of the caption's other words comes first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from tellapart.arrays import Bool, Int
from tellapart.data.word_text import WordText
from tellapart.errors import TellapartError
from tellapart.objectives.settings.kinds import Compat
from tellapart.types import Text

CONTINUES = "##"  # how BERT marks a piece that continues a word
UNKNOWN = "[UNK]"


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Of each token the one that stands for it in front, itself where it has none."""

    tokens: Int[Tensor, " v"]
    written: bool  # whether decoders may write them


@runtime_checkable
class Spelled(Protocol):
    """A text made of a tokenizer's pieces."""

    @property
    def tokenizer(self) -> Any:
        """Of the library tokenizers."""
        ...


def find_alternatives(text: Text, compat: Compat) -> Alternatives:
    """The alternatives of a captioner's tokens; an error where there are none.

    The authors' code does not ask whether a piece exists: without one the word becomes the unknown one.
    """
    if isinstance(text, WordText):
        tokens = torch.full((len(text),), text.vocabulary.unknown)
        tokens[text.end] = text.end  # of a caption without words
        return Alternatives(tokens, written=False)
    spellings = text.tokenizer.get_vocab() if isinstance(text, Spelled) else {}
    if not any(spelling.startswith(CONTINUES) for spelling in spellings):
        raise TellapartError(
            'objective.first = "shift": the captioner\'s tokenizer has no pieces that continue a word (##a)',
            hint='set objective.first to "mle"',
        )
    unknown = spellings.get(UNKNOWN) if compat == "authors" else None
    tokens = torch.arange(len(text))
    for spelling, token in spellings.items():
        other = spellings.get(CONTINUES + spelling, unknown)
        tokens[token] = token if other is None or token in (text.end, text.pad) else other
    return Alternatives(tokens, written=True)


def shift_first(
    given: Int[Tensor, "b k t"],
    labels: Int[Tensor, "b k t"],
    mask: Bool[Tensor, "b k t"],
    alternatives: Alternatives,
) -> tuple[Int[Tensor, "b k t"], Int[Tensor, "b k t"]]:
    """What is read and what is expected, with the first word of each caption in its other form."""
    other = alternatives.tokens.to(labels.device)[labels[:, :, 0]].where(mask[:, :, 0], labels[:, :, 0])
    labels = torch.cat([other.unsqueeze(-1), labels[:, :, 1:]], -1)
    if alternatives.written:
        given = torch.cat([given[:, :, :1], other.unsqueeze(-1), given[:, :, 2:]], -1)[:, :, : given.shape[2]]
    return given, labels
