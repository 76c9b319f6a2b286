"""Words as numbers: the vocabulary of a captioner, with its special ids as values."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

from tellapart.errors import TellapartError

SPECIAL = ("pad", "start", "end", "unknown")
UNKNOWN_WORD = "<unk>"


@dataclass(frozen=True)
class Vocabulary:
    """The words a captioner can say and the ids of its four special signs.

    The special signs have ids but no spelling: a caption that happens to hold "<end>" cannot end itself.
    The words fill, in order, the ids which the special signs leave free.
    """

    words: tuple[str, ...]
    pad: int = 0
    start: int = 1
    end: int = 2
    unknown: int = 3

    def __post_init__(self) -> None:
        if flaw := _flaw(self.words, self._special):
            raise ValueError(flaw)

    @classmethod
    def build(cls, captions: Iterable[Sequence[str]], *, min_count: int) -> Vocabulary:
        """The words that occur at least `min_count` times, the most frequent first, then by the alphabet."""
        counts = Counter(chain.from_iterable(captions))
        kept = (word for word, count in counts.items() if count >= min_count)
        return cls(words=tuple(sorted(kept, key=lambda word: (-counts[word], word))))

    def __len__(self) -> int:
        return len(self.words) + len(SPECIAL)

    def __contains__(self, word: object) -> bool:
        return word in self._ids

    def id(self, word: str) -> int:
        """The id of a word; that of the unknown word where the vocabulary lacks it."""
        return self._ids.get(word, self.unknown)

    def encode(self, words: Iterable[str]) -> list[int]:
        """Ids of a caption between start and end."""
        ids, unknown = self._ids, self.unknown
        return [self.start, *(ids.get(word, unknown) for word in words), self.end]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Words up to the first end, without start and padding; an unknown word reads `<unk>`."""
        found: list[str] = []
        for number in ids:
            if number == self.end:
                break
            if number not in (self.start, self.pad):
                found.append(self._spellings[number])
        return found

    @cached_property
    def fingerprint(self) -> str:
        """A hash of all content: models and features of another vocabulary have another one."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode("ascii")).hexdigest()

    def to_json(self) -> dict[str, object]:
        """The content of vocabulary.json."""
        return {"words": list(self.words), "special": self._special}

    @classmethod
    def from_json(cls, content: object, *, name: str) -> Vocabulary:
        """The vocabulary in the content of a vocabulary.json; `name` is what messages call the file."""
        words, special = _members(content, name)
        if flaw := _flaw(words, special):
            raise _bad(name, flaw)
        return cls(words=tuple(words), **special)

    @classmethod
    def read(cls, path: Path) -> Vocabulary:
        """The vocabulary in a file."""
        try:
            content = json.loads(path.read_bytes())
        except OSError as error:
            raise _bad(str(path), f"cannot be read: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise _bad(str(path), f"is not JSON: {error}") from error
        return cls.from_json(content, name=str(path))

    @cached_property
    def _special(self) -> dict[str, int]:
        return {"pad": self.pad, "start": self.start, "end": self.end, "unknown": self.unknown}

    @cached_property
    def _ids(self) -> Mapping[str, int]:
        taken = set(self._special.values())
        free = (number for number in range(len(self)) if number not in taken)
        return dict(zip(self.words, free, strict=True))

    @cached_property
    def _spellings(self) -> Mapping[int, str]:
        return {self.unknown: UNKNOWN_WORD} | {number: word for word, number in self._ids.items()}


def _members(content: object, name: str) -> tuple[list[str], dict[str, int]]:
    """Words and special ids, of the right types."""
    if not isinstance(content, dict) or not {"words", "special"} <= set(content):
        raise _bad(name, 'should be an object with the keys "words" and "special"')
    words, special = content["words"], content["special"]
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise _bad(name, '"words" should be a list of strings')
    if not isinstance(special, dict) or set(special) != set(SPECIAL):
        raise _bad(name, f'"special" should be an object with the keys {", ".join(SPECIAL)}')
    if not all(type(number) is int for number in special.values()):
        raise _bad(name, '"special" should hold whole numbers')
    return words, special


def _flaw(words: Sequence[str], special: Mapping[str, int]) -> str | None:
    """What keeps these from being a vocabulary."""
    size = len(words) + len(special)
    for sign, number in special.items():
        if not 0 <= number < size:
            return f"the id of {sign!r} is {number}, but the ids go from 0 to {size - 1}"
    if len(set(special.values())) < len(special):
        return "two special signs have the same id"
    repeated = [word for word, count in Counter(words).items() if count > 1]
    if repeated:
        return f"the word {repeated[0]!r} stands twice"
    spaced = [word for word in words if word.split() != [word]]
    return f"{spaced[0]!r} is not a word: it is empty or holds a space" if spaced else None


def _bad(name: str, flaw: str) -> TellapartError:
    return TellapartError(
        f"{name}: {flaw}", hint="fetch the captioner's folder again, or train the captioner anew"
    )
