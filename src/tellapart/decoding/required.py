"""Words that a caption must hold: a rule that sees to it in time, and a beam that lets them come early.

The rule alone would have a beam put them off: each costs probability, so that captions without them win
until nothing else may be written. Beams are therefore filled from banks, as in dynamic beam allocation (Post
& Vilar 2018): the half-written captions in which one token of the required ones stands compete with each
other, and so do those with two, and so on. In turns, each bank gives the best that it has left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from tellapart.arrays import Bool, Float, Int
from tellapart.decoding.pieces import Phrase, ends_with, pieces_of
from tellapart.errors import TellapartError
from tellapart.types import Text


@dataclass(frozen=True, slots=True, eq=False)
class Required:
    """The rule that phrases stand in the caption, in whatever order, before it ends.

    A token may stand only where the places behind it still suffice for what is missing; they are counted as
    if the phrases stood one after another. A piece that would make another word of a required one does not
    follow it.
    """

    phrases: tuple[Phrase, ...]
    max_words: int
    end: int
    go_on: Bool[Tensor, " v"]  # tokens that go on with the word before them

    @classmethod
    def of(
        cls, text: Text, phrases: Iterable[str], *, max_words: int, prefix: Sequence[int] = ()
    ) -> Required:
        """Words that captions of at most `max_words` words, which begin with the prefix, must hold.

        What cannot be written, or has no room behind the prefix, is an error.
        """
        every = cls(
            tuple(sorted({_tokens(text, phrase) for phrase in phrases})),
            max_words,
            text.end,
            pieces_of(text).go_on,
        )
        rule = replace(every, phrases=every.outermost())
        missing = rule.missing_after(prefix)
        if len(prefix) + missing > max_words:
            begun = f" behind the {len(prefix)} of the prefix" if prefix else ""
            raise TellapartError(
                f"the required words take {missing} places{begun}, and a caption has {max_words}",
                hint="require fewer words, or allow more in a caption (--max-words)",
            )
        return rule

    @property
    def banks(self) -> int:
        """How many numbers of required tokens a caption may hold, 0 being one."""
        return 1 + sum(map(len, self.phrases))

    def __call__(self, scores: Float[Tensor, "r v"], tokens: Int[Tensor, "r t"]) -> Float[Tensor, "r v"]:
        """Strike out what would come too early (the end) or make them come too late (other words)."""
        stand = self.standing_with_next(tokens)
        places_behind = self.max_words - tokens.size(1) - 1
        struck = (self.banks - 1 - stand) > places_behind
        struck[:, self.end] = self._missing(tokens) > 0
        struck |= self._must_stay_whole(tokens).unsqueeze(1) & self.go_on.to(tokens.device)
        return scores.masked_fill(struck, -torch.inf)

    def standing_with_next(self, tokens: Int[Tensor, "r t"]) -> Int[Tensor, "r v"]:
        """How many required tokens stand in each caption once each token follows, a begun phrase included."""
        begun = torch.zeros(len(tokens), len(self.go_on), dtype=torch.long, device=tokens.device)
        whole = self._must_stay_whole(tokens)
        for phrase in self.phrases:
            missing = ~self._stands(tokens, phrase)
            for place, token in enumerate(phrase):
                there = missing & ends_with(tokens, phrase[:place])
                if self.go_on[token]:
                    there &= ~whole
                begun[:, token] = begun[:, token].maximum(there * (place + 1))
        return (self.banks - 1 - self._missing(tokens)).unsqueeze(1) + begun

    def outermost(self) -> tuple[Phrase, ...]:
        """The phrases, without those that stand wherever another does."""
        return tuple(
            phrase
            for phrase in self.phrases
            if not any(
                other != phrase and self._stands(torch.tensor([other]), phrase) for other in self.phrases
            )
        )

    def missing_after(self, prefix: Sequence[int]) -> int:
        """How many more tokens a caption needs that begins with these."""
        tokens = torch.tensor([prefix], dtype=torch.long)
        begun = [
            place
            for phrase in self.phrases
            if not self._stands(tokens, phrase)
            for place in range(len(phrase))
            if ends_with(tokens, phrase[:place])
        ]
        return int(self._missing(tokens)) - max(begun, default=0)

    def _missing(self, tokens: Int[Tensor, "r t"]) -> Int[Tensor, " r"]:
        """How many tokens the phrases have that do not stand yet."""
        missing = torch.zeros(len(tokens), dtype=torch.long, device=tokens.device)
        for phrase in self.phrases:
            missing = missing + ~self._stands(tokens, phrase) * len(phrase)
        return missing

    def _must_stay_whole(self, tokens: Int[Tensor, "r t"]) -> Bool[Tensor, " r"]:
        """Whether a caption ends with a phrase that stands nowhere else in it."""
        found = torch.zeros(len(tokens), dtype=torch.bool, device=tokens.device)
        for phrase in self.phrases:
            before = tokens[:, : max(0, tokens.size(1) - len(phrase))]
            found = found | (ends_with(tokens, phrase) & ~self._stands(before, phrase))
        return found

    def _stands(self, tokens: Int[Tensor, "r t"], phrase: Phrase) -> Bool[Tensor, " r"]:
        """Whether a phrase stands anywhere, its last word being whole."""
        length = len(phrase)
        if tokens.size(1) < length:
            return torch.zeros(len(tokens), dtype=torch.bool, device=tokens.device)
        found = (tokens.unfold(1, length, 1) == tokens.new_tensor(phrase)).all(-1)  # (r, t - length + 1)
        found[:, :-1] &= ~self.go_on.to(tokens.device)[tokens[:, length:]]
        return found.any(1)


def in_turns(
    compared: Float[Tensor, "g c"], bank: Int[Tensor, "g c"], *, banks: int, width: int
) -> Int[Tensor, "g k"]:
    """The `width` candidates of each beam: the best of every bank, then the second of every bank and so on.

    Where the last turn is not complete, the best of that turn. With one bank they are the best ones.
    """
    values, indices = (
        torch.cat(found, dim=1)
        for found in zip(
            *(compared.masked_fill(bank != number, -torch.inf).topk(width) for number in range(banks)),
            strict=True,
        )
    )
    turn = torch.arange(width, device=compared.device).repeat(banks).expand_as(values)
    # A bank that has fewer gives candidates of other banks, which must not come twice.
    empty = values == -torch.inf
    indices = torch.where(empty, compared.argmin(1, keepdim=True), indices)
    by_value = values.argsort(dim=1, descending=True, stable=True)
    by_turn = turn.masked_fill(empty, width).gather(1, by_value).argsort(dim=1, stable=True)
    return indices.gather(1, by_value.gather(1, by_turn[:, :width]))


def required_of(rules: Iterable[object], *, max_words: int) -> Required | None:
    """The rule of required words, which must be the only one, and made for such captions."""
    found = [rule for rule in rules if isinstance(rule, Required)]
    if len(found) > 1:
        raise TellapartError(
            f"{len(found)} rules of required words, each of which counts on all places",
            hint="give all required words to one rule",
        )
    if found and found[0].max_words > max_words:
        raise TellapartError(
            f"the rule of required words counts on {found[0].max_words} words, a caption has {max_words}",
            hint="make the rule with the same max_words",
        )
    return found[0] if found else None


def _tokens(text: Text, phrase: str) -> Phrase:
    try:
        tokens = text.beginning(phrase)
    except TellapartError as error:
        raise TellapartError(
            f"required: the captioner cannot write {phrase!r}", hint=f"require other words; {error.hint}"
        ) from error
    if not tokens:
        raise TellapartError(f"required: {phrase!r} has no words", hint="name one word or more")
    return tokens
