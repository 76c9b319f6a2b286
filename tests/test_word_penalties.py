"""Penalties word by word are the objectives' own token losses, and words are found in any tokens."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.captioners.pretrained.checkpoints import write_tiny

from tellapart.captioners.tokenizer_text import TokenizerText
from tellapart.captioning import load
from tellapart.errors import TellapartError
from tellapart.objectives.semipermeable import smile
from tellapart.objectives.tokens import mle
from tellapart.testing import prepare
from tellapart.testing.subject import TEXT
from tellapart.word_penalties import END, SIGN, predict_words, spell, unwritten, word_penalties

SUBJECT = prepare("transformer")
CAPTIONER = SUBJECT.captioner
VISION = SUBJECT.vision.select(torch.tensor([1]))
CAPTIONS = st.lists(
    st.sampled_from([*TEXT.vocabulary.words, "Dog,", "zebra-cat", "never-seen", "!"]), min_size=1, max_size=8
).filter(lambda words: any(word != "!" for word in words))


@settings(max_examples=30)
@given(CAPTIONS)
def test_the_words_hold_all_tokens_in_order(words: list[str]) -> None:
    spelled = spell(TEXT, "  ".join(words))
    assert spelled.words == tuple(words)
    assert spelled.caption == " ".join(words)
    assert [spelled.start, *spelled.labels] == TEXT.encode(" ".join(words))
    for word, tokens, places in zip(spelled.words, spelled.tokens, spelled.places(), strict=True):
        assert list(tokens) == TEXT.encode(word)[1:-1]
        assert [spelled.labels[place] for place in places] == list(tokens)
    assert set(unwritten(spelled, TEXT)) == {"never-seen"} & set(words)


@settings(max_examples=30)
@given(CAPTIONS)
def test_penalties_are_the_token_losses_of_the_objectives(words: list[str]) -> None:
    spelled = spell(TEXT, " ".join(words))
    penalties, end = word_penalties(predict_words(CAPTIONER, VISION, spelled), spelled, TEXT)
    tokens = torch.tensor([[TEXT.encode(" ".join(words))]])
    logits = CAPTIONER.predict(VISION, tokens[:, :, :-1]).logits.detach()
    labels = tokens[:, :, 1:]
    mask = torch.ones_like(labels, dtype=torch.bool)
    by_mle, by_smile = mle(logits, labels, mask)[0, 0], smile(logits, labels, mask, ends=(TEXT.end,))[0, 0]
    counts = [len(TEXT.encode(word)) - 2 for word in words]
    for column, losses in (("mle", by_mle), ("smile", by_smile)):
        expected = [float(part.sum()) for part in torch.split(losses[:-1], counts)]
        assert [getattr(penalty, column) for penalty in penalties] == pytest.approx(expected, abs=1e-9)
        assert getattr(end, column) == pytest.approx(float(losses[-1]), abs=1e-9)


@settings(max_examples=30)
@given(CAPTIONS)
def test_by_mle_they_add_up_to_the_probability_of_the_caption(words: list[str]) -> None:
    spelled = spell(TEXT, " ".join(words))
    penalties, end = word_penalties(predict_words(CAPTIONER, VISION, spelled), spelled, TEXT)
    log_probability, state, token = 0.0, CAPTIONER.begin(VISION), TEXT.start
    with torch.no_grad():
        for following in spelled.labels:
            logits, state = CAPTIONER.step(torch.tensor([token]), state)
            log_probability += float(logits.log_softmax(-1)[0, following])
            token = following
    assert sum(penalty.mle for penalty in [*penalties, end]) == pytest.approx(-log_probability, abs=1e-9)


@settings(max_examples=30)
@given(CAPTIONS)
def test_smile_punishes_no_word_more_than_mle_and_the_first_as_much(words: list[str]) -> None:
    spelled = spell(TEXT, " ".join(words))
    penalties, end = word_penalties(predict_words(CAPTIONER, VISION, spelled), spelled, TEXT)
    assert all(penalty.smile <= penalty.mle + 1e-12 for penalty in [*penalties, end])
    first = next(place for place, tokens in enumerate(spelled.tokens) if tokens)
    if len(spelled.tokens[first]) == 1:
        assert penalties[first].smile == penalties[first].mle
    assert all(
        (penalty.mle > 0) == bool(tokens) for penalty, tokens in zip(penalties, spelled.tokens, strict=True)
    )


def test_the_likeliest_word_is_that_of_the_softmax() -> None:
    spelled = spell(TEXT, "a cat sits here")
    prediction = predict_words(CAPTIONER, VISION, spelled)
    penalties, end = word_penalties(prediction, spelled, TEXT)
    own = sorted({*spelled.labels})
    for place, penalty in enumerate([*penalties, end]):
        logits = prediction.logits[0, 0, place]
        compared = logits if place == 0 else logits[own]
        for guess, among, tokens in (
            (penalty.likeliest, logits, list(range(len(TEXT)))),
            (penalty.likeliest_own, compared, list(range(len(TEXT))) if place == 0 else own),
        ):
            assert guess is not None
            best = tokens[int(among.argmax())]
            assert guess.word == (END if best == TEXT.end else TEXT.decode([best]) or SIGN)
            assert guess.probability == pytest.approx(float(among.softmax(-1).max()), abs=1e-9)
            assert guess.is_said == (best == spelled.labels[place])


@pytest.mark.parametrize("caption", ["", " \n ", "!", "… ?!"])
def test_a_caption_without_a_word_is_refused(caption: str) -> None:
    with pytest.raises(TellapartError, match="there is no word in the caption"):
        spell(TEXT, caption)


def test_a_caption_longer_than_the_captioner_reads_is_refused() -> None:
    longest = TEXT.rules.max_words
    spell(TEXT, "dog " * longest + "!")
    with pytest.raises(TellapartError, match=f"has {longest + 1} words, the captioner reads only {longest}"):
        spell(TEXT, "dog " * (longest + 1))


@pytest.mark.parametrize("kind", ["blip", "git", "vit-gpt2"])
def test_pieces_of_a_tokenizer_are_gathered_into_words(kind: str, tmp_path: Path) -> None:
    captioner = load(f"{kind}:{write_tiny(kind, tmp_path / kind)}", cached=False).saved.captioner
    caption = "two dogs, running over greenish tables"
    spelled = spell(captioner.text, caption)
    assert spelled.caption == caption
    assert [spelled.start, *spelled.labels] == captioner.text.encode(caption)
    assert max(map(len, spelled.tokens)) > 1
    for word, tokens in zip(spelled.words, spelled.tokens, strict=True):
        assert tokens
        if not unwritten(spelled, captioner.text):
            assert "".join(captioner.text.decode(tokens).split()) == word


def test_a_tokenizer_that_joins_words_is_refused() -> None:
    tokenizers: Any = import_module("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    trainer = tokenizers.trainers.BpeTrainer(special_tokens=["<s>", "</s>"], show_progress=False)
    tokenizer.train_from_iterator(["a dog", "a dog", "a dog"], trainer)
    text = TokenizerText(tokenizer, start=0, end=1, pad=1, silent=(0,), size=tokenizer.get_vocab_size())
    assert len(text.encode("a dog")) == 3
    with pytest.raises(TellapartError, match="across spaces"):
        spell(text, "a dog")
