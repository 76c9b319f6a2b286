"""The dual encoder: torch trains what NumPy answers by; its folder; gradients to a one-hot caption."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.numpy import load_file, save_file
from tests.retrievers.tiny_dual import write_tiny_dual

from tellapart.corpus import as_vision
from tellapart.data.text import TextRules
from tellapart.data.word_text import WordText
from tellapart.errors import TellapartError
from tellapart.model_folder import CONFIG, WEIGHTS, WORDS, save_model
from tellapart.retrievers.dual.folder import WHAT, RetrieverSettings, read_dual
from tellapart.retrievers.dual.network import DualEncoder, build, empty
from tellapart.retrievers.dual.runtime import load_dual
from tellapart.retrievers.loading import load_retriever
from tellapart.retrievers.settings import DualConfig
from tellapart.vision.encoder import traits_of
from tellapart.vision.features import Features
from tellapart.vision.parts import load_encoder
from tellapart.vision.traits import EncoderTraits

CAPTIONS = ("a dog runs", "a dog sleeps on the grass", "two cats", "the grass is green")
RULES = TextRules(min_count=1)
LITE = EncoderTraits(
    name="lite", identity="lite@1", shapes={"pooled": (12,), "classes": (5,), "grid": (4, 6)}
)


def network_of(config: DualConfig, traits: EncoderTraits = LITE) -> DualEncoder:
    torch.manual_seed(3)
    text = None if config.sentences == "minilm" else WordText.build(CAPTIONS, RULES)
    return build(config, text=text, traits=traits).eval()


def saved(folder: Path, network: DualEncoder, config: DualConfig, traits: EncoderTraits = LITE) -> Path:
    text = WordText.build(CAPTIONS, RULES) if config.sentences == "bilstm" else None
    settings = RetrieverSettings(
        retriever={"name": "dual", **config.model_dump()},
        encoder=traits,
        text=RULES if text else None,
        fingerprint=network.sentences.fingerprint,
        trained_on="four captions",
    )
    weights = {name: tensor.numpy() for name, tensor in network.state_dict().items()}
    save_model(folder, settings, weights, what=WHAT, words=text.vocabulary.to_json() if text else None)
    return folder


def features_of(count: int) -> Features:
    random = np.random.default_rng(5)
    classes = random.dirichlet(np.ones(5), count)
    return Features(
        np.zeros((count, 4, 6), np.float16),
        random.normal(size=(count, 12)).astype(np.float16),
        classes.astype(np.float16),
    )


TINY = DualConfig(width=8, hidden=6, word_vectors="learned", word_width=7, dropout=0.4)
WITH_CLASSES = TINY.model_copy(update={"classes": True})
GLOVE = DualConfig(width=8, hidden=6)
MINILM = DualConfig(width=8, sentences="minilm")


@pytest.mark.parametrize(
    "config", [TINY, WITH_CLASSES, GLOVE, MINILM], ids=["tiny", "classes", "glove", "minilm"]
)
def test_numpy_answers_what_torch_has_learned(config: DualConfig, tmp_path: Path) -> None:
    network = network_of(config)
    runtime = load_dual("mine", saved(tmp_path / "dual", network, config))
    sentences = [*CAPTIONS, "", "zebras", "a zebra runs on the the the the grass"]
    with torch.inference_mode():
        read = network.embed_read(network.sentences.read(sentences)).numpy()
        seen = network.embed_vision(as_vision(features_of(9))).numpy()
    np.testing.assert_allclose(runtime.embed_texts(sentences), read, atol=2e-6)
    np.testing.assert_allclose(runtime.embed_features(features_of(9)), seen, atol=2e-6)
    np.testing.assert_allclose(np.linalg.norm(runtime.embed_texts(sentences), axis=1), 1, atol=1e-6)


def test_a_sentence_does_not_depend_on_its_neighbours(tmp_path: Path) -> None:
    runtime = load_dual("mine", saved(tmp_path / "dual", network_of(TINY), TINY))
    together = runtime.embed_texts(CAPTIONS * 100)
    alone = np.concatenate([runtime.embed_texts([caption]) for caption in CAPTIONS])
    np.testing.assert_allclose(together, np.tile(alone, (100, 1)), atol=1e-6)
    assert runtime.embed_texts([]).shape == (0, 8)
    rows = together.reshape(100, len(CAPTIONS), -1)
    np.testing.assert_array_equal(rows, np.broadcast_to(rows[:1], rows.shape), "said again, placed again")
    for embed in (runtime.embed_texts, runtime.embed_images):
        with pytest.raises(TellapartError, match="'a dog' is no list"):
            embed("a dog")


def test_pictures_of_the_same_bytes_have_the_same_place(scenes: Path, tmp_path: Path) -> None:
    runtime = load_retriever(write_tiny_dual(tmp_path / "tiny", CAPTIONS))
    pictures = sorted((scenes / "images").iterdir())[:50]
    copies = [Path(shutil.copy(picture, tmp_path / f"{picture.stem}.png")) for picture in pictures]
    rows = runtime.embed_images([*pictures, *reversed(copies), pictures[0]])
    np.testing.assert_array_equal(rows[:50], rows[50:100][::-1])
    np.testing.assert_array_equal(rows[0], rows[100])


def test_words_without_a_vector_are_unknown(tmp_path: Path) -> None:
    network = network_of(TINY)
    folder = saved(tmp_path / "dual", network, TINY)
    runtime = load_dual("mine", folder)
    assert runtime.unknown_words("a dog runs, quokkas too") == ["quokkas", "too"]
    text = runtime._saved.text
    assert text is not None
    vectors = runtime._weights["sentences.vectors"]
    vectors[text.vocabulary.id("dog")] = vectors[text.vocabulary.unknown]
    assert load_dual("mine", folder).unknown_words("a dog") == []
    del runtime.__dict__["_has_vector"]
    assert runtime.unknown_words("a dog runs") == ["dog"]


@pytest.mark.parametrize("config", [TINY, GLOVE, MINILM], ids=["learned", "glove", "minilm"])
def test_hard_words_read_like_the_sentence_and_gradients_reach_every_word(config: DualConfig) -> None:
    network = network_of(config)
    words = ["", "a", "dog", "runs", "sleeps", "grass"]
    one_hot = torch.zeros(2, 4, len(words))
    one_hot[0, torch.arange(3), torch.tensor([1, 2, 3])] = 1  # a dog runs
    one_hot[1, torch.arange(2), torch.tensor([2, 4])] = 1  # dog sleeps
    mask = torch.tensor([[True, True, True, False], [True, True, False, False]])
    one_hot[~mask] = torch.rand(3, len(words))  # what stands behind a sentence is never read
    one_hot.requires_grad_()
    found = network.embed_words(one_hot, mask, words)
    expected = network.embed_read(network.sentences.read(["a dog runs", "dog sleeps"]))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    (gradient,) = torch.autograd.grad((found[:, 0]).sum(), one_hot)
    assert torch.isfinite(gradient).all()
    assert (gradient[mask][:, 1:] != 0).all(), "words that were not written are weighed too"
    assert (gradient[~mask] == 0).all()


def test_a_caption_without_words_is_an_unknown_word() -> None:
    network = network_of(TINY)
    none = network.embed_words(torch.zeros(1, 2, 3), torch.zeros(1, 2, dtype=torch.bool), ["", "a", "dog"])
    torch.testing.assert_close(none, network.embed_read(network.sentences.read(["zebra"])))


def test_signs_and_strange_words_of_glove_have_zeros() -> None:
    network = network_of(GLOVE)
    vectors = network.sentences.get_buffer("vectors")
    vocabulary = WordText.build(CAPTIONS, RULES).vocabulary
    assert (vectors[[vocabulary.pad, vocabulary.start, vocabulary.end, vocabulary.unknown]] == 0).all()
    dog, cats = vectors[vocabulary.id("dog")], vectors[vocabulary.id("cats")]
    assert torch.cosine_similarity(dog, cats, dim=0) > 0.5
    assert not any(name.endswith("vectors") for name, _ in network.named_parameters()), (
        "they stay as they are"
    )


def test_lengths_are_kept_before_scaling() -> None:
    network = network_of(TINY)
    vision = as_vision(features_of(3))
    plain = network.image_vectors(vision)
    torch.testing.assert_close(network.embed_vision(vision), plain / plain.norm(dim=1, keepdim=True))


def test_a_trained_one_needs_no_glove(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = saved(tmp_path / "dual", network_of(GLOVE), GLOVE)
    monkeypatch.setattr("tellapart.retrievers.dual.network.glove_vectors", None)  # to call it would fail
    load_dual("mine", folder)
    read = read_dual(folder)
    network = empty(read.config, text=read.text, traits=LITE)
    network.load_state_dict({name: torch.from_numpy(values) for name, values in read.weights.items()})
    with pytest.raises(TypeError, match="not callable"):
        network_of(GLOVE)


def test_unknown_words_are_told(tmp_path: Path) -> None:
    runtime = load_dual("mine", saved(tmp_path / "dual", network_of(TINY), TINY))
    assert runtime.unknown_words("A zebra, a Dog and a zebra!") == ["zebra", "and"]
    assert runtime.unknown_words("") == []
    minilm = load_dual("other", saved(tmp_path / "minilm", network_of(MINILM), MINILM))
    assert minilm.unknown_words("zebras") == ()


def test_pictures_come_through_the_encoder_and_bad_ones_in_their_place(tmp_path: Path) -> None:
    traits = traits_of(load_encoder("patches"))
    network = network_of(TINY, traits)
    runtime = load_dual("mine", saved(tmp_path / "dual", network, TINY, traits))
    for number, colour in enumerate(["red", "blue"]):
        Image.new("RGB", (40, 30), colour).save(tmp_path / f"{number}.png")
    (tmp_path / "bad.png").write_bytes(b"no picture")
    placed = list(runtime.place([tmp_path / "0.png", tmp_path / "bad.png", tmp_path / "1.png"]))
    assert isinstance(placed[1], TellapartError)
    red, blue = runtime.embed_images([tmp_path / "0.png", str(tmp_path / "1.png")])
    np.testing.assert_array_equal(placed[0].vector, red)  # type: ignore[union-attr]
    np.testing.assert_array_equal(placed[2].vector, blue)  # type: ignore[union-attr]
    with pytest.raises(TellapartError, match=r"bad\.png"):
        runtime.embed_images([tmp_path / "bad.png"])
    expected = runtime.embed_texts(CAPTIONS) @ np.stack([red, blue]).T
    np.testing.assert_allclose(
        runtime.scores(CAPTIONS, [tmp_path / "0.png", tmp_path / "1.png"]), expected, rtol=1e-6
    )


def test_another_encoder_under_the_same_name_is_refused(tmp_path: Path) -> None:
    traits = traits_of(load_encoder("patches")).model_copy(update={"identity": "patches@other"})
    runtime = load_dual("mine", saved(tmp_path / "dual", network_of(TINY, traits), TINY, traits))
    with pytest.raises(TellapartError, match="trained on features of patches@other"):
        list(runtime.place([]))


def test_the_identity_changes_with_what_gives_vectors_their_meaning(tmp_path: Path) -> None:
    network = network_of(TINY)
    one = load_dual("a", saved(tmp_path / "one", network, TINY)).identity
    assert load_dual("a", saved(tmp_path / "same", network, TINY)).identity == one
    with torch.no_grad():
        network.get_parameter("project.bias")[0] += 1
    assert load_dual("a", saved(tmp_path / "other", network, TINY)).identity != one


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def not_a_number(path: Path) -> None:
    weights = load_file(path)
    weights["project.bias"] = weights["project.bias"] * np.nan
    save_file(weights, path)


def other_shape(path: Path) -> None:
    weights = load_file(path)
    weights["project.bias"] = weights["project.bias"][:-1].copy()
    save_file(weights, path)


def older(path: Path) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 0}))


def newer(path: Path) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))


def another_kind(path: Path) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), "retriever": {"name": "nobody"}}))


def more_words(path: Path) -> None:
    content = json.loads(path.read_text())
    content["words"].append("zebra")
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("damage", "file", "said"),
    [
        (Path.unlink, CONFIG, "missing or unreadable"),
        (Path.unlink, WEIGHTS, "missing, unreadable"),
        (Path.unlink, WORDS, "cannot be read"),
        (cut, WEIGHTS, "damaged"),
        (cut, CONFIG, "not the settings of a retriever"),
        (not_a_number, WEIGHTS, "not finite"),
        (other_shape, WEIGHTS, "not of this retriever"),
        (older, CONFIG, "format 0"),
        (newer, CONFIG, "format 99"),
        (another_kind, CONFIG, "not the settings of a retriever"),
        (more_words, WORDS, "not the vocabulary"),
    ],
)
def test_what_is_damaged_is_refused_by_name(
    damage: Callable[[Path], object], file: str, said: str, tmp_path: Path
) -> None:
    folder = saved(tmp_path / "dual", network_of(TINY), TINY)
    damage(folder / file)
    with pytest.raises(TellapartError, match=said) as caught:
        load_retriever(folder)
    assert file in caught.value.problem
    assert caught.value.hint


def test_a_name_that_stands_for_nothing_lists_what_there_is() -> None:
    with pytest.raises(TellapartError, match="no retriever is called so") as caught:
        load_retriever("juge")
    assert "judge, reranker" in caught.value.hint


def test_answering_needs_no_torch(tmp_path: Path) -> None:
    folder = saved(tmp_path / "dual", network_of(TINY), TINY)
    script = (
        "import sys\nfrom tellapart.retrievers.loading import load_retriever\n"
        f"print(load_retriever({str(folder)!r}).embed_texts(['a dog']).shape, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "(1, 8) False\n"
