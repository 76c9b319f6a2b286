"""Rules about words where a text writes pieces of words: those of BERT and those of GPT-2."""

from __future__ import annotations

import re
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tellapart.captioners.tokenizer_text import TokenizerText, find_signs
from tellapart.decoding.pieces import pieces_of, spellings
from tellapart.decoding.required import Required
from tellapart.decoding.rules import Rule, banned, no_dangling_ending, no_repeated_token
from tellapart.decoding.sampling import Sampling, image_generators, sample
from tellapart.decoding.search import beam
from tellapart.errors import TellapartError
from tellapart.types import Captioner, Prediction, Text, Vision

transformers: Any = import_module("transformers")  # its own types are too partial to check against
tokenizers: Any = import_module("tokenizers")


def bert_like() -> TokenizerText:
    words = ["a", "cat", "dog", "with", "and", ",", "##s", "##tle", "##with", "run"]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *words]
    bare = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({piece: place for place, piece in enumerate(pieces)}, unk_token="[UNK]")
    )
    bare.normalizer = tokenizers.normalizers.BertNormalizer()
    bare.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    bare.decoder = tokenizers.decoders.WordPiece()
    return text_of(bare, bos_token="[CLS]", eos_token="[SEP]", pad_token="[PAD]", unk_token="[UNK]")


def gpt2_like() -> TokenizerText:
    """The end is start and padding too."""
    bare = tokenizers.Tokenizer(tokenizers.models.BPE())
    bare.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    bare.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=290,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bare.train_from_iterator(
        [" a cat runs with a dog and a cat", " a dog with cats , and a dog"] * 3, trainer
    )
    return text_of(bare, bos_token="<|endoftext|>", eos_token="<|endoftext|>")


def text_of(bare: Any, **signs: str) -> TokenizerText:
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=bare, **signs)
    found = find_signs(tokenizer, SimpleNamespace(), model="tiny")
    return TokenizerText.of(tokenizer, found, size=len(tokenizer), model="tiny")


TEXTS = {"bert": bert_like(), "gpt2": gpt2_like()}


class Nothing:
    """The state of a captioner that remembers nothing."""

    def select(self, rows: Tensor) -> Nothing:
        return self


class Pairs(Captioner[Nothing]):
    """Expects words by the last one alone."""

    needs = frozenset({"pooled"})

    def __init__(self, text: Text, seed: int) -> None:
        super().__init__()
        self.text = text
        generator = torch.Generator().manual_seed(seed)
        self.table = 3 * torch.randn(len(text), len(text), generator=generator, dtype=torch.float64)

    def predict(self, vision: Vision, tokens: Tensor) -> Prediction:
        return Prediction(self.table[tokens])

    def begin(self, vision: Vision) -> Nothing:
        return Nothing()

    def step(self, token: Tensor, state: Nothing) -> tuple[Tensor, Nothing]:
        return self.table[token], state


def see(count: int) -> Vision:
    pooled = torch.zeros(count, 1, dtype=torch.float64)
    return Vision(pooled.new_zeros(count, 0, 1), pooled, pooled.new_zeros(count, 0))


def all_that_is_said(text: Text, seed: int, rules: list[Rule], *, max_words: int = 8) -> list[str]:
    """By a beam and by chance."""
    model = Pairs(text, seed)
    found = beam(model, see(1), width=6, max_words=max_words, rules=rules)
    own = image_generators(["one"], seed=seed)
    drawn = sample(model, see(1), Sampling(8), generators=own, max_words=max_words, rules=rules)
    captions = []
    for decoded in (found, drawn):
        for tokens, mask, score in zip(
            decoded.tokens[0], decoded.mask[0], decoded.log_probabilities[0], strict=True
        ):
            if score > -torch.inf:
                assert tokens[mask][-1] == text.end
                assert not set(tokens[mask].tolist()) & set(text.silent)
                captions.append(text.decode(tokens[mask].tolist()))
    return captions


def test_pieces_that_begin_words_and_pieces_that_go_on() -> None:
    for text, begin, go_on in [
        (TEXTS["bert"], "cat", "##s"),
        (TEXTS["gpt2"], "Ġcat", "s"),
    ]:
        pieces, number = pieces_of(text), text.tokenizer.token_to_id
        assert pieces.begin[number(begin)]
        assert pieces.go_on[number(go_on)]
        assert not (pieces.begin & pieces.go_on).any()
        comma = number(",")
        assert not pieces.begin[comma]
        assert not pieces.go_on[comma]
        for sign in (*text.silent, text.end):
            assert not pieces.begin[sign]
            assert not pieces.go_on[sign]


def test_a_word_has_the_pieces_it_has_inside_of_a_caption() -> None:
    text = TEXTS["gpt2"]
    (cat,) = (found for found in spellings(text, ["cat"]) if len(found) == 1)
    assert cat[0] in text.encode("a cat and a dog")
    assert cat in spellings(text, ["CAT"])
    assert spellings(TEXTS["bert"], ["zebra", "Cat"]) == {(5,)}


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.sampled_from(sorted(TEXTS)))
def test_a_banned_word_of_several_pieces_is_never_written(seed: int, kind: str) -> None:
    text = TEXTS[kind]
    phrases = ["cats", "dog and"]
    pieces = [found for found in spellings(text, phrases) if len(found) > 1]
    assert pieces
    for caption in all_that_is_said(text, seed, [banned(text, phrases)]):
        tokens = text.encode(caption)
        assert not any(
            tuple(tokens[at : at + len(one)]) == one for one in pieces for at in range(len(tokens))
        )


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.sampled_from(sorted(TEXTS)), st.sampled_from([["cat"], ["cats", "a dog"]]))
def test_a_required_word_stands_there_as_a_word(seed: int, kind: str, phrases: list[str]) -> None:
    text = TEXTS[kind]
    for caption in all_that_is_said(text, seed, [Required.of(text, phrases, max_words=8)]):
        words = f" {caption.replace(',', ' ')} "
        for phrase in phrases:
            # " cats" may stand there too, and the word itself end with any sign.
            behind = [words[found.end() : found.end() + 1] for found in re.finditer(f" {phrase}", words)]
            assert not all(sign.isalnum() for sign in behind)


def test_a_word_that_grew_into_another_is_still_missing() -> None:
    text = TEXTS["bert"]
    required = Required.of(text, ["cat"], max_words=4)
    cat, tle, a = (text.tokenizer.token_to_id(piece) for piece in ("cat", "##tle", "a"))
    scores = torch.zeros(1, len(text))
    assert required(scores, torch.tensor([[cat]]))[0, text.end] == 0
    assert required(scores, torch.tensor([[cat]]))[0, tle] == -torch.inf
    # A prefix may have said so.
    assert required(scores, torch.tensor([[cat, tle, a]])).isfinite()[0].nonzero().tolist() == [[cat]]
    both = Required.of(text, ["cat", "cattle"], max_words=3)
    assert both.phrases == ((cat,), (cat, tle))
    for seed in range(5):
        assert set(all_that_is_said(text, seed, [both], max_words=3)) <= {"cat cattle", "cattle cat"}
    with pytest.raises(TellapartError, match=r"cannot write 'zèbre'"):
        Required.of(text, ["zèbre"], max_words=4)


def test_pieces_inside_of_words_and_commas_may_come_again() -> None:
    text = TEXTS["bert"]
    number = text.tokenizer.token_to_id
    written = torch.tensor([[number(piece) for piece in ("a", "cat", "##s", ",", "and")]])
    struck = no_repeated_token(text)(torch.zeros(1, len(text)), written) == -torch.inf
    assert struck.nonzero()[:, 1].tolist() == [number("cat")]
    strict = no_repeated_token(text, free=())(torch.zeros(1, len(text)), written) == -torch.inf
    assert strict.sum() == 5


def test_an_ending_is_told_from_the_same_letters_inside_of_a_word() -> None:
    text = TEXTS["bert"]
    number = text.tokenizer.token_to_id
    rule = no_dangling_ending(text, max_words=9)
    written = torch.tensor([[number("dog"), number("with")], [number("dog"), number("##with")]])
    assert rule(torch.zeros(2, len(text)), written)[:, text.end].tolist() == [-torch.inf, 0]
