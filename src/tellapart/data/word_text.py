"""Captions as words of a vocabulary: the text of every captioner that is trained from nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from tellapart.data.text import TextRules, words
from tellapart.data.vocabulary import Vocabulary
from tellapart.errors import TellapartError


@dataclass(frozen=True)
class WordText:
    """Rules that cut captions into words, and the words a captioner knows."""

    vocabulary: Vocabulary
    rules: TextRules

    @classmethod
    def build(cls, captions: Iterable[str], rules: TextRules) -> WordText:
        """The words of these captions that are frequent enough."""
        return cls(
            Vocabulary.build((words(text, rules) for text in captions), min_count=rules.min_count), rules
        )

    def __len__(self) -> int:
        return len(self.vocabulary)

    @property
    def pad(self) -> int:
        """What fills short captions up."""
        return self.vocabulary.pad

    @property
    def start(self) -> int:
        """What stands before the first word."""
        return self.vocabulary.start

    @property
    def end(self) -> int:
        """What stands behind the last word."""
        return self.vocabulary.end

    @property
    def silent(self) -> tuple[int, ...]:
        """Padding, start and the unknown word are never written."""
        return (self.vocabulary.pad, self.vocabulary.start, self.vocabulary.unknown)

    def encode(self, caption: str) -> list[int]:
        """The tokens of a caption between start and end; a word that is not known is the unknown one."""
        return self.vocabulary.encode(words(caption, self.rules))

    def decode(self, tokens: Iterable[int]) -> str:
        """The words up to the end, joined by spaces."""
        return " ".join(self.vocabulary.decode(tokens))

    def beginning(self, words_to_begin_with: str) -> tuple[int, ...]:
        """The tokens of words that a caption is to begin with, all of which must be known."""
        found = words(words_to_begin_with, self.rules)
        for word in found:
            if word not in self.vocabulary:
                raise TellapartError(
                    f"prefix: the captioner does not know the word {word!r}",
                    hint=f"it knows {len(self.vocabulary.words)} words, listed in its vocabulary.json",
                )
        return tuple(self.vocabulary.id(word) for word in found)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of words and special signs: weights of one never mix with another's."""
        return self.vocabulary.fingerprint
