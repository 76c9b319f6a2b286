"""Vision towers of transformers give the features that transformers itself would give."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tellapart.vision.encoder import Encoder
from tellapart.vision.extras import build_transformers

transformers: Any = import_module("transformers")  # its own types are too partial to check against

TINY = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 32,
    "patch_size": 8,
}
TOWER = {**TINY, "intermediate_size": 64}
TEXT = {
    "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
    "vocab_size": 99, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "sep_token_id": 2,
}  # fmt: skip
MEAN, STD = [0.48, 0.46, 0.41], [0.27, 0.26, 0.28]
PREPROCESSING: dict[str, Any] = {
    "size": {"height": 32, "width": 32}, "image_mean": MEAN, "image_std": STD, "rescale_factor": 1 / 255,
}  # fmt: skip


def photograph() -> Image.Image:
    """Wider than high, and different everywhere."""
    noise = np.random.default_rng(1).integers(0, 256, (9, 14, 3), dtype=np.uint8)
    return Image.fromarray(noise).resize((140, 90), Image.Resampling.BICUBIC)


def save(model: Any, folder: Path, preprocessing: object = PREPROCESSING) -> Path:
    model.eval().save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(preprocessing))
    return folder


def as_the_library_is_fed(picture: Image.Image) -> torch.Tensor:
    values = np.asarray(picture.resize((32, 32), Image.Resampling.BICUBIC)) / 255
    normal = (values - np.array(MEAN)) / np.array(STD)
    return torch.tensor(normal.transpose(2, 0, 1)[None], dtype=torch.float32)


@dataclass(frozen=True, slots=True)
class Kind:
    """A model, the part of it that sees, and the tokens before those of the patches."""

    model: Any
    tower: Any
    extra_tokens: int


def clip_vision() -> Kind:
    model = transformers.CLIPVisionModel(transformers.CLIPVisionConfig(**TOWER))
    return Kind(model, model, 1)


def clip() -> Kind:
    model = transformers.CLIPModel(transformers.CLIPConfig(text_config=TEXT, vision_config=TOWER))
    return Kind(model, model.vision_model, 1)


def siglip() -> Kind:
    model = transformers.SiglipVisionModel(transformers.SiglipVisionConfig(**TOWER))
    return Kind(model, model, 0)


def dino_with_registers() -> Kind:
    config = transformers.Dinov2WithRegistersConfig(**TINY, num_register_tokens=4)
    model = transformers.Dinov2WithRegistersModel(config)
    return Kind(model, model, 5)


def blip_captioner() -> Kind:
    config = transformers.BlipConfig(text_config=TEXT, vision_config=TOWER)
    model = transformers.BlipForConditionalGeneration(config)
    return Kind(model, model.vision_model, 1)


def vit_without_names() -> Kind:
    model = transformers.ViTForImageClassification(transformers.ViTConfig(**TOWER, num_labels=3))
    return Kind(model, model.vit, 1)


KINDS = [clip_vision, clip, siglip, dino_with_registers, blip_captioner, vit_without_names]


def encode(encoder: Encoder, picture: Image.Image) -> Any:
    return encoder.encode(encoder.prepare(picture)[None])


def close(ours: np.ndarray, theirs: torch.Tensor) -> bool:
    assert ours.dtype == np.float16
    return np.allclose(ours, theirs.numpy(), atol=2e-3, rtol=2e-3)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_features_are_those_of_the_library(kind: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    made: Kind = kind()
    encoder = build_transformers(str(save(made.model, tmp_path / "tiny")))
    features = encode(encoder, photograph())
    with torch.inference_mode():
        expected = made.tower(pixel_values=as_the_library_is_fed(photograph()))
    grid = expected.last_hidden_state[:, made.extra_tokens :]
    pooled = grid.mean(1) if expected.get("pooler_output") is None else expected.pooler_output
    assert grid.shape == (1, 16, 32)
    assert close(features.grid, grid)
    assert close(features.pooled, pooled)
    assert features.classes.shape == (1, 0)
    assert encoder.class_names == ()
    assert encoder.shapes == {"grid": (16, 32), "pooled": (32,), "classes": (0,)}


@pytest.fixture
def classifier(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    names = {0: "cat", 1: "dog", 2: "bus"}
    config = transformers.ViTConfig(**TOWER, id2label=names, label2id={name: i for i, name in names.items()})
    return save(transformers.ViTForImageClassification(config), tmp_path / "classifier")


def test_a_classifier_gives_its_classes_and_their_names(classifier: Path) -> None:
    encoder = build_transformers(str(classifier))
    features = encode(encoder, photograph())
    model = transformers.ViTForImageClassification.from_pretrained(classifier)
    with torch.inference_mode():
        logits = model(pixel_values=as_the_library_is_fed(photograph())).logits
        states = model.vit(pixel_values=as_the_library_is_fed(photograph())).last_hidden_state
    assert encoder.class_names == ("cat", "dog", "bus")
    assert close(features.classes, logits.softmax(-1))
    assert close(features.grid, states[:, 1:])
    assert encoder.shapes["classes"] == (3,)


def test_a_convolutional_map_is_read_row_by_row(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1])
    model = transformers.ResNetModel(config)
    features = encode(build_transformers(str(save(model, tmp_path / "tiny"))), photograph())
    with torch.inference_mode():
        expected = model(pixel_values=as_the_library_is_fed(photograph()))
    assert close(features.grid[:, 6], expected.last_hidden_state[:, :, 1, 2])
    assert close(features.pooled, expected.pooler_output[:, :, 0, 0])


def test_it_is_an_encoder_with_a_name_and_an_identity(tmp_path: Path) -> None:
    torch.manual_seed(0)
    made = clip_vision()
    encoder = build_transformers(str(save(made.model, tmp_path / "tiny")))
    assert isinstance(encoder, Encoder)
    assert encoder.name == f"transformers:{tmp_path / 'tiny'}"
    assert encoder.identity.startswith("transformers:tiny-")
    assert len(encoder.identity) == len("transformers:tiny-") + 16
    assert encoder.size == 32


def test_identity_follows_weights_and_preprocessing_but_not_the_place(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = clip_vision().model
    same = [build_transformers(str(save(model, tmp_path / place / "tiny"))).identity for place in "ab"]
    darker = {**PREPROCESSING, "image_mean": [0.5, 0.5, 0.5]}
    other_pixels = build_transformers(str(save(model, tmp_path / "c" / "tiny", darker))).identity
    model.config.hidden_act = "gelu"
    other_config = build_transformers(str(save(model, tmp_path / "d" / "tiny"))).identity
    model.config.hidden_act = "quick_gelu"
    model.post_layernorm.bias.data[3] += 1e-3
    other_weights = build_transformers(str(save(model, tmp_path / "e" / "tiny"))).identity
    assert same[0] == same[1]
    assert len({same[0], other_pixels, other_config, other_weights}) == 4


@pytest.mark.parametrize(
    ("settings", "shape"),
    [
        ({**PREPROCESSING, "size": 32}, (3, 32, 32)),
        ({**PREPROCESSING, "size": {"shortest_edge": 32}}, (3, 32, 32)),
        (
            {**PREPROCESSING, "size": {"shortest_edge": 40}, "crop_size": {"height": 32, "width": 32},
             "do_center_crop": True},
            (3, 32, 32),
        ),
        ({**PREPROCESSING, "crop_size": {"height": 16, "width": 16}, "do_center_crop": False}, (3, 32, 32)),
    ],
)  # fmt: skip
def test_the_size_is_read_however_it_is_written(
    settings: object, shape: tuple[int, ...], tmp_path: Path
) -> None:
    encoder = build_transformers(str(save(clip_vision().model, tmp_path / "tiny", settings)))
    assert encoder.prepare(photograph()).shape == shape


def test_pixels_are_left_alone_where_the_checkpoint_says_so(tmp_path: Path) -> None:
    settings = {**PREPROCESSING, "do_rescale": False, "do_normalize": False}
    encoder = build_transformers(str(save(clip_vision().model, tmp_path / "tiny", settings)))
    assert encoder.prepare(Image.new("RGB", (9, 9), (7, 8, 9)))[:, 0, 0].tolist() == [7, 8, 9]


def test_the_newer_processor_file_is_read_too(tmp_path: Path) -> None:
    folder = save(clip_vision().model, tmp_path / "tiny")
    before = build_transformers(str(folder)).identity
    (folder / "preprocessor_config.json").unlink()
    (folder / "processor_config.json").write_text(json.dumps({"image_processor": PREPROCESSING}))
    assert build_transformers(str(folder)).identity == before


def test_threads_do_not_mix_their_pictures(classifier: Path) -> None:
    encoder = build_transformers(str(classifier))
    pictures = [Image.new("RGB", (32, 32), (shade, 255 - shade, 90)) for shade in range(0, 240, 10)]
    alone = [encode(encoder, picture) for picture in pictures]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(lambda picture: encode(encoder, picture), pictures * 3))
    for one, other in zip(alone * 3, together, strict=True):
        assert np.array_equal(one.grid, other.grid)
        assert np.array_equal(one.classes, other.classes)


def test_huge_activations_stay_finite(tmp_path: Path) -> None:
    model = clip_vision().model
    model.post_layernorm.bias.data[0] = 1e6
    features = encode(build_transformers(str(save(model, tmp_path / "tiny"))), photograph())
    assert features.pooled[0, 0] == np.float16(65504)
