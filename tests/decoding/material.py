"""Captioners small enough that all they can say fits on a page, and rules told in two ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import torch
from hypothesis import strategies as st

from tellapart.captioners.mrnn import MRNN
from tellapart.captioners.settings.mrnn import MRNNConfig
from tellapart.data.text import PRESETS
from tellapart.data.vocabulary import Vocabulary
from tellapart.data.word_text import WordText
from tellapart.decoding.required import Required
from tellapart.decoding.rules import (
    Rule,
    banned,
    begin_with,
    maximum_words,
    minimum_words,
    no_dangling_ending,
    no_repeated_ngram,
    no_repeated_token,
)
from tellapart.types import Decoded, Vision

VOCABULARY = Vocabulary(("a", "b", "c", "d"), pad=7, start=3, end=1, unknown=0)
TEXT = WordText(VOCABULARY, PRESETS["mrnn"])
LONGEST = 4

seeds = st.integers(0, 10_000)


def captioner(seed: int) -> MRNN:
    torch.manual_seed(seed)
    config = MRNNConfig(embedding_one=4, embedding_two=5, multimodal=6)
    model = MRNN(config, text=TEXT, image_width=3)
    with torch.no_grad():
        model.get_parameter("output.weight").mul_(4)  # far from uniform, so that the order is clear
    return model.double().eval()


def see(count: int, seed: int = 0) -> Vision:
    pooled = torch.rand(count, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return Vision(pooled.new_zeros(count, 0, 1), pooled, pooled.new_zeros(count, 0))


def all_captions(longest: int = LONGEST) -> list[str]:
    return ["".join(words) for length in range(1, longest + 1) for words in product("abcd", repeat=length)]


def tokens_of(words: str) -> list[int]:
    return [VOCABULARY.id(word) for word in words]


def log_probabilities(model: MRNN, vision: Vision, captions: Sequence[str]) -> dict[str, float]:
    """Of captions of one image, by teacher forcing."""
    longest = max(map(len, captions)) + 2
    rows = [[VOCABULARY.start, *tokens_of(words), VOCABULARY.end] for words in captions]
    padded = torch.tensor([row + [VOCABULARY.pad] * (longest - len(row)) for row in rows])
    steps = model.predict(vision, padded[None, :, :-1]).logits[0].log_softmax(-1)
    picked = steps.gather(2, padded[:, 1:, None]).squeeze(2).masked_fill(padded[:, 1:] == VOCABULARY.pad, 0)
    return dict(zip(captions, picked.sum(1).tolist(), strict=True))


def read(decoded: Decoded, image: int = 0) -> list[tuple[str, float]]:
    """The captions that exist, and their log-probabilities; whatever is wrong with one is found out."""
    found = []
    for tokens, mask, score in zip(
        decoded.tokens[image], decoded.mask[image], decoded.log_probabilities[image].tolist(), strict=True
    ):
        assert (tokens[~mask] == VOCABULARY.pad).all()
        if score == -float("inf"):
            assert not mask.any()
            continue
        assert score <= 0  # nor is it NaN
        *words, last = tokens[mask].tolist()
        assert last == VOCABULARY.end
        assert words
        assert set(words) <= set(tokens_of("abcd"))
        found.append((TEXT.decode(words).replace(" ", ""), score))
    assert found
    return found


@dataclass(frozen=True)
class Told:
    """A rule, and the same said of whole captions."""

    name: str
    rule: Rule
    holds: Callable[[str], bool]

    def __repr__(self) -> str:
        return self.name


def told_rules() -> Iterator[Told]:
    for count in (2, 4):
        yield Told(f"at least {count}", minimum_words(TEXT, count), lambda said, n=count: len(said) >= n)  # type: ignore[misc]
    for count in (1, 3):
        yield Told(f"at most {count}", maximum_words(TEXT, count), lambda said, n=count: len(said) <= n)  # type: ignore[misc]
    for prefix in ("c", "ab"):
        yield Told(
            f"begins with {prefix}",
            begin_with(TEXT, tokens_of(prefix)),
            lambda said, begun=prefix: said.startswith(begun),  # type: ignore[misc]
        )
    yield Told("no word twice", no_repeated_token(TEXT, free=()), lambda said: len(set(said)) == len(said))
    yield Told(
        "no word but a twice",
        no_repeated_token(TEXT, free=["a", "elsewhere"]),
        lambda said: all(said.count(word) < 2 for word in "bcd"),
    )
    yield Told(
        "no pair twice",
        no_repeated_ngram(2),
        lambda said: len(set(pairwise(said))) == len(list(pairwise(said))),
    )
    yield Told(
        "neither b nor a c nor a word it does not know",
        banned(TEXT, ["b", "a c", "zebra", "a zebra"]),
        lambda said: "b" not in said and "ac" not in said,
    )
    yield Told("not d d d", banned(TEXT, ["d d d"]), lambda said: "ddd" not in said)
    yield Told(
        "ends in b or d",
        no_dangling_ending(TEXT, max_words=LONGEST, endings=["a", "c", "with"]),
        lambda said: said[-1] in "bd",
    )


def told_requirements(prefix: str = "") -> list[Told]:
    found = []
    for phrases in (["c"], ["d", "a"], ["b a"], ["b b", "a"], ["c", "b c", "d"]):
        rule = Required.of(TEXT, phrases, max_words=LONGEST, prefix=tokens_of(prefix))
        parts = [phrase.replace(" ", "") for phrase in phrases]
        found.append(
            Told(
                f"has {phrases}",
                rule,
                lambda said, parts=parts: all(part in said for part in parts),  # type: ignore[misc]
            )
        )
    return found


RULES = list(told_rules())
REQUIREMENTS = told_requirements()
several = st.lists(st.sampled_from(RULES), max_size=3, unique_by=lambda told: told.name)
perhaps_required = st.builds(
    lambda some, one: (*one, *some), several, st.lists(st.sampled_from(REQUIREMENTS), max_size=1)
)
