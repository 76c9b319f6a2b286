"""Sentences as numbers of words, the same for the network that learns and the one that only answers."""

from __future__ import annotations

import numpy as np

from tellapart.arrays import Int
from tellapart.data.text import words
from tellapart.data.word_text import WordText


def read_words(sentence: str, text: WordText) -> Int[np.ndarray, " t"]:
    """The numbers of a sentence's words; where it has none, that of the unknown word."""
    vocabulary = text.vocabulary
    numbers = [vocabulary.id(word) for word in words(sentence, text.rules)]
    return np.array(numbers or [vocabulary.unknown], np.int64)


def words_of(sentence: str, text: WordText) -> list[str]:
    """The sentence's words, each once, in its order."""
    return list(dict.fromkeys(words(sentence, text.rules)))
