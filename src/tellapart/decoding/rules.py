"""Rules of what may stand at the next place of a caption: small functions on scores.

A rule is given the scores of the next token and the tokens written so far, a row each half-written caption,
and gives the scores back with -inf where a token may not stand; it changes no other score, nor what it was
given. Rules that do not contradict one another can stand in any order.

Where they do, the rules that come first win: one that would leave nothing of what those before it left is set
aside, at that place. A search that compares several captions of an image rather gives up those that cannot
go on; it sets a rule aside only where none of them could. Before all rules that are asked for come those of
the `frame`: no token that the text calls silent, the end at `max_words`, and at least one word. They always
hold.

A word is a token of the captioner's text here, as it is in `max_words`: of a tokenizer, a piece.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

import torch
from torch import Tensor

from tellapart.arrays import Float, Int
from tellapart.data.small_words import FUNCTION_WORDS, UNFINISHED
from tellapart.decoding.pieces import Phrases, pieces_of, writable
from tellapart.errors import TellapartError
from tellapart.types import Text

Rule = Callable[[Float[Tensor, "r v"], Int[Tensor, "r t"]], Float[Tensor, "r v"]]


def frame(text: Text, *, max_words: int) -> tuple[Rule, ...]:
    """The rules that hold for every caption."""
    if max_words < 1:
        raise TellapartError(f"max_words is {max_words}", hint="allow at least 1 word")
    return (never(text.silent), maximum_words(text, max_words), minimum_words(text, 1))


def never(tokens: Sequence[int]) -> Rule:
    """These tokens stand nowhere."""
    struck = torch.tensor(tokens, dtype=torch.long)

    def rule(scores: Float[Tensor, "r v"], tokens: Int[Tensor, "r t"]) -> Float[Tensor, "r v"]:
        return scores.index_fill(1, struck.to(scores.device), -torch.inf)

    return rule


def minimum_words(text: Text, count: int) -> Rule:
    """The caption does not end before it has so many words."""
    unfinished = never([text.end])

    def rule(scores: Float[Tensor, "r v"], tokens: Int[Tensor, "r t"]) -> Float[Tensor, "r v"]:
        return unfinished(scores, tokens) if tokens.size(1) < count else scores

    return rule


def maximum_words(text: Text, count: int) -> Rule:
    """After so many words comes the end."""

    def rule(scores: Float[Tensor, "r v"], tokens: Int[Tensor, "r t"]) -> Float[Tensor, "r v"]:
        return scores if tokens.size(1) < count else _only(scores, text.end)

    return rule


def begin_with(text: Text, prefix: Sequence[int]) -> Rule:
    """The caption begins with these tokens, which `text.beginning` gives of words."""
    if unwritten := set(prefix) - set(writable(text)):
        raise TellapartError(
            f"prefix: no caption holds the token {min(unwritten)}", hint="take the tokens of words"
        )

    def rule(scores: Float[Tensor, "r v"], tokens: Int[Tensor, "r t"]) -> Float[Tensor, "r v"]:
        place = tokens.size(1)
        return _only(scores, prefix[place]) if place < len(prefix) else scores

    return rule


def no_repeated_token(text: Text, *, free: Collection[str] = FUNCTION_WORDS) -> Rule:
    """No token stands twice, but for the words that are left free, pieces inside of words, and signs.

    With none left free it is meant strictly: no token at all stands twice.
    """
    again = torch.zeros(len(text), dtype=torch.bool)
    if free:
        again = Phrases.of(text, free).alone | ~pieces_of(text).begin

    def rule(scores: Float[Tensor, "r v"], tokens: Int[Tensor, "r t"]) -> Float[Tensor, "r v"]:
        stands = torch.zeros_like(scores, dtype=torch.bool).scatter(1, tokens, value=True)
        return scores.masked_fill(stands & ~again.to(scores.device), -torch.inf)

    return rule


def no_repeated_ngram(size: int) -> Rule:
    """So many tokens in a row do not stand a second time, overlapping or not."""
    if size < 1:
        raise TellapartError(f"the n of n-grams is {size}", hint="take 1 for tokens, 2 for pairs and so on")

    def rule(scores: Float[Tensor, "r v"], tokens: Int[Tensor, "r t"]) -> Float[Tensor, "r v"]:
        places = tokens.size(1)
        if places < size:
            return scores
        runs = tokens.unfold(1, size, 1)  # (r, n, size)
        begun = (runs[:, :, :-1] == tokens[:, None, places - size + 1 :]).all(-1)
        # What goes on with another run is marked in a column that is then cut off.
        marked = runs[:, :, -1].masked_fill(~begun, scores.size(1))
        room = torch.zeros(len(scores), scores.size(1) + 1, dtype=torch.bool, device=scores.device)
        return scores.masked_fill(room.scatter(1, marked, value=True)[:, :-1], -torch.inf)

    return rule


def banned(text: Text, phrases: Iterable[str]) -> Rule:
    """None of these words or phrases is written, in small or capital letters.

    A phrase is its tokens one after another: its words may stand in another order, or with others between.
    What the captioner cannot write needs no ban. Of a tokenizer, what begins with the pieces of a banned word
    is banned with it, and a word that is spelt by other pieces than the tokenizer's own is not.
    """
    struck = Phrases.of(text, phrases)

    def rule(scores: Float[Tensor, "r v"], tokens: Int[Tensor, "r t"]) -> Float[Tensor, "r v"]:
        return scores.masked_fill(struck.completed(tokens), -torch.inf)

    return rule


def no_dangling_ending(text: Text, *, max_words: int, endings: Iterable[str] = UNFINISHED) -> Rule:
    """The end does not follow these words, nor do they stand where only the end can follow."""
    dangling = Phrases.of(text, endings)
    last_place = max_words - 1

    def rule(scores: Float[Tensor, "r v"], tokens: Int[Tensor, "r t"]) -> Float[Tensor, "r v"]:
        end = torch.arange(scores.size(1), device=scores.device) == text.end
        struck = dangling.end(tokens).unsqueeze(1) & end
        if tokens.size(1) == last_place:
            struck = struck | dangling.completed(tokens)
        return scores.masked_fill(struck, -torch.inf)

    return rule


def _only(scores: Float[Tensor, "r v"], token: int) -> Float[Tensor, "r v"]:
    """Nothing but this token."""
    return torch.full_like(scores, -torch.inf).index_copy(
        1, torch.tensor([token], device=scores.device), scores[:, token : token + 1]
    )
