"""Words that people ask for, as tokens of a captioner's text: whole words, or pieces of a tokenizer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from tellapart.arrays import Bool, Int
from tellapart.errors import TellapartError
from tellapart.types import Text

Phrase = tuple[int, ...]  # tokens that stand one after another


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """What tokens do behind a word; a comma does neither."""

    begin: Bool[Tensor, " v"]  # begin the next word
    go_on: Bool[Tensor, " v"]  # go on with that word: "##s" makes "dogs" of "dog"


def pieces_of(text: Text) -> Pieces:
    """Told by how the text writes each token behind one that stands for letters."""
    begin, go_on = torch.zeros(len(text), dtype=torch.bool), torch.zeros(len(text), dtype=torch.bool)
    alone = {token: text.decode((token,)) for token in writable(text)}
    lettered = [token for token, spelling in alone.items() if _has_letters(spelling)]
    for token in lettered:
        joined = text.decode((lettered[0], token)).split()
        (begin if len(joined) > len(alone[lettered[0]].split()) else go_on)[token] = True
    return Pieces(begin, go_on)


def writable(text: Text) -> list[int]:
    """The tokens that may stand in a caption, without the end sign."""
    unwritten = {*text.silent, text.end}
    return [token for token in range(len(text)) if token not in unwritten]


@dataclass(frozen=True, slots=True, eq=False)
class Phrases:
    """Phrases to look for where a caption ends."""

    alone: Bool[Tensor, " v"]  # tokens that are a phrase each
    longer: tuple[Phrase, ...]

    @classmethod
    def of(cls, text: Text, phrases: Iterable[str]) -> Phrases:
        """These words, however the text spells them."""
        found = sorted(spellings(text, phrases))
        alone = torch.zeros(len(text), dtype=torch.bool)
        alone[[phrase[0] for phrase in found if len(phrase) == 1]] = True
        return cls(alone, tuple(phrase for phrase in found if len(phrase) > 1))

    def end(self, tokens: Int[Tensor, "r t"]) -> Bool[Tensor, " r"]:
        """Which captions end with one of them."""
        if not tokens.size(1):
            return torch.zeros(len(tokens), dtype=torch.bool, device=tokens.device)
        found = self.alone.to(tokens.device)[tokens[:, -1]]
        for phrase in self.longer:
            found = found | ends_with(tokens, phrase)
        return found

    def completed(self, tokens: Int[Tensor, "r t"]) -> Bool[Tensor, "r v"]:
        """Which tokens would make captions end with one of them."""
        found = self.alone.to(tokens.device).expand(len(tokens), -1)
        if self.longer:
            found = found.clone()
        for phrase in self.longer:
            found[:, phrase[-1]] |= ends_with(tokens, phrase[:-1])
        return found


def ends_with(tokens: Int[Tensor, "r t"], phrase: Phrase) -> Bool[Tensor, " r"]:
    """Which captions end with these tokens; all of them with none."""
    places = tokens.size(1)
    if places < len(phrase):
        return torch.zeros(len(tokens), dtype=torch.bool, device=tokens.device)
    return (tokens[:, places - len(phrase) :] == tokens.new_tensor(phrase)).all(1)


def spellings(text: Text, phrases: Iterable[str]) -> frozenset[Phrase]:
    """The tokens of these words, in small and capital letters; nothing for what the text cannot write."""
    written = {form for phrase in phrases for form in _forms(phrase)}
    return frozenset(tokens for form in written if (tokens := _tokens(text, form)))


def _forms(phrase: str) -> tuple[str, ...]:
    if not phrase.strip():
        raise TellapartError("an empty phrase was given to a rule", hint="name one word or more")
    return (phrase, phrase.lower(), phrase.capitalize(), phrase.title(), phrase.upper())


def _tokens(text: Text, phrase: str) -> Phrase:
    try:
        return text.beginning(phrase)
    except TellapartError:  # a word that the captioner cannot write is one it never writes
        return ()


def _has_letters(spelling: str) -> bool:
    # A byte that is part of a letter is shown as U+FFFD.
    return any(character.isalnum() or character == "\ufffd" for character in spelling)
