"""The feature cache gives back every bit, by the content of the picture and for one encoder only."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import Float32
from PIL import Image
from tests.vision.test_mapped_file import SMAPS, held

from tellapart.errors import TellapartError
from tellapart.vision.cache import FeatureCache, digest_of
from tellapart.vision.encoder import Encoder
from tellapart.vision.features import PARTS, Features
from tellapart.vision.looking import Seen, look
from tellapart.vision.patches import SIDE, Patches

SHAPES = {"grid": (4, 5), "pooled": (6,), "classes": (3,)}
SIZE = sum(2 * int(np.prod(shape)) for shape in SHAPES.values())


class Counting:
    """An encoder that counts the pictures it is shown."""

    name = "counting"
    class_names = ("one", "two", "three")
    size = 8
    batch_size = 1
    threads = 1

    def __init__(self, identity: str = "counting-1", shapes: Mapping[str, tuple[int, ...]] = SHAPES) -> None:
        self.identity = identity
        self.shapes = shapes
        self.encoded = 0

    def prepare(self, picture: Image.Image) -> Float32[np.ndarray, "3 h w"]:
        return np.asarray(picture.resize((8, 8)), np.float32).transpose(2, 0, 1)

    def encode(self, pixels: Float32[np.ndarray, "b 3 h w"]) -> Features:
        self.encoded += len(pixels)
        mean = pixels.mean(axis=(1, 2, 3), dtype=np.float32).astype(np.float16)
        return Features(*(np.stack([np.full(self.shapes[part], m) for m in mean]) for part in PARTS))


def from_bits(bits: bytes) -> Features:
    """Features of one picture with exactly these bits, whatever numbers they make."""
    parts, start = [], 0
    for part in PARTS:
        count = int(np.prod(SHAPES[part]))
        parts.append(np.frombuffer(bits, np.float16, count, start).reshape(1, *SHAPES[part]))
        start += 2 * count
    return Features(*parts)


def bits_of(features: Features) -> bytes:
    return b"".join(getattr(features, part).tobytes() for part in PARTS)


def save_noise(path: Path, seed: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (9, 9, 3), dtype=np.uint8)).save(path)
    return path


@settings(max_examples=30, deadline=None)
@given(bits=st.lists(st.binary(min_size=SIZE, max_size=SIZE), min_size=1, max_size=4, unique=True))
def test_every_bit_comes_back(tmp_path_factory: pytest.TempPathFactory, bits: list[bytes]) -> None:
    cache = FeatureCache(tmp_path_factory.getbasetemp(), Counting())
    pictures = {digest_of(some): from_bits(some) for some in bits}
    cache.write(pictures, PARTS)
    together = cache.read(list(pictures), PARTS)
    for row, some in enumerate(bits):
        assert bits_of(cache.read([digest_of(some)], PARTS)) == some
        assert bits_of(together.row(row)) == some


def test_parts_that_nobody_asked_for_are_empty(tmp_path: Path) -> None:
    cache = FeatureCache(tmp_path, Counting())
    whole = from_bits(bytes(range(SIZE)))
    cache.write({b"a": whole, b"b": whole}, PARTS)
    kept = cache.read([b"a", b"b"], ("pooled",))
    assert kept.pooled.tobytes() == whole.pooled.tobytes() * 2
    assert kept.grid.shape == (2, 0, 5)
    assert kept.classes.shape == (2, 0)


def test_a_part_without_numbers_is_kept_as_well(tmp_path: Path) -> None:
    encoder = Patches()
    assert encoder.shapes["classes"] == (0,)
    cache = FeatureCache(tmp_path, encoder)
    cache.write({b"a": encoder.encode(np.zeros((1, 3, SIDE, SIDE), np.float32))}, PARTS)
    assert cache.holds(b"a", PARTS)
    assert cache.read([b"a"], PARTS).classes.shape == (1, 0)


def test_parts_are_there_when_they_were_written(tmp_path: Path) -> None:
    cache = FeatureCache(tmp_path, Counting())
    cache.write({b"a": from_bits(bytes(SIZE))}, ("pooled", "grid"))
    assert cache.holds(b"a", ("grid",))
    assert cache.holds(b"a", ("grid", "pooled"))
    assert not cache.holds(b"a", ("grid", "classes"))
    assert not cache.holds(b"b", ("grid",))
    with pytest.raises(TellapartError, match="the classes features of a picture are missing"):
        cache.read([b"a"], ("classes",))


def test_features_of_another_shape_are_refused(tmp_path: Path) -> None:
    FeatureCache(tmp_path, Counting()).write({b"a": from_bits(bytes(SIZE))}, PARTS)
    larger = FeatureCache(tmp_path, Counting(shapes={**SHAPES, "pooled": (7,)}))
    with pytest.raises(TellapartError, match="pooled features of a picture are missing or damaged"):
        larger.read([b"a"], PARTS)


def test_the_same_bytes_under_two_names_are_encoded_once(tmp_path: Path) -> None:
    encoder = Counting()
    assert isinstance(encoder, Encoder)
    cache = FeatureCache(tmp_path, encoder)
    first = save_noise(tmp_path / "photos" / "cat.png", 1)
    copy = tmp_path / "elsewhere" / "renamed.jpg"
    copy.parent.mkdir()
    shutil.copy(first, copy)
    other = save_noise(tmp_path / "photos" / "dog.png", 2)
    bits = []
    for path, encoded in ((first, 1), (copy, 1), (other, 2), (first, 2)):
        (seen,) = look([path], encoder, parts=PARTS, cache=cache)
        assert isinstance(seen, Seen)
        assert seen.path == path
        assert encoder.encoded == encoded
        bits.append(bits_of(seen.features))
    assert bits[0] == bits[1] == bits[3] != bits[2]


def test_another_picture_under_the_same_name_is_encoded_anew(tmp_path: Path) -> None:
    encoder = Counting()
    cache = FeatureCache(tmp_path, encoder)
    for seed in (1, 2):
        path = save_noise(tmp_path / "photo.png", seed)
        (seen,) = look([path], encoder, parts=PARTS, cache=cache)
        assert isinstance(seen, Seen)
        assert seen.digest == digest_of(path.read_bytes())
    assert encoder.encoded == 2


def test_two_encoders_never_mix(tmp_path: Path) -> None:
    one, other = (FeatureCache(tmp_path, Counting(name)) for name in ("timm:hub/name-1", "timm:hub/name-2"))
    assert one.path.parent == other.path.parent == (tmp_path / "features").resolve()
    one.write({b"a": from_bits(bytes(SIZE))}, PARTS)
    assert not other.holds(b"a", ("grid",))
    other.write({b"a": from_bits(b"\1" * SIZE)}, PARTS)
    assert bits_of(one.read([b"a"], PARTS)) == bytes(SIZE)
    assert bits_of(other.read([b"a"], PARTS)) == b"\1" * SIZE


def test_two_caches_of_one_encoder_are_the_same_one(tmp_path: Path) -> None:
    one, other = FeatureCache(tmp_path, Counting()), FeatureCache(tmp_path, Counting())
    one.write({b"a": from_bits(bytes(SIZE))}, PARTS)
    assert other.holds(b"a", PARTS)


@pytest.mark.skipif(not SMAPS.exists(), reason="only Linux tells")
def test_what_was_written_and_looked_for_is_not_held_in_memory(tmp_path: Path) -> None:
    cache = FeatureCache(tmp_path, Counting())
    for number in range(40):
        digests = [digest_of(bytes([number, place])) for place in range(50)]
        assert not any(cache.holds(digest, PARTS) for digest in digests)
        cache.write(dict.fromkeys(digests, from_bits(bytes(SIZE))), PARTS)
        assert all(cache.holds(digest, PARTS) for digest in digests)
        assert held(cache.path / "data.mdb") < 50
    assert (cache.path / "data.mdb").stat().st_size > 1_000_000
