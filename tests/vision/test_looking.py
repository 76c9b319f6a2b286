"""Looking at files: in order, in parallel, past bad files, from the cache, and stopped at any moment."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import Float32
from PIL import Image

from tellapart.data.images import read_picture
from tellapart.errors import TellapartError
from tellapart.vision.cache import FeatureCache, digest_of
from tellapart.vision.encoder import Encoder
from tellapart.vision.features import PARTS, Features
from tellapart.vision.looking import WRITE_EVERY, Seen, look
from tellapart.vision.patches import Patches


class Watched:
    """Raw pixels by an encoder that remembers its calls, and first does what a test wants of it."""

    name = "watched"
    identity = "watched-1"
    class_names = ()
    shapes: Mapping[str, tuple[int, ...]] = Patches().shapes
    size = Patches().size

    def __init__(
        self, *, batch_size: int = 3, threads: int = 2, first: Callable[[int], object] = lambda call: None
    ) -> None:
        self.batch_size = batch_size
        self.threads = threads
        self.first = first
        self.prepared = 0
        self.batches: list[int] = []
        self._lock = threading.Lock()

    def prepare(self, picture: Image.Image) -> Float32[np.ndarray, "3 h w"]:
        with self._lock:
            self.prepared += 1
        return Patches().prepare(picture)

    def encode(self, pixels: Float32[np.ndarray, "b 3 h w"]) -> Features:
        with self._lock:
            self.batches.append(len(pixels))
            call = len(self.batches)
        self.first(call)
        return Patches().encode(pixels)

    @property
    def encoded(self) -> int:
        return sum(self.batches)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Path]:
    """More pictures than one transaction takes, no two alike."""
    folder = tmp_path_factory.mktemp("pictures")
    chance = np.random.default_rng(0)
    paths = [folder / f"{number}.png" for number in range(WRITE_EVERY + 20)]
    for path in paths:
        Image.fromarray(chance.integers(0, 256, (11, 7, 3), dtype=np.uint8)).save(path)
    return paths


@pytest.fixture(scope="module")
def bad(
    tmp_path_factory: pytest.TempPathFactory, pictures: Sequence[Path]
) -> Sequence[Path | TellapartError]:
    """Everything that can stand in a picture's place."""
    folder = tmp_path_factory.mktemp("bad")
    (folder / "empty.jpg").touch()
    (folder / "words.jpg").write_text("these are words")
    (folder / "cut.png").write_bytes(pictures[0].read_bytes()[:-30])
    (folder / "folder.png").mkdir()
    names = ("empty.jpg", "words.jpg", "cut.png", "folder.png", "missing.png")
    return [*(folder / name for name in names), TellapartError("found no pictures", hint="look elsewhere")]


def bits_of(features: Features) -> bytes:
    return b"".join(getattr(features, part).tobytes() for part in PARTS)


def alone(path: Path) -> bytes:
    """What the picture's features are when nothing else is going on."""
    encoder = Patches()
    return bits_of(encoder.encode(encoder.prepare(read_picture(path, at_least=encoder.size))[None]))


def seen_in(results: Iterator[Seen | TellapartError]) -> list[Seen]:
    found = list(results)
    good = [result for result in found if isinstance(result, Seen)]
    assert len(good) == len(found), found
    return good


def held(cache: FeatureCache, paths: Sequence[Path]) -> int:
    return sum(cache.holds(digest_of(path.read_bytes()), PARTS) for path in paths)


@pytest.mark.parametrize("cached", [False, True])
def test_results_stand_in_the_order_of_files_whichever_is_ready_first(
    pictures: Sequence[Path], tmp_path: Path, cached: bool
) -> None:
    encoder = Watched(first=lambda call: time.sleep(0.04 if call % 2 else 0))
    assert isinstance(encoder, Encoder)
    cache = FeatureCache(tmp_path, encoder) if cached else None
    seen = seen_in(look(pictures[:20], encoder, parts=PARTS, cache=cache))
    assert [one.path for one in seen] == pictures[:20]
    assert [one.digest for one in seen] == [digest_of(path.read_bytes()) for path in pictures[:20]]
    assert [bits_of(one.features) for one in seen] == [alone(path) for path in pictures[:20]]
    assert sorted(encoder.batches) == [2, 3, 3, 3, 3, 3, 3]


def test_as_many_calls_run_at_once_as_the_encoder_wants(pictures: Sequence[Path]) -> None:
    both = threading.Barrier(2, timeout=30)  # broken, and the test with it, unless two calls meet
    encoder = Watched(first=lambda call: both.wait())
    assert len(seen_in(look(pictures[:12], encoder, parts=PARTS, cache=None))) == 12


def test_a_bad_file_gives_its_error_in_its_place(
    pictures: Sequence[Path], bad: Sequence[Path | TellapartError], tmp_path: Path
) -> None:
    encoder = Watched()
    paths = [entry for pair in zip(pictures, bad, strict=False) for entry in pair]
    cache = FeatureCache(tmp_path, encoder)
    for _ in range(2):
        results = list(look(paths, encoder, parts=PARTS, cache=cache))
        assert seen_in(iter(results[::2])) == results[::2]
        assert [one.path for one in results[::2] if isinstance(one, Seen)] == pictures[: len(bad)]
        said = [error.problem for error in results[1::2] if isinstance(error, TellapartError)]
        expected = (
            "is empty",
            "is not a picture",
            "damaged or cut short",
            "is a folder",
            "does not exist",
            "found no",
        )
        assert len(said) == len(bad)
        assert all(words in problem for words, problem in zip(expected, said, strict=True))
        assert results[-1] is bad[-1]
    assert encoder.encoded == len(bad)


@settings(max_examples=30, deadline=None)
@given(
    choice=st.lists(st.integers(-6, 19), max_size=30),
    batch_size=st.integers(1, 4),
    threads=st.integers(1, 3),
)
def test_any_mixture_of_good_and_bad_keeps_its_order(
    pictures: Sequence[Path],
    bad: Sequence[Path | TellapartError],
    choice: list[int],
    batch_size: int,
    threads: int,
) -> None:
    paths = [pictures[number] if number >= 0 else bad[number] for number in choice]
    encoder = Watched(batch_size=batch_size, threads=threads)
    results = list(look(iter(paths), encoder, parts=("pooled",), cache=None))
    good = [number >= 0 for number in choice]
    assert [isinstance(result, Seen) for result in results] == good
    assert [result.path for result in results if isinstance(result, Seen)] == [
        pictures[number] for number in choice if number >= 0
    ]
    assert encoder.encoded == sum(good)
    assert all(0 < size <= batch_size for size in encoder.batches)


def test_a_second_look_has_the_same_bits_without_the_encoder(
    pictures: Sequence[Path], tmp_path: Path
) -> None:
    encoder = Watched()
    cache = FeatureCache(tmp_path, encoder)
    first = seen_in(look(pictures, encoder, parts=PARTS, cache=cache))
    assert encoder.encoded == len(pictures)
    again = Watched(batch_size=5, threads=1)
    second = seen_in(look(pictures, again, parts=PARTS, cache=cache))
    assert (again.batches, again.prepared) == ([], 0)
    assert [one.path for one in second] == pictures
    assert [bits_of(one.features) for one in second] == [bits_of(one.features) for one in first]


def test_only_the_parts_asked_for_are_given_and_kept(pictures: Sequence[Path], tmp_path: Path) -> None:
    encoder = Watched()
    cache = FeatureCache(tmp_path, encoder)
    for expected in (4, 4, 8):  # fresh, from the cache, and with a part more
        parts = ("pooled",) if expected == 4 else ("pooled", "grid")
        for one in seen_in(look(pictures[:4], encoder, parts=parts, cache=cache)):
            assert one.features.pooled.shape == (1, *encoder.shapes["pooled"])
            assert (one.features.grid.size > 0) == ("grid" in parts)
        assert encoder.encoded == expected


def test_what_was_seen_before_an_abandoned_look_is_not_looked_at_again(
    pictures: Sequence[Path], tmp_path: Path
) -> None:
    encoder = Watched()
    cache = FeatureCache(tmp_path, encoder)
    results = look(pictures, encoder, parts=PARTS, cache=cache)
    assert isinstance(results, Generator)
    assert len(list(islice(results, 7))) == 7
    results.close()
    calls = len(encoder.batches)
    assert held(cache, pictures[:7]) == 7
    missing = len(pictures) - held(cache, pictures)
    assert missing > 30
    time.sleep(0.2)
    # Nobody waits for what was under way: each thread may have ended its batch since.
    assert len(encoder.batches) <= calls + encoder.threads, "work went on after the end"
    resumed = Watched()
    seen = seen_in(look(pictures, resumed, parts=PARTS, cache=cache))
    assert resumed.encoded == missing
    assert [bits_of(one.features) for one in seen] == [alone(path) for path in pictures]


def test_work_that_waits_is_dropped_when_a_look_is_abandoned(pictures: Sequence[Path]) -> None:
    gate = threading.Event()
    encoder = Watched(threads=1, first=lambda call: call == 1 or gate.wait(timeout=60))
    results = look(pictures, encoder, parts=PARTS, cache=None)
    assert isinstance(results, Generator)
    next(results)
    threading.Timer(0.5, gate.set).start()  # long after `close` has begun
    results.close()
    assert len(encoder.batches) <= 2


def test_what_was_seen_before_an_encoder_fails_is_kept(pictures: Sequence[Path], tmp_path: Path) -> None:
    def fail(call: int) -> None:
        if call == 4:
            raise MemoryError("no room for this one")

    encoder = Watched(threads=1, first=fail)
    cache = FeatureCache(tmp_path, encoder)
    with pytest.raises(MemoryError, match="no room"):
        list(look(pictures, encoder, parts=PARTS, cache=cache))
    assert held(cache, pictures) == 9


def test_a_long_look_is_written_as_it_goes(pictures: Sequence[Path], tmp_path: Path) -> None:
    encoder = Watched()
    cache = FeatureCache(tmp_path, encoder)
    results = look(pictures, encoder, parts=PARTS, cache=cache)
    for _ in range(WRITE_EVERY + 1):
        next(results)
    assert held(cache, pictures[:WRITE_EVERY]) == WRITE_EVERY  # a kill at this moment would cost nothing more


@pytest.mark.parametrize(("batch_size", "threads"), [(1, 1), (3, 2)])
def test_files_are_named_only_a_little_ahead_of_being_looked_at(
    pictures: Sequence[Path], batch_size: int, threads: int
) -> None:
    named = 0

    def without_end() -> Iterator[Path]:
        nonlocal named
        for path in cycle(pictures[:5]):
            named += 1
            yield path

    encoder = Watched(batch_size=batch_size, threads=threads)
    results = look(without_end(), encoder, parts=("pooled",), cache=None)
    ahead = []
    for given_back in range(1, 201):
        next(results)
        ahead.append(named - given_back)
    assert max(ahead) <= 5 * batch_size * threads
    assert encoder.prepared <= named
