"""CLIP and SigLIP see and read as transformers itself does, and bad checkpoints are refused in a line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from tests.foreign.tiny_clip import LONGEST, SAVE, draw_pictures, open_upright, save_clip, transformers

from tellapart.errors import TellapartError
from tellapart.foreign.clip import CLIP, SIGLIP, ClipModel, Family, cut_note, read_clip

LONG = "many words of no meaning " * 20
TEXTS = ["a dog", "Two RED buses", "ö 😀", "", "x" * (LONGEST - 2), LONG]
KINDS = sorted(SAVE)


def read(folder: Path | str) -> ClipModel:
    family = (
        CLIP if json.loads((Path(folder) / "config.json").read_text())["model_type"] == "clip" else SIGLIP
    )
    return read_clip(str(folder), family, needed_by="this test", hint="try again")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    transformers.utils.logging.disable_progress_bar()

    @cache
    def write(kind: str) -> Path:
        return SAVE[kind](tmp_path_factory.mktemp("checkpoints") / f"tiny-{kind}")

    return write


def refused(folder: Path | str, family: Family = CLIP) -> TellapartError:
    with pytest.raises(TellapartError) as caught:
        read_clip(str(folder), family, needed_by="this test", hint="try again")
    assert "\n" not in caught.value.problem + caught.value.hint
    assert len(caught.value.problem) < 500
    return caught.value


@pytest.mark.parametrize("kind", KINDS)
def test_texts_are_read_as_the_library_reads_them(kind: str, folder: Callable[[str], Path]) -> None:
    """One by one, filled up, cut and masked by the library's tokenizer as its documentation says."""
    network = transformers.AutoModel.from_pretrained(folder(kind)).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder(kind))
    model = read(folder(kind))
    tokens, _ = model.tokens(TEXTS)
    vectors = model.read(tokens)
    assert vectors.shape == (len(TEXTS), model.width)
    for text, vector in zip(TEXTS, vectors, strict=True):
        padding = {"padding": "max_length"} if kind != "clip" else {}
        wanted = text if kind == "clip" else text.lower()
        inputs = tokenizer(wanted, truncation=True, max_length=LONGEST, return_tensors="pt", **padding)
        with torch.inference_mode():
            expected = network.get_text_features(**inputs).pooler_output[0]
        assert torch.allclose(vector, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_pictures_are_seen_as_the_library_sees_them(
    kind: str, folder: Callable[[str], Path], tmp_path: Path
) -> None:
    network = transformers.AutoModel.from_pretrained(folder(kind)).eval()
    name = {"clip": "CLIP", "siglip": "Siglip", "siglip2": "Siglip2"}[kind]
    processor = getattr(transformers, f"{name}ImageProcessorPil").from_pretrained(folder(kind))
    model = read(folder(kind))
    for path in draw_pictures(tmp_path):
        picture = open_upright(path)
        with torch.inference_mode():
            expected = network.get_image_features(**processor(picture, return_tensors="pt")).pooler_output
        ours = model.see(torch.from_numpy(model.pixels.prepare(picture)[None]))
        assert torch.allclose(ours, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_cut_is_counted_and_told(kind: str, folder: Callable[[str], Path]) -> None:
    model = read(folder(kind))
    marks = 2 if kind == "clip" else 1
    tokens, cut = model.tokens(["x" * (LONGEST - marks), "x" * (LONGEST - marks + 1), LONG, "a"])
    assert cut == [False, True, True, False]
    assert [len(ids) for ids in tokens[:3]] == [LONGEST] * 3
    assert len({ids[-1] for ids in tokens}) == 1  # what marks the end is never cut off
    name = "CLIP" if kind == "clip" else "SigLIP"
    assert cut_note(2, "caption", model) == [
        f"2 captions were cut at the {LONGEST} tokens that the {name} model reads"
    ]
    assert cut_note(1, "caption", model)[0].startswith("1 caption was cut")
    assert cut_note(0, "caption", model) == []
    assert model.tokens([]) == ([], [])


def test_capitals_mean_nothing_to_siglip(folder: Callable[[str], Path]) -> None:
    model = read(folder("siglip"))
    (small, capital), _ = model.tokens(["a dog", "A DOG"])
    assert small == capital
    assert model.tokenizer("a dog")["input_ids"] != model.tokenizer("A DOG")["input_ids"]


@pytest.mark.skipif(find_spec("sentencepiece") is None, reason="sentencepiece is not installed")
def test_siglip_with_its_own_tokenizer(folder: Callable[[str], Path], tmp_path: Path) -> None:
    """Which strips punctuation and capitals, and has pieces of sentencepiece."""
    trainer = import_module("sentencepiece").SentencePieceTrainer
    copy = tmp_path / "siglip"
    shutil.copytree(folder("siglip"), copy)
    (copy / "tokenizer.json").unlink()
    trainer.train(
        sentence_iterator=iter(["a dog and two red buses stand still"] * 50), model_prefix=copy / "spiece",
        vocab_size=40, hard_vocab_limit=False, bos_id=-1, eos_id=1, unk_id=2, pad_id=-1, minloglevel=2,
    )  # fmt: skip
    settings = {"tokenizer_class": "SiglipTokenizer", "model_input_names": ["input_ids"]}
    (copy / "tokenizer_config.json").write_text(json.dumps(settings))
    tokenizer = transformers.AutoTokenizer.from_pretrained(copy)
    content = json.loads((copy / "config.json").read_text())
    content["text_config"]["vocab_size"] = len(tokenizer)
    torch.manual_seed(0)
    network = transformers.SiglipModel(transformers.SiglipConfig(**content)).eval()
    network.save_pretrained(copy)
    texts = ["Two red buses!", "a dog", LONG]
    inputs = tokenizer(texts, padding="max_length", truncation=True, max_length=LONGEST, return_tensors="pt")
    with torch.inference_mode():
        expected = network.get_text_features(**inputs).pooler_output
    model = read(copy)
    tokens, cut = model.tokens(texts)
    assert type(model.tokenizer).__name__ == "SiglipTokenizer"
    assert cut == [False, False, True]
    assert tokens[0] == model.tokens(["two red buses"])[0][0]
    assert torch.allclose(model.read(tokens), expected, atol=1e-5)


def test_a_folder_that_is_not_there_or_lacks_a_file(folder: Callable[[str], Path], tmp_path: Path) -> None:
    assert refused(tmp_path / "nowhere").problem == f"there is no folder {tmp_path / 'nowhere'}"
    assert refused(tmp_path).problem == f"the folder {tmp_path} has no config.json"
    for file, told in (
        ("preprocessor_config.json", "has no preprocessor_config.json"),
        ("vocab.json", "has no tokenizer.json"),
        ("model.safetensors", "cannot be loaded"),
    ):
        copy = tmp_path / file
        shutil.copytree(folder("clip"), copy)
        (copy / file).unlink()
        assert told in refused(copy).problem


def test_another_kind_of_model_is_refused(folder: Callable[[str], Path], tmp_path: Path) -> None:
    config = transformers.GPT2Config(vocab_size=9, n_embd=8, n_layer=1, n_head=1)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path)
    assert refused(tmp_path).problem == f"{tmp_path.name} is a model of type gpt2, not CLIP"
    assert refused(folder("clip"), SIGLIP).problem == "tiny-clip is a model of type clip, not SigLIP"
    assert refused(folder("siglip2")).problem == "tiny-siglip2 is a model of type siglip2, not CLIP"


@pytest.mark.parametrize("left", [100, 5000])
def test_a_file_that_was_cut_short_is_refused(left: int, tmp_path: Path) -> None:
    weights = save_clip(tmp_path / "clip") / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:left])
    assert f"the model {tmp_path / 'clip'} cannot be loaded" in refused(tmp_path / "clip").problem


def test_a_file_without_some_weights_is_refused(tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = save_clip(tmp_path / "clip") / "model.safetensors"
    some = load_file(weights)
    del some["visual_projection.weight"]
    save_file(some, weights, metadata={"format": "pt"})
    error = refused(tmp_path / "clip")
    assert error.problem == "the checkpoint clip lacks 1 weights, such as visual_projection.weight"


def test_a_tokenizer_that_knows_no_words_is_refused(folder: Callable[[str], Path], tmp_path: Path) -> None:
    """The library would give it without a word where vocab.json is there and says nothing."""
    copy = tmp_path / "clip"
    shutil.copytree(folder("clip"), copy)
    (copy / "vocab.json").write_text('{"<|startoftext|>": 0, "<|endoftext|>": 1}')
    error = refused(copy)
    assert error.problem == "the tokenizer of clip knows 2 pieces of words, the model 514"
    assert "tokenizer" in error.hint


def test_a_tokenizer_of_another_model_is_refused(folder: Callable[[str], Path], tmp_path: Path) -> None:
    copy = tmp_path / "siglip"
    shutil.copytree(folder("siglip"), copy)
    tokenizer = transformers.AutoTokenizer.from_pretrained(copy)
    tokenizer.add_tokens([f"word{number}" for number in range(9)])
    tokenizer.save_pretrained(copy)
    assert "knows 267 pieces of words, the model 258" in refused(copy, SIGLIP).problem


def test_a_tokenizer_that_cannot_fill_up_is_refused(folder: Callable[[str], Path], tmp_path: Path) -> None:
    copy = tmp_path / "siglip"
    shutil.copytree(folder("siglip"), copy)
    content = json.loads((copy / "tokenizer_config.json").read_text())
    (copy / "tokenizer_config.json").write_text(json.dumps(content | {"pad_token": None}))
    assert refused(copy, SIGLIP).problem == "the tokenizer of siglip has no token that fills up"


@pytest.mark.skipif(find_spec("sentencepiece") is not None, reason="sentencepiece is installed")
def test_what_reads_sentencepiece_is_named_where_it_is_missing(
    folder: Callable[[str], Path], tmp_path: Path
) -> None:
    copy = tmp_path / "siglip"
    shutil.copytree(folder("siglip"), copy)
    (copy / "tokenizer.json").rename(copy / "spiece.model")
    (copy / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "SiglipTokenizer"}))
    error = refused(copy, SIGLIP)
    assert error.problem == "the tokenizer of siglip needs sentencepiece, which is not installed"
    assert "pip install" in error.hint


def test_a_hub_name_without_network_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    error = refused("nobody/no-such-clip")
    assert error.problem.startswith("the model nobody/no-such-clip cannot be loaded: ")
    assert error.hint == "try again"


@pytest.mark.parametrize("kind", KINDS)
def test_broken_weights_are_an_error_not_a_number(kind: str, folder: Callable[[str], Path]) -> None:
    model = read(folder(kind))
    tokens, _ = model.tokens(["a dog"])
    noise = Image.fromarray(np.random.default_rng(2).integers(0, 256, (40, 50, 3), dtype=np.uint8))
    pixels = torch.from_numpy(model.pixels.prepare(noise)[None])
    for name, parameter in model.network.named_parameters():
        if name.endswith("final_layer_norm.weight") or "post_layernorm.weight" in name:
            parameter.fill_(torch.nan)
    with pytest.raises(TellapartError, match="not finite"):
        model.read(tokens)
    with pytest.raises(TellapartError, match="not finite"):
        model.see(pixels)
