"""Greedy and beam search over any captioner: they know its protocol and nothing else.

Tokens that the text calls silent (start, padding, unknown word) are never written. Log-probabilities are the
captioner's own, of the whole caption with its end sign and the given first words; forbidding a word does not
change the others'. A caption of `max_words` words is closed there by the end sign, so every caption has
one. Fewer captions may exist than a beam is wide: the rest have log-probability -inf.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from tellapart.arrays import Bool, Float, Int
from tellapart.types import AnyCaptioner, Decoded, Text, Vision


@torch.no_grad()
def greedy(captioner: AnyCaptioner, vision: Vision, *, max_words: int, prefix: Sequence[int] = ()) -> Decoded:
    """The likeliest word at each step."""
    text = captioner.text
    rows = len(vision)
    state = captioner.begin(vision)
    token = start_tokens(vision, text)
    total = vision.pooled.new_zeros(rows)
    finished = torch.zeros(rows, dtype=torch.bool, device=token.device)
    chosen: list[Tensor] = []
    for forbidden in forbidden_places(text, token.device, max_words=max_words, prefix=prefix):
        logits, state = captioner.step(token, state)
        best, token = logits.log_softmax(-1).masked_fill(forbidden, -torch.inf).max(-1)
        token = token.masked_fill(finished, text.pad)
        total = total + best.masked_fill(finished, 0)
        chosen.append(token)
        finished = finished | (token == text.end)
        if finished.all():
            break
    tokens = torch.stack(chosen, dim=1).unsqueeze(1)
    return Decoded(tokens, written(tokens, text), total.unsqueeze(1))


@torch.no_grad()
def beam(
    captioner: AnyCaptioner,
    vision: Vision,
    *,
    width: int,
    max_words: int,
    prefix: Sequence[int] = (),
    length_penalty: float = 0.0,
) -> Decoded:
    """The `width` best captions that a beam of that width finds, best first.

    Best are the likeliest. With a length penalty α, log-probabilities are divided by the α-th power of the
    number of words, the end sign included, before they are compared (Wu et al. 2016, without their constant):
    every further word costs probability, so that a beam favours captions that say little.
    """
    text = captioner.text
    rows = len(vision)
    first_row = torch.arange(rows, device=vision.pooled.device).unsqueeze(1) * width  # (b, 1)
    state = captioner.begin(vision).select(
        torch.arange(rows, device=first_row.device).repeat_interleave(width)
    )
    token = start_tokens(vision, text).repeat_interleave(width)
    # All beams of an image start alike: only the first may go on, or the beam would hold copies.
    scores = vision.pooled.new_full((rows, width), -torch.inf)
    scores[:, 0] = 0
    tokens = token.new_empty((rows, width, 0))
    finished = torch.zeros((rows, width), dtype=torch.bool, device=token.device)
    lengths = scores.new_zeros((rows, width))
    for forbidden in forbidden_places(text, token.device, max_words=max_words, prefix=prefix):
        logits, state = captioner.step(token, state)
        log_probabilities = logits.log_softmax(-1).masked_fill(forbidden, -torch.inf)
        extended = _extend(scores, log_probabilities.view(rows, width, -1), finished, pad=text.pad)
        lengths = lengths + ~finished
        compared = extended / lengths.pow(length_penalty).unsqueeze(-1) if length_penalty else extended
        flat = compared.flatten(1).topk(width).indices
        parent, last = flat // extended.size(-1), flat % extended.size(-1)  # (b, width)
        scores, lengths = extended.flatten(1).gather(1, flat), lengths.gather(1, parent)
        state = state.select((first_row + parent).flatten())
        tokens = torch.cat([tokens.gather(1, parent.unsqueeze(-1).expand_as(tokens)), last.unsqueeze(-1)], -1)
        finished = finished.gather(1, parent) | (last == text.end)
        token = last.flatten()
        if finished.all():
            break
    return Decoded(tokens, written(tokens, text), scores)


def start_tokens(vision: Vision, text: Text) -> Int[Tensor, " b"]:
    """What each image's caption begins with."""
    return torch.full((len(vision),), text.start, dtype=torch.long, device=vision.pooled.device)


def _extend(
    scores: Float[Tensor, "b k"],
    log_probabilities: Float[Tensor, "b k v"],
    finished: Bool[Tensor, "b k"],
    *,
    pad: int,
) -> Float[Tensor, "b k v"]:
    """Score of each beam with each next word; a finished one goes on as itself, by padding alone."""
    stay = torch.full_like(log_probabilities, -torch.inf)
    stay[:, :, pad] = 0
    return scores.unsqueeze(-1) + torch.where(finished.unsqueeze(-1), stay, log_probabilities)


def forbidden_places(
    text: Text, device: torch.device, *, max_words: int, prefix: Sequence[int]
) -> Iterator[Bool[Tensor, " v"]]:
    """What may not stand at each place: first all but the given word, then signs, last all but the end."""

    def marked(*tokens: int) -> Bool[Tensor, " v"]:
        mask = torch.zeros(len(text), dtype=torch.bool)
        mask[list(tokens)] = True
        return mask.to(device)

    signs = marked(*text.silent)
    for token in prefix:
        yield ~marked(token)
    if not prefix:
        yield signs | marked(text.end)  # an empty caption describes nothing
    for _ in range(max_words - max(1, len(prefix))):
        yield signs
    yield ~marked(text.end)


def written(tokens: Int[Tensor, "b k t"], text: Text) -> Bool[Tensor, "b k t"]:
    """Words and the end sign; padding behind the end is not written."""
    ends = (tokens == text.end).long()
    return ends.cumsum(-1) - ends == 0
