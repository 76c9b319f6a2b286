"""CLIPScore and RefCLIPScore are those of the formulas on what transformers' own CLIP sees and reads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.foreign.tiny_clip import CLIP_PIXELS, LONGEST, draw_pictures, open_upright, save_clip, transformers

from tellapart.errors import TellapartError
from tellapart.metrics.clipscore import PREFIX, build_clipscore, load_clip
from tellapart.metrics.embedding_score import (
    clip_scores,
    reference_clip_scores,
    reference_similarities,
    unit_rows,
)
from tellapart.metrics.material import Material, unwatched
from tellapart.metrics.parts import ClipScoreConfig
from tellapart.metrics.score import Score

CAPTIONS = ["a dog", "Two red buses", "ö 😀"]
REFERENCES = [("a cat", "a dog"), ("buses",), ("x", "y", "z")]


@pytest.fixture(scope="module")
def clip_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_clip(tmp_path_factory.mktemp("clip") / "tiny-clip")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    return draw_pictures(tmp_path_factory.mktemp("pictures"))


def material(pictures: tuple[Path, ...], captions: list[str], references: Any = None) -> Material:
    ids = tuple(path.stem for path in pictures)
    return Material(ids, tuple((text,) for text in captions), references, pictures=pictures)


def scored(folder: Path, some: Material) -> list[Score]:
    return build_clipscore(ClipScoreConfig(model=str(folder)))(some)


def read_directly(folder: Path, text: str) -> Any:
    """The library's own text features, a text at a time, cut by its own tokenizer."""
    model = transformers.CLIPModel.from_pretrained(folder).eval()
    tokenizer = transformers.CLIPTokenizer.from_pretrained(folder)
    cut = tokenizer(PREFIX + text, truncation=True, max_length=LONGEST, return_tensors="pt")
    with torch.inference_mode():
        vector = model.get_text_features(**cut).pooler_output[0].double().numpy()
    return vector / np.linalg.norm(vector)


def see_directly(folder: Path, path: Path) -> Any:
    """The library's own image features, prepared by its own processor that needs only Pillow."""
    model = transformers.CLIPModel.from_pretrained(folder).eval()
    processor = transformers.CLIPImageProcessorPil.from_pretrained(folder)
    pixels = processor(open_upright(path), return_tensors="pt")
    with torch.inference_mode():
        vector = model.get_image_features(**pixels).pooler_output[0].double().numpy()
    return vector / np.linalg.norm(vector)


def test_scores_are_the_formulas_on_the_library_s_features(
    clip_folder: Path, pictures: tuple[Path, ...]
) -> None:
    score, with_references = scored(clip_folder, material(pictures, CAPTIONS, tuple(REFERENCES)))
    for row, (caption, path) in enumerate(zip(CAPTIONS, pictures, strict=True)):
        text = read_directly(clip_folder, caption)
        expected = 2.5 * max(float(text @ see_directly(clip_folder, path)), 0.0)
        nearest = max(max(float(text @ read_directly(clip_folder, one)) for one in REFERENCES[row]), 0.0)
        assert score.each is not None
        assert with_references.each is not None
        assert score.each[row] == pytest.approx(expected, abs=1e-5)
        mean = 2 * expected * nearest / (expected + nearest) if expected * nearest else 0.0
        assert with_references.each[row] == pytest.approx(mean, abs=1e-5)
    assert (score.name, with_references.name) == ("CLIPScore", "RefCLIPScore")
    assert score.each is not None
    assert score.corpus == pytest.approx(float(np.mean(score.each)))
    assert (score.each > 0).all()  # or nothing above would mean anything
    assert score.notes == with_references.notes == ()


def test_neighbours_and_order_change_nothing(clip_folder: Path, pictures: tuple[Path, ...]) -> None:
    many = [f"{number} dogs {'x' * (number % 7)}" for number in range(150)]
    paths = tuple(pictures[number % 3] for number in range(150))
    ids = tuple(map(str, range(150)))
    steps: list[tuple[str, int, int]] = []
    whole = Material(
        ids, tuple((text,) for text in many), pictures=paths, watch=lambda *step: steps.append(step)
    )
    (score,) = scored(clip_folder, whole)
    (alone,) = scored(clip_folder, Material(("7",), ((many[7],),), pictures=(paths[7],)))
    assert score.each is not None
    assert score.each[7] == pytest.approx(alone.corpus, abs=1e-5)
    assert ("CLIP: captions", 64, 150) in steps
    assert ("CLIP: captions", 150, 150) in steps
    assert ("CLIP: pictures", 3, 3) in steps


def test_long_texts_are_cut_as_the_library_cuts_them_and_counted(
    clip_folder: Path, pictures: tuple[Path, ...]
) -> None:
    long = "many words " * 2500
    limit = LONGEST - 2 - len("aphotodepicts")
    captions = [long, "x" * limit, "x" * (limit + 1)]
    references = (("a",), (long, long), ("b",))
    score, with_references = scored(clip_folder, material(pictures, captions, references))
    assert score.notes == (f"2 captions were cut at the {LONGEST} tokens that the CLIP model reads",)
    assert with_references.notes == (
        *score.notes,
        f"2 references were cut at the {LONGEST} tokens that the CLIP model reads",
    )
    vectors, _ = load_clip(str(clip_folder)).read(captions, unwatched, what="captions")
    for text, vector in zip(captions, vectors, strict=True):
        assert vector == pytest.approx(read_directly(clip_folder, text), abs=1e-5)


def test_an_empty_caption_is_the_prefix_alone_with_a_note(
    clip_folder: Path, pictures: tuple[Path, ...]
) -> None:
    (score,) = scored(clip_folder, material(pictures, ["", "a dog", " \n"]))
    expected = 2.5 * max(read_directly(clip_folder, "") @ see_directly(clip_folder, pictures[0]), 0.0)
    assert score.each is not None
    assert score.each[0] == pytest.approx(expected, abs=1e-5)
    assert expected > 0
    assert score.notes == ('2 captions are empty: their CLIPScore is that of "A photo depicts" alone',)


def test_the_signature_names_what_the_number_depends_on(
    clip_folder: Path, pictures: tuple[Path, ...], tmp_path: Path
) -> None:
    score, with_references = scored(clip_folder, material(pictures, CAPTIONS, tuple(REFERENCES)))
    shape = r"model:tiny-clip@\w{8}\|prefix:A photo depicts\|weight:2\.5\|cut:40"
    assert re.fullmatch(shape, score.signature)
    assert with_references.signature == f"{score.signature}|references:1-3"
    same = save_clip(tmp_path / "elsewhere" / "tiny-clip")
    assert load_clip(str(same)).identity == load_clip(str(clip_folder)).identity
    other = save_clip(tmp_path / "tiny-clip", seed=1)
    assert load_clip(str(other)).identity != load_clip(str(clip_folder)).identity
    squeezed = CLIP_PIXELS | {"size": {"height": 32, "width": 32}}
    changed = save_clip(tmp_path / "again" / "tiny-clip", preprocessing=squeezed)
    assert load_clip(str(changed)).identity != load_clip(str(clip_folder)).identity


def test_what_is_missing_is_told(clip_folder: Path, pictures: tuple[Path, ...], tmp_path: Path) -> None:
    some = material(pictures, CAPTIONS)
    with pytest.raises(TellapartError, match="needs a CLIP model") as refused:
        build_clipscore(ClipScoreConfig())(some)
    assert "--clip" in refused.value.hint
    with pytest.raises(TellapartError, match="needs the pictures"):
        scored(clip_folder, Material(("1",), (("a dog",),)))
    with pytest.raises(TellapartError, match="there is no folder /no/such"):
        scored(Path("/no/such"), some)
    with pytest.raises(TellapartError, match=r"has no config\.json"):
        scored(tmp_path, some)
    lost = material((*pictures[:2], tmp_path / "lost.png"), CAPTIONS)
    with pytest.raises(TellapartError, match=r"lost\.png does not exist"):
        scored(clip_folder, lost)


def test_another_kind_of_model_is_refused(tmp_path: Path) -> None:
    config = transformers.GPT2Config(vocab_size=9, n_embd=8, n_layer=1, n_head=1)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path)
    with pytest.raises(TellapartError, match="a model of type gpt2, not CLIP"):
        load_clip(str(tmp_path))


def test_broken_weights_are_an_error_not_a_number(tmp_path: Path, pictures: tuple[Path, ...]) -> None:
    folder = save_clip(tmp_path / "clip")
    model = transformers.CLIPModel.from_pretrained(folder)
    with torch.no_grad():
        model.visual_projection.weight[0, 0] = torch.nan
    model.save_pretrained(folder)
    with pytest.raises(TellapartError, match="not finite"):
        scored(folder, material(pictures, CAPTIONS))


def test_formulas_by_hand() -> None:
    captions = np.array([[1.0, 0.0], [0.6, 0.8], [1.0, 0.0], [0.0, 1.0]])
    images = np.array([[0.6, 0.8], [0.6, 0.8], [-1.0, 0.0], [1.0, 0.0]])
    scores = clip_scores(captions, images)
    assert scores == pytest.approx([1.5, 2.5, 0.0, 0.0])
    references = np.array([[0.8, 0.6], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    nearest = reference_similarities(captions, references, np.array([0, 0, 1, 2, 3]))
    assert nearest == pytest.approx([0.8, 0.6, 0.0, 0.0])
    # 2 · 1.5 · 0.8 / (1.5 + 0.8) and 2 · 2.5 · 0.6 / (2.5 + 0.6)
    assert reference_clip_scores(scores, nearest) == pytest.approx([2.4 / 2.3, 3.0 / 3.1, 0.0, 0.0])


def test_rows_of_any_length_become_unit_rows() -> None:
    rows = unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]], dtype=np.float32))
    assert rows == pytest.approx(np.array([[0.6, 0.8], [0.0, 0.0]]))
    assert rows.dtype == np.float64


vectors = arrays(np.float64, (6, 3), elements=st.floats(-1, 1))


@given(vectors, vectors, vectors)
def test_laws_of_the_formulas(first: Any, second: Any, third: Any) -> None:
    captions, images, references = unit_rows(first), unit_rows(second), unit_rows(third)
    scores = clip_scores(captions, images)
    assert ((scores >= 0) & (scores <= 2.5 + 1e-9)).all()
    assert clip_scores(captions, captions) == pytest.approx(2.5 * np.any(captions != 0, axis=1))
    nearest = reference_similarities(captions, references, np.arange(6))
    both = reference_clip_scores(scores, nearest)
    assert (both <= np.maximum(scores, nearest) + 1e-9).all()
    assert (both >= np.minimum(scores, nearest) - 1e-9).all()
    more = np.concatenate([references, captions])
    nearer = reference_similarities(captions, more, np.tile(np.arange(6), 2))
    assert (nearer >= nearest).all()
    backwards = reference_similarities(captions[::-1], references[::-1], np.arange(6))
    assert backwards[::-1] == pytest.approx(nearest)
