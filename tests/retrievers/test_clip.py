"""CLIP and SigLIP as retrievers: unit rows, cosines of the library's own vectors, one identity a content."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.foreign.tiny_clip import (
    CLIP_PIXELS,
    LONGEST,
    SAVE,
    draw_pictures,
    open_upright,
    save_clip,
    transformers,
)

from tellapart.errors import TellapartError
from tellapart.retrievers.clip import ClipRetriever, load_clip, load_siglip
from tellapart.retrievers.retriever import Retriever
from tellapart.vision.encoder import Encoder

KINDS = sorted(SAVE)
TEXTS = ["a dog", "Two red buses", "ö 😀", "", "x" * 300]
Made = Callable[[str], Retriever]


def load(kind: str, folder: Path) -> Retriever:
    return load_clip(str(folder)) if kind == "clip" else load_siglip(str(folder))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    transformers.utils.logging.disable_progress_bar()

    @cache
    def make(kind: str) -> Retriever:
        return load(kind, SAVE[kind](tmp_path_factory.mktemp("checkpoints") / f"tiny-{kind}"))

    return make


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    return draw_pictures(tmp_path_factory.mktemp("pictures"))


def unit(vectors: Any) -> Any:
    rows = vectors.double().numpy()
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def by_the_library(kind: str, folder: Path, texts: list[str], pictures: tuple[Path, ...]) -> Any:
    """Cosines of the library's own features, from the library's own inputs."""
    network = transformers.AutoModel.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    name = {"clip": "CLIP", "siglip": "Siglip", "siglip2": "Siglip2"}[kind]
    processor = getattr(transformers, f"{name}ImageProcessorPil").from_pretrained(folder)
    wanted = texts if kind == "clip" else [text.lower() for text in texts]
    inputs = tokenizer(wanted, padding="max_length", truncation=True, max_length=LONGEST, return_tensors="pt")
    with torch.inference_mode():
        read = network.get_text_features(**inputs).pooler_output
        seen = [
            network.get_image_features(**processor(open_upright(path), return_tensors="pt")).pooler_output
            for path in pictures
        ]
    return unit(read) @ unit(torch.cat(seen)).T


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_the_cosines_of_the_library_s_vectors(
    kind: str, made: Made, pictures: tuple[Path, ...]
) -> None:
    retriever = made(kind)
    expected = by_the_library(kind, Path(retriever.name.partition(":")[2]), TEXTS, pictures)
    scores = retriever.scores(TEXTS, pictures)
    assert scores.dtype == np.float32
    assert scores == pytest.approx(expected, abs=1e-3)  # pictures are kept in half precision
    assert np.ptp(expected, axis=0).min() > 0.1  # or nothing above would mean anything
    clear = np.abs(expected[:, 0] - expected[:, 1]) > 2e-3
    assert clear.any()
    assert ((scores[:, 0] > scores[:, 1]) == (expected[:, 0] > expected[:, 1]))[clear].all()


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_unit_rows_in_single_precision(kind: str, made: Made, pictures: tuple[Path, ...]) -> None:
    retriever = made(kind)
    steps: list[tuple[int, int]] = []
    texts = retriever.embed_texts(TEXTS, watch=lambda *step: steps.append(step))
    images = retriever.embed_images(pictures, watch=lambda *step: steps.append(step))
    assert texts.shape == (len(TEXTS), retriever.width)
    assert images.shape == (len(pictures), retriever.width)
    assert texts.dtype == images.dtype == np.float32
    assert np.linalg.norm(texts, axis=1) == pytest.approx(1, abs=1e-6)
    assert np.linalg.norm(images, axis=1) == pytest.approx(1, abs=1e-6)
    assert steps == [(5, 5), (1, 3), (2, 3), (3, 3)]
    assert retriever.embed_texts([]).shape == (0, retriever.width)
    assert retriever.embed_images([]).shape == (0, retriever.width)


@settings(max_examples=15)
@given(sentences=st.lists(st.text("abc DÖ.", max_size=50), max_size=90), kind=st.sampled_from(KINDS))
def test_a_sentence_has_one_place_whatever_stands_beside_it(
    sentences: list[str], kind: str, made: Made
) -> None:
    retriever = made(kind)
    rows = retriever.embed_texts([*sentences, "a cab", *sentences])
    count = len(sentences)
    assert np.array_equal(rows[:count], rows[count + 1 :])
    assert rows[count] == pytest.approx(retriever.embed_texts(["a cab"])[0], abs=1e-5)


def test_sentences_that_are_read_alike_tie_exactly(made: Made) -> None:
    for kind in KINDS:  # every tokenizer here drops capitals, whether by itself or not
        small, capital = made(kind).embed_texts(["two red buses", "Two RED buses"])
        assert np.array_equal(small, capital)


@pytest.mark.parametrize("kind", KINDS)
def test_long_sentences_are_told_and_no_word_is_unknown(kind: str, made: Made) -> None:
    retriever = made(kind)
    assert isinstance(retriever, ClipRetriever)
    name = "CLIP" if kind == "clip" else "SigLIP"
    told = f"1 sentence was cut at the {LONGEST} tokens that the {name} model reads"
    assert retriever.notes(TEXTS) == [told]
    assert retriever.notes(TEXTS[:4]) == retriever.notes([]) == []
    assert list(retriever.unknown_words("zyx 😀 qqq")) == []


def test_a_bad_file_gives_its_error_in_its_place(
    made: Made, pictures: tuple[Path, ...], tmp_path: Path
) -> None:
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"no picture")
    earlier = TellapartError("lost before", hint="find it")
    first, second, third, fourth = made("clip").place([pictures[0], bad, earlier, pictures[1]])
    assert isinstance(second, TellapartError)
    assert "bad.png is not a picture" in second.problem
    assert third is earlier
    assert not isinstance(first, TellapartError)
    assert not isinstance(fourth, TellapartError)
    assert (first.path, fourth.path) == pictures[:2]
    assert np.array_equal(np.stack([first.vector, fourth.vector]), made("clip").embed_images(pictures[:2]))
    with pytest.raises(TellapartError, match=r"bad\.png is not a picture"):
        made("clip").embed_images([pictures[0], bad])


def test_pictures_are_seen_once_and_kept_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = save_clip(tmp_path / "tiny", seed=11)
    retriever = load_clip(str(folder))
    assert isinstance(retriever, ClipRetriever)
    assert isinstance(retriever.sight, Encoder)
    pictures = draw_pictures(tmp_path)
    fresh = retriever.embed_images(pictures)
    moved = shutil.copy(pictures[0], tmp_path / "moved.png")
    with torch.no_grad():  # whoever looked again would see something else
        for parameter in retriever.model.network.parameters():
            parameter.zero_()
    assert np.array_equal(retriever.embed_images([*pictures, moved]), fresh[[0, 1, 2, 0]])
    same = load_clip(str(folder))
    assert np.array_equal(same.embed_images(pictures), fresh)
    monkeypatch.setenv("TELLAPART_CACHE", str(tmp_path / "elsewhere"))
    assert np.array_equal(same.embed_images(pictures), fresh)


def test_identity_is_the_content_whatever_the_folder_is_called(tmp_path: Path) -> None:
    one = save_clip(tmp_path / "one")
    identity = load_clip(str(one)).identity
    assert identity.startswith("clip@")
    assert len(identity) == len("clip@") + 16
    shutil.copytree(one, tmp_path / "two")
    assert load_clip(str(tmp_path / "two")).identity == identity
    assert load_clip(str(one)).name == f"clip:{one}"
    darker = CLIP_PIXELS | {"image_mean": [0.4, 0.4, 0.4]}
    others = [save_clip(tmp_path / "weights", seed=4), save_clip(tmp_path / "pixels", preprocessing=darker)]
    spelling = shutil.copytree(one, tmp_path / "spelling")
    (spelling / "merges.txt").write_text("#version: 0.2\na b</w>\n")
    numbers = json.loads((spelling / "vocab.json").read_text())
    numbers["ab</w>"] = numbers.pop("!")
    (spelling / "vocab.json").write_text(json.dumps(numbers))
    activation = shutil.copytree(one, tmp_path / "activation")
    content = json.loads((activation / "config.json").read_text())
    content["text_config"]["hidden_act"] = "gelu"
    (activation / "config.json").write_text(json.dumps(content))
    found = {load_clip(str(folder)).identity for folder in (*others, spelling, activation)}
    assert len(found | {identity}) == 5


def test_each_name_has_its_family(made: Made, tmp_path: Path) -> None:
    clip, siglip = made("clip").name, made("siglip2").name
    assert clip.startswith("clip:")
    assert siglip.startswith("siglip:")
    with pytest.raises(TellapartError, match="a model of type siglip2, not CLIP") as refused:
        load_clip(siglip.removeprefix("siglip:"))
    assert "siglip:" in refused.value.hint
    with pytest.raises(TellapartError, match="a model of type clip, not SigLIP"):
        load_siglip(clip.removeprefix("clip:"))
    with pytest.raises(TellapartError, match="there is no folder"):
        load_siglip(str(tmp_path / "nowhere"))
