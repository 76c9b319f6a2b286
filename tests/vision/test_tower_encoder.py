"""The eyes of a captioning checkpoint give what its text decoder is shown, and pixels as its files say."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from tests.captioners.pretrained import checkpoints

from tellapart.captioners.folder import build_captioner
from tellapart.captioners.parts import CAPTIONERS
from tellapart.corpus import as_vision
from tellapart.decoding.search import beam
from tellapart.errors import TellapartError
from tellapart.types import Vision
from tellapart.vision.cache import FeatureCache
from tellapart.vision.encoder import Encoder, traits_of
from tellapart.vision.features import stack
from tellapart.vision.looking import Seen, look
from tellapart.vision.parts import load_encoder

transformers: Any = import_module("transformers")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    transformers.utils.logging.disable_progress_bar()

    @cache
    def write(kind: str) -> Path:
        return checkpoints.write_tiny(kind, tmp_path_factory.mktemp("towers") / kind)

    return write


def photograph(seed: int = 1) -> Image.Image:
    """Wider than high, and different everywhere."""
    noise = np.random.default_rng(seed).integers(0, 256, (9, 14, 3), dtype=np.uint8)
    return Image.fromarray(noise).resize((140, 90), Image.Resampling.BICUBIC)


def shown(kind: str, model: Any, pixels: torch.Tensor) -> torch.Tensor:
    """By the library's own words, what its decoder attends to or begins with."""
    found: torch.Tensor
    with torch.inference_mode():
        if kind == "blip":
            found = model(pixel_values=pixels, input_ids=torch.tensor([[1]])).image_embeds
        elif kind == "git":
            found = model.git.image_encoder(pixels).last_hidden_state
        elif kind == "vit-gpt2":
            found = model(
                pixel_values=pixels, decoder_input_ids=torch.tensor([[1]])
            ).encoder_last_hidden_state
        elif kind == "blip2":
            found = model.get_image_features(pixel_values=pixels).pooler_output
        else:
            pixels = pixels.unsqueeze(1) if kind == "smolvlm" else pixels
            found = torch.stack(list(model.get_image_features(pixel_values=pixels).pooler_output))
    return found


@pytest.mark.parametrize(
    ("kind", "loader", "shape"),
    [
        ("blip", "BlipForConditionalGeneration", (5, 16)),
        ("git", "GitForCausalLM", (5, 16)),
        ("vit-gpt2", "VisionEncoderDecoderModel", (5, 16)),
        ("blip2", "Blip2ForConditionalGeneration", (5, 16)),
        ("image-text", "LlavaForConditionalGeneration", (4, 16)),
        ("smolvlm", "Idefics3ForConditionalGeneration", (4, 16)),
    ],
)
def test_the_grid_is_what_the_decoder_is_shown(
    kind: str, loader: str, shape: tuple[int, int], folder: Callable[[str], Path]
) -> None:
    encoder = load_encoder(f"tower:{folder(kind)}")
    assert isinstance(encoder, Encoder)
    pixels = encoder.prepare(photograph())[None]
    features = encoder.encode(pixels)
    model = getattr(transformers, loader).from_pretrained(folder(kind)).eval()
    expected = shown(kind, model, torch.from_numpy(pixels))
    assert encoder.shapes == {"grid": shape, "pooled": (16,), "classes": (0,)}
    assert features.grid.dtype == np.float16
    assert np.allclose(features.grid, expected.numpy(), atol=2e-3, rtol=2e-3)
    assert np.allclose(features.pooled, expected.mean(1).numpy(), atol=2e-3, rtol=2e-3)


@pytest.mark.parametrize("resample", [Image.Resampling.BICUBIC, Image.Resampling.BILINEAR])
def test_pixels_are_prepared_as_the_library_prepares_them(
    resample: int, folder: Callable[[str], Path], tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(folder("blip"), tmp_path / "copy"))
    settings = json.loads((copy / "preprocessor_config.json").read_text())
    (copy / "preprocessor_config.json").write_text(json.dumps({**settings, "resample": int(resample)}))
    theirs = transformers.BlipImageProcessorPil.from_pretrained(copy)(photograph(), return_tensors="np")
    ours = load_encoder(f"pixels:{copy}").prepare(photograph())
    assert np.allclose(ours, theirs["pixel_values"][0], atol=1e-5)


MIDDLE = {
    "do_center_crop": True,
    "size": {"shortest_edge": 20},
    "crop_size": {"height": 16, "width": 16},
}


@pytest.mark.parametrize(
    ("kind", "processor", "changes"),
    [
        ("git", "CLIPImageProcessorPil", MIDDLE),
        ("git", "CLIPImageProcessorPil", {"size": 20, "crop_size": 16, "do_center_crop": True}),
        ("git", "CLIPImageProcessorPil", {**MIDDLE, "size": {"height": 18, "width": 24}}),
        ("git", "CLIPImageProcessorPil", {**MIDDLE, "size": {"shortest_edge": 12}}),  # less than is cut out
        ("vit-gpt2", "ViTImageProcessorPil", {"size": 16, "resample": 2}),
        ("vit-gpt2", "DeiTImageProcessorPil", {**MIDDLE, "size": {"height": 20, "width": 20}}),
        ("blip2", "BlipImageProcessorPil", {}),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_pixels_are_resized_and_cut_as_the_checkpoints_processor_does(
    kind: str,
    processor: str,
    changes: dict[str, Any],
    turned: bool,
    folder: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    copy = Path(shutil.copytree(folder(kind), tmp_path / "copy"))
    settings = json.loads((copy / "preprocessor_config.json").read_text())
    (copy / "preprocessor_config.json").write_text(json.dumps({**settings, **changes}))
    picture = photograph().transpose(Image.Transpose.ROTATE_90) if turned else photograph()
    theirs = getattr(transformers, processor).from_pretrained(copy)(picture, return_tensors="np")
    ours = load_encoder(f"pixels:{copy}").prepare(picture)
    assert np.allclose(ours, theirs["pixel_values"][0], atol=1e-5)


def test_clips_own_processor_cuts_where_its_file_does_not_say(
    folder: Callable[[str], Path], tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(folder("git"), tmp_path / "copy"))
    silent = {key: value for key, value in MIDDLE.items() if key != "do_center_crop"}
    settings = json.loads((copy / "preprocessor_config.json").read_text())
    named = {**settings, **silent, "image_processor_type": "CLIPImageProcessor"}
    (copy / "preprocessor_config.json").write_text(json.dumps(named))
    theirs = transformers.CLIPImageProcessorPil.from_pretrained(copy)(photograph(), return_tensors="np")
    ours = load_encoder(f"pixels:{copy}").prepare(photograph())
    assert np.allclose(ours, theirs["pixel_values"][0], atol=1e-5)


def test_an_image_text_model_is_shown_what_its_own_processor_cuts_out(
    folder: Callable[[str], Path], tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(folder("image-text"), tmp_path / "copy"))
    processor = transformers.AutoProcessor.from_pretrained(copy)
    processor.image_processor = transformers.CLIPImageProcessorPil(**MIDDLE)
    processor.save_pretrained(copy)
    theirs = processor.image_processor(photograph(), return_tensors="np")["pixel_values"][0]
    assert np.allclose(load_encoder(f"pixels:{copy}").prepare(photograph()), theirs, atol=1e-5)


def test_only_pixels(folder: Callable[[str], Path]) -> None:
    encoder = load_encoder(f"pixels:{folder('blip')}")
    assert encoder.shapes == {"grid": (3, 256), "pooled": (0,), "classes": (0,)}
    pixels = encoder.prepare(photograph())
    grid = encoder.encode(pixels[None]).grid
    assert np.allclose(grid[0].reshape(3, 16, 16), pixels, atol=2e-3)


def test_identity_follows_tower_and_pixels_but_neither_decoder_nor_place(
    folder: Callable[[str], Path], tmp_path: Path
) -> None:
    from safetensors.torch import load_file, save_file

    here = load_encoder(f"tower:{folder('blip')}").identity
    copy = Path(shutil.copytree(folder("blip"), tmp_path / "blip"))
    assert here.startswith("tower:blip-")
    assert load_encoder(f"tower:{copy}").identity == here
    weights = load_file(copy / "model.safetensors")

    def identity_with(part: str) -> str:
        changed = {
            name: weight + 0.1 if name.startswith(part) else weight for name, weight in weights.items()
        }
        save_file(changed, copy / "model.safetensors", metadata={"format": "pt"})
        return load_encoder(f"tower:{copy}").identity

    assert identity_with("text_decoder.") == here
    assert identity_with("vision_model.post_layernorm") != here
    assert load_encoder(f"pixels:{copy}").identity.startswith("pixels:blip-")


def test_a_checkpoint_without_a_picture_size_is_refused(
    folder: Callable[[str], Path], tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(folder("blip"), tmp_path / "copy"))
    (copy / "preprocessor_config.json").write_text('{"image_mean": [0.5, 0.5, 0.5], "image_std": [1, 1, 1]}')
    with pytest.raises(TellapartError, match="does not say how large its pictures are"):
        load_encoder(f"tower:{copy}")


@pytest.mark.parametrize("size", [{"height": 24, "width": 24}])
def test_pictures_of_a_size_that_the_tower_cannot_see_are_refused(
    size: dict[str, int], folder: Callable[[str], Path], tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(folder("git"), tmp_path / "copy"))
    settings = json.loads((copy / "preprocessor_config.json").read_text())
    (copy / "preprocessor_config.json").write_text(json.dumps({**settings, "size": size}))
    with pytest.raises(
        TellapartError, match=r"cannot look at pictures of 24x24 pixels.*Input image size \(24\*24\)"
    ):
        load_encoder(f"tower:{copy}")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("image_mean", [0.5, 0.5]), ("image_mean", "0.5"), ("image_mean", [0.5, "a", 0.5]),
        ("image_std", [0.2, 0.0, 0.2]), ("image_std", 3), ("resample", 77), ("resample", "bicubic"),
        ("rescale_factor", 0), ("rescale_factor", "1/255"), ("size", {"height": 16, "width": "16"}),
        ("size", {"height": -16, "width": 16}), ("size", {"shortest_edge": 16.5}),
    ],
)  # fmt: skip
def test_settings_of_pictures_that_make_no_sense_are_named(
    key: str, value: object, folder: Callable[[str], Path], tmp_path: Path
) -> None:
    copy = Path(shutil.copytree(folder("blip"), tmp_path / "copy"))
    settings = json.loads((copy / "preprocessor_config.json").read_text())
    (copy / "preprocessor_config.json").write_text(json.dumps({**settings, key: value}))
    with pytest.raises(TellapartError, match=rf": {key} is ") as caught:
        load_encoder(f"tower:{copy}")
    assert caught.value.hint.startswith("copy preprocessor_config.json again")


def test_captions_through_the_cache(folder: Callable[[str], Path], tmp_path: Path) -> None:
    """Features are halved in the cache: captions stay, and their probabilities to three digits."""
    encoder = load_encoder(f"tower:{folder('git')}")
    part = CAPTIONERS.get("git")
    config = part.configure({"checkpoint": str(folder("git"))})
    captioner = build_captioner("git", config, text=None, traits=traits_of(encoder)).eval()
    paths = []
    for seed in range(3):
        paths.append(tmp_path / f"{seed}.png")
        photograph(seed).save(paths[-1])
    store = FeatureCache(tmp_path / "cache", encoder)

    def seen() -> list[Seen]:
        found = list(look(paths, encoder, parts=["grid"], cache=store))
        assert all(isinstance(each, Seen) for each in found)
        return [each for each in found if isinstance(each, Seen)]

    fresh, cached = seen(), seen()
    model = transformers.GitForCausalLM.from_pretrained(folder("git")).eval()
    pixels = torch.from_numpy(np.stack([encoder.prepare(photograph(seed)) for seed in range(3)]))
    with torch.inference_mode():
        grid = model.git.image_encoder(pixels).last_hidden_state
    exact = Vision(grid, torch.zeros(3, 0), torch.zeros(3, 0))
    again = [as_vision(stack([each.features for each in some])) for some in (fresh, cached)]
    assert torch.equal(again[0].grid, again[1].grid)
    best = [beam(captioner, vision, width=3, max_words=6) for vision in (exact, *again)]
    assert torch.equal(best[1].tokens, best[2].tokens)
    assert torch.equal(best[0].tokens[:, 0], best[1].tokens[:, 0])
    assert torch.allclose(best[0].log_probabilities[:, 0], best[1].log_probabilities[:, 0], rtol=1e-3)
