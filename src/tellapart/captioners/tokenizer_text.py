"""Captions as pieces of a tokenizer of transformers: the text of captioners that grew out of a checkpoint.

Which ids stand for start, end and padding is never written here: it is read from the checkpoint's own files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tellapart.errors import TellapartError
from tellapart.extras import import_extra


@dataclass(frozen=True, slots=True)
class Signs:
    """The ids around a caption. End may serve as start or padding too, as it does for GPT-2."""

    start: int
    end: int
    pad: int


def find_signs(tokenizer: Any, config: Any, *, model: str) -> Signs:
    """The ids of a causal language model: the tokenizer's word counts, then its config's.

    One without a start begins with its end, the sign between texts; one without padding is padded by its end.
    """
    end = _first(tokenizer.eos_token_id, getattr(config, "eos_token_id", None))
    if end is None:
        raise TellapartError(
            f"the tokenizer of {model} has no sign for the end of a text",
            hint="name a model whose tokenizer_config.json has an eos_token",
        )
    start = _first(tokenizer.bos_token_id, getattr(config, "bos_token_id", None))
    pad = _first(tokenizer.pad_token_id, getattr(config, "pad_token_id", None))
    return Signs(end if start is None else start, end, end if pad is None else pad)


def _first(*candidates: int | list[int] | None) -> int | None:
    """The first id there is; of a list, which some configs have, its first."""
    for candidate in candidates:
        if isinstance(candidate, list):
            candidate = candidate[0] if candidate else None
        if candidate is not None:
            return candidate
    return None


@dataclass(frozen=True, eq=False)
class TokenizerText:
    """A tokenizer, what stands around its captions, and the ids that are never written.

    A start that is an ordinary piece (the last of a prompt) may also be written, and is then shown: `decode`
    drops a start in front only where it is a special sign.
    """

    tokenizer: Any  # of the library tokenizers, which comes with transformers
    start: int
    end: int
    pad: int
    silent: tuple[int, ...]
    size: int  # of the logits, which may have more places than the tokenizer has pieces
    lead: str = ""  # what a caption is written after, so that its first word has the pieces it has elsewhere

    @classmethod
    def of(
        cls, tokenizer: Any, signs: Signs, *, size: int, model: str, leading_space: bool | None = None
    ) -> TokenizerText:
        """The text of a tokenizer of transformers.

        Args:
            tokenizer: as `AutoTokenizer` loads it; it is copied, and none of its own settings are touched.
            signs: ids around a caption.
            size: how many logits the network gives.
            model: what messages call the checkpoint.
            leading_space: whether captions are written after a space; None: where the tokenizer tells a word
                after a space from one without, as GPT-2's does.
        """
        kind = import_extra("tokenizers", needed_by="this captioner", extra="transformers").Tokenizer
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if not isinstance(backend, kind):
            raise TellapartError(
                f"the tokenizer of {model} has no tokenizer.json", hint="name a model with a fast tokenizer"
            )
        own = kind.from_str(backend.to_str())
        own.no_padding()
        own.no_truncation()
        own.encode_special_tokens = True  # the name of a special sign is text like any other
        _check_ids(own, signs, size=size, model=model)
        special = set(tokenizer.all_special_ids) | {
            number for number, token in own.get_added_tokens_decoder().items() if token.special
        }
        if signs.end not in special and own.id_to_token(signs.end) is not None:
            raise TellapartError(
                f"{model}: a caption ends with {own.id_to_token(signs.end)!r}, which to its tokenizer is an "
                "ordinary piece of text and no special sign",
                hint="copy tokenizer.json and tokenizer_config.json again: they are not the checkpoint's own",
            )
        unwritten = {number for number in special if number < size} | {signs.pad}
        unwritten |= {number for number in range(size) if own.id_to_token(number) is None}
        lead = " " if (_wants_space(own) if leading_space is None else leading_space) else ""
        silent = tuple(sorted(unwritten - {signs.end}))
        return cls(own, signs.start, signs.end, signs.pad, silent, size, lead)

    def __len__(self) -> int:
        return self.size

    def encode(self, caption: str) -> list[int]:
        """The pieces of a caption between start and end."""
        return [self.start, *self._pieces(caption), self.end]

    def decode(self, tokens: Iterable[int]) -> str:
        """The caption up to the end, without special signs, its words one space apart."""
        found = [int(token) for token in tokens]
        if found[:1] == [self.start] and self.start in (self.end, *self._silent):
            del found[0]
        if self.end in found:
            del found[found.index(self.end) :]
        shown = [token for token in found if token not in self._silent]
        written = self.tokenizer.decode(shown, skip_special_tokens=False)
        # A piece that continues a word may also stand in front: "##a" then reads "a".
        return " ".join(written.removeprefix(getattr(self.tokenizer.decoder, "prefix", "")).split())

    def beginning(self, words_to_begin_with: str) -> tuple[int, ...]:
        """The pieces of words that a caption is to begin with; an error where the tokenizer has none."""
        if not words_to_begin_with.strip():
            return ()
        pieces = self._pieces(words_to_begin_with)
        if not self._silent.isdisjoint(pieces):
            raise TellapartError(
                f"prefix: the captioner's tokenizer cannot write {words_to_begin_with!r}",
                hint="leave out unusual characters",
            )
        return tuple(pieces)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the tokenizer's content and the ids: weights of one never mix with another's."""
        content = [
            json.loads(self.tokenizer.to_str()),
            [self.start, self.end, self.pad, self.size],
            self.silent,
            self.lead,
        ]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode("ascii")).hexdigest()

    @cached_property
    def _silent(self) -> frozenset[int]:
        return frozenset(self.silent)

    def _pieces(self, words: str) -> list[int]:
        text = " ".join(words.split())
        return _pieces(self.tokenizer, self.lead + text) if text else []


def _pieces(tokenizer: Any, text: str) -> list[int]:
    found: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
    return found


def _wants_space(tokenizer: Any) -> bool:
    """Whether a first word has the pieces of a word in mid-sentence only where a space stands before it."""
    once, twice = _pieces(tokenizer, " a"), _pieces(tokenizer, " a a")
    return _pieces(tokenizer, "a") != once and twice == once + once


def _check_ids(tokenizer: Any, signs: Signs, *, size: int, model: str) -> None:
    """Every id must have a place among the logits."""
    for name, number in (("start", signs.start), ("end", signs.end), ("padding", signs.pad)):
        if not 0 <= number < size:
            raise TellapartError(
                f"{model}: the id of its {name} sign is {number}, but its network has {size} words",
                hint="its tokenizer and its weights do not belong together: copy the whole folder again",
            )
    largest = max(tokenizer.get_vocab().values(), default=0)
    if largest >= size:
        raise TellapartError(
            f"{model}: its tokenizer has ids up to {largest}, but its network has {size} words",
            hint="its tokenizer and its weights do not belong together: copy the whole folder again",
        )
