"""Captions go through a tokenizer and come back, whatever kind it is, and its signs never show."""

from __future__ import annotations

import copy
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tellapart.captioners.tokenizer_text import Signs, TokenizerText, find_signs
from tellapart.errors import TellapartError
from tellapart.types import Text

transformers: Any = import_module("transformers")  # its own types are too partial to check against
tokenizers: Any = import_module("tokenizers")

CAPTIONS = [
    "a dog runs",
    "a man and a dog sit on a red bus .",
    "two dogs run near the tree",
    "it's a man's dog",
]
BETWEEN = "<|endoftext|>"
NOTHING = SimpleNamespace()  # a config that knows no ids


def gpt2_like() -> Any:
    """Pieces of bytes, a space belonging to the word behind it; one sign for all, and no padding."""
    bare = tokenizers.Tokenizer(tokenizers.models.BPE())
    bare.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    bare.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=[BETWEEN],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bare.train_from_iterator(CAPTIONS, trainer)
    return transformers.PreTrainedTokenizerFast(tokenizer_object=bare, bos_token=BETWEEN, eos_token=BETWEEN)


def llama_like() -> Any:
    """Pieces of letters, a mark before each word, the first included."""
    bare = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
    bare.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    bare.decoder = tokenizers.decoders.Metaspace()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=80, special_tokens=["<unk>", "<s>", "</s>"], show_progress=False
    )
    bare.train_from_iterator(CAPTIONS, trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=bare, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


def bert_like() -> Any:
    """Word pieces in small letters."""
    signs = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[DEC]"]
    bare = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    bare.normalizer = tokenizers.normalizers.BertNormalizer()
    bare.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    bare.decoder = tokenizers.decoders.WordPiece()
    trainer = tokenizers.trainers.WordPieceTrainer(vocab_size=90, special_tokens=signs, show_progress=False)
    bare.train_from_iterator(CAPTIONS, trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=bare, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        bos_token="[DEC]", eos_token="[SEP]",
    )  # fmt: skip


TOKENIZERS = {"gpt2": gpt2_like(), "llama": llama_like(), "bert": bert_like()}


def text_of(kind: str) -> TokenizerText:
    tokenizer = TOKENIZERS[kind]
    signs = find_signs(tokenizer, NOTHING, model=kind)
    return TokenizerText.of(tokenizer, signs, size=len(tokenizer), model=kind)


TEXTS = {kind: text_of(kind) for kind in TOKENIZERS}


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("caption", CAPTIONS[:3])
def test_a_caption_comes_back(kind: str, caption: str) -> None:
    text = TEXTS[kind]
    tokens = text.encode(caption)
    assert tokens[0] == text.start
    assert tokens[-1] == text.end
    # Only the word pieces of BERT forget that a space stood before the full stop, as its own decoding does.
    shown = caption.replace(" .", ".") if kind == "bert" else caption
    assert text.decode(tokens) == text.decode(tokens[1:]) == shown
    assert text.decode([*tokens, text.pad, text.pad]) == shown
    assert text.encode(shown) == tokens


@given(caption=st.text())
def test_pieces_of_bytes_write_anything(caption: str) -> None:
    text = TEXTS["gpt2"]
    words = " ".join(caption.split())
    assert text.decode(text.encode(caption)) == words
    assert text.encode(words) == text.encode(caption)
    assert text.decode(text.beginning(caption)) == words


@given(tokens=st.lists(st.integers(0, 50), max_size=12), kind=st.sampled_from(sorted(TEXTS)))
def test_what_was_decoded_decodes_to_itself_and_shows_no_sign(tokens: list[int], kind: str) -> None:
    text = TEXTS[kind]
    shown = text.decode(tokens)
    assert shown == " ".join(shown.split())
    assert not any(sign in shown for sign in TOKENIZERS[kind].all_special_tokens)
    again = text.decode(text.encode(shown))
    assert text.decode(text.encode(again)) == again


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_the_first_word_has_the_pieces_it_has_elsewhere(kind: str) -> None:
    """So a captioner does not learn each word twice, and needs no space before a caption to be shown."""
    text = TEXTS[kind]
    one, two = text.encode("dog"), text.encode("dog dog")
    assert two[1:-1] == one[1:-1] * 2
    assert text.lead == (" " if kind == "gpt2" else "")


def test_a_caption_can_be_written_without_a_space() -> None:
    tokenizer = TOKENIZERS["gpt2"]
    signs = find_signs(tokenizer, NOTHING, model="m")
    text = TokenizerText.of(tokenizer, signs, size=len(tokenizer), model="m", leading_space=False)
    assert text.encode("a dog")[1:-1] == tokenizer("a dog")["input_ids"]
    assert text.fingerprint != TEXTS["gpt2"].fingerprint


def test_the_name_of_a_sign_is_text_like_any_other() -> None:
    text = TEXTS["gpt2"]
    tokens = text.encode(f"a {BETWEEN} dog")
    assert text.end not in tokens[1:-1]
    assert text.decode(tokens) == f"a {BETWEEN} dog"


def test_an_empty_caption_has_no_pieces() -> None:
    assert TEXTS["gpt2"].encode(" \n") == [TEXTS["gpt2"].start, TEXTS["gpt2"].end]
    assert TEXTS["gpt2"].beginning(" ") == ()


@pytest.mark.parametrize("kind", TEXTS)
def test_signs_are_the_tokenizers_own_and_are_never_written(kind: str) -> None:
    tokenizer, text = TOKENIZERS[kind], TEXTS[kind]
    assert isinstance(text, Text)
    assert (text.start, text.end) == (tokenizer.bos_token_id, tokenizer.eos_token_id)
    assert text.pad == (text.end if tokenizer.pad_token_id is None else tokenizer.pad_token_id)
    assert set(text.silent) == set(tokenizer.all_special_ids) - {text.end}
    assert len(text) == len(tokenizer)


def test_places_without_a_piece_are_never_written() -> None:
    """Some networks have more logits than their tokenizer has pieces, to be a multiple of 64."""
    tokenizer = TOKENIZERS["gpt2"]
    text = TokenizerText.of(
        tokenizer, find_signs(tokenizer, NOTHING, model="m"), size=len(tokenizer) + 5, model="m"
    )
    assert set(range(len(tokenizer), len(tokenizer) + 5)) <= set(text.silent)
    assert text.decode([*text.encode("a dog")[:-1], len(tokenizer) + 2]) == "a dog"


def test_a_start_that_is_a_word_may_be_written() -> None:
    """BLIP's captions follow the last word of a prompt."""
    tokenizer = TOKENIZERS["bert"]
    word = tokenizer("a")["input_ids"][0]
    signs = Signs(start=word, end=tokenizer.sep_token_id, pad=tokenizer.pad_token_id)
    text = TokenizerText.of(tokenizer, signs, size=len(tokenizer), model="m")
    assert word not in text.silent
    assert text.decode([word, word, text.end, word]) == "a a"
    assert tokenizer.bos_token_id in text.silent


def test_what_a_tokenizer_cannot_write_is_refused_as_a_beginning() -> None:
    with pytest.raises(TellapartError, match="cannot write 'a 犬'"):
        TEXTS["llama"].beginning("a 犬")
    assert TEXTS["llama"].decode(TEXTS["llama"].beginning("a dog")) == "a dog"


def test_the_fingerprint_tells_texts_apart_and_survives_a_copy() -> None:
    prints = [text.fingerprint for text in TEXTS.values()]
    assert len(set(prints)) == len(prints)
    for kind, text in TEXTS.items():
        assert text_of(kind).fingerprint == text.fingerprint
        assert copy.deepcopy(text).fingerprint == text.fingerprint
    tokenizer = TOKENIZERS["bert"]
    signs = Signs(start=tokenizer.cls_token_id, end=tokenizer.sep_token_id, pad=tokenizer.pad_token_id)
    other = TokenizerText.of(tokenizer, signs, size=len(tokenizer), model="m")
    assert other.fingerprint != TEXTS["bert"].fingerprint


def test_settings_of_the_tokenizer_do_not_matter_and_stay() -> None:
    tokenizer = gpt2_like()
    tokenizer.backend_tokenizer.enable_truncation(2)
    tokenizer.backend_tokenizer.enable_padding(length=50)
    before = tokenizer.backend_tokenizer.to_str()
    text = TokenizerText.of(
        tokenizer, find_signs(tokenizer, NOTHING, model="m"), size=len(tokenizer), model="m"
    )
    assert text.decode(text.encode(CAPTIONS[1])) == CAPTIONS[1]
    assert tokenizer.backend_tokenizer.to_str() == before


def test_ids_come_from_the_config_where_the_tokenizer_names_none() -> None:
    tokenizer = SimpleNamespace(bos_token_id=None, eos_token_id=None, pad_token_id=None)
    config = SimpleNamespace(bos_token_id=3, eos_token_id=[7, 8], pad_token_id=0)
    assert find_signs(tokenizer, config, model="m") == Signs(start=3, end=7, pad=0)
    assert find_signs(tokenizer, SimpleNamespace(eos_token_id=7), model="m") == Signs(start=7, end=7, pad=7)


def test_a_tokenizer_without_an_end_is_refused() -> None:
    tokenizer = SimpleNamespace(bos_token_id=1, eos_token_id=None, pad_token_id=None)
    with pytest.raises(TellapartError, match="the tokenizer of m has no sign for the end") as caught:
        find_signs(tokenizer, SimpleNamespace(eos_token_id=[]), model="m")
    assert "eos_token" in caught.value.hint


@pytest.mark.parametrize("size", [0, 100])
def test_a_tokenizer_of_another_network_is_refused(size: int) -> None:
    with pytest.raises(TellapartError, match=f"m: .* its network has {size} words"):
        TokenizerText.of(TOKENIZERS["gpt2"], Signs(0, 0, 0), size=size, model="m")


def test_a_tokenizer_without_its_fast_form_is_refused() -> None:
    with pytest.raises(TellapartError, match=r"has no tokenizer\.json"):
        TokenizerText.of(SimpleNamespace(), Signs(0, 0, 0), size=3, model="m")
