"""The pictures most like a picture, without its copies, and how far a sentence is from each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.retrievers.simple_retriever import SimpleRetriever

from tellapart.errors import TellapartError
from tellapart.rivals import find_rivals, margins


@pytest.fixture(autouse=True)
def empty_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELLAPART_CACHE", str(tmp_path_factory.mktemp("own cache")))


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Twelve pictures of nine random fields, one of them in a folder inside."""
    random = np.random.default_rng(0)
    for number in range(12):
        path = tmp_path / "photos" / ("deep" if number == 7 else "") / f"{number:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 256, (3, 3, 3), np.uint8)).save(path)
    return tmp_path / "photos"


def test_they_are_those_with_the_greatest_cosines(photos: Path) -> None:
    retriever = SimpleRetriever()
    image = photos / "03.png"
    found = find_rivals(image, photos, retriever, 5)
    others = sorted(path for path in photos.rglob("*.png") if path != image)
    vectors = retriever.embed_images([image, *others])
    cosines = vectors[1:] @ vectors[0]
    order = np.argsort(-cosines)[:5]
    assert list(found.paths) == [others[place] for place in order]
    np.testing.assert_allclose(found.likeness, cosines[order], atol=1e-6)
    np.testing.assert_allclose(found.vectors, vectors[[0, *(order + 1)]], atol=1e-7)
    assert (found.others, found.copies, found.problems, found.notes) == (11, 0, (), ())


def test_closeness_and_margin_are_those_of_the_retriever(photos: Path) -> None:
    retriever = SimpleRetriever()
    found = find_rivals(photos / "00.png", photos, retriever, 4)
    sentences = ["a red field", "the dog runs on green grass", "a red field"]
    expected = retriever.scores(sentences, [photos / "00.png", *found.paths])
    closeness = found.closeness(retriever.embed_texts(sentences))
    np.testing.assert_allclose(closeness, expected, atol=1e-6)
    np.testing.assert_allclose(margins(closeness), expected[:, 0] - expected[:, 1:].max(1), atol=1e-6)
    assert (closeness[0] == closeness[2]).all()


def test_a_folder_is_looked_at_once(photos: Path) -> None:
    first, second = SimpleRetriever(), SimpleRetriever()
    find_rivals(photos / "00.png", photos, first, 3)
    assert len(first.placed) == 12
    find_rivals(photos / "05.png", photos, second, 3)
    assert second.placed == []


def test_a_picture_from_elsewhere_has_all_of_them_as_rivals(photos: Path, tmp_path: Path) -> None:
    Image.new("RGB", (9, 9), "red").save(tmp_path / "red.png")
    retriever = SimpleRetriever()
    found = find_rivals(tmp_path / "red.png", photos, retriever, 100)
    assert (len(found.paths), found.others, found.copies) == (12, 12, 0)
    np.testing.assert_allclose(found.vectors[0], retriever.embed_images([tmp_path / "red.png"])[0], atol=1e-7)


def test_copies_are_no_rivals_and_copies_of_others_are_one(photos: Path, tmp_path: Path) -> None:
    for name, of in (("x.png", "00.png"), ("deep/y.png", "00.png"), ("z.png", "01.png")):
        (photos / name).write_bytes((photos / of).read_bytes())
    found = find_rivals(photos / "00.png", photos, SimpleRetriever(), 100)
    assert (found.others, found.copies) == (11, 2)
    names = [path.name for path in found.paths]
    assert sorted(names) == [f"{number:02}.png" for number in range(1, 12)]
    (tmp_path / "outside.png").write_bytes((photos / "00.png").read_bytes())
    assert find_rivals(tmp_path / "outside.png", photos, SimpleRetriever(), 1).copies == 3


def test_only_copies_leave_no_rival(tmp_path: Path) -> None:
    for name in ("a.png", "b.png", "c.png"):
        Image.new("RGB", (9, 9), "red").save(tmp_path / name)
    found = find_rivals(tmp_path / "b.png", tmp_path, SimpleRetriever(), 10)
    assert (found.paths, found.others, found.copies) == ((), 0, 2)
    assert found.closeness(SimpleRetriever().embed_texts(["red"])).shape == (1, 1)


def test_a_damaged_file_is_named_and_no_rival(photos: Path) -> None:
    (photos / "bad.png").write_bytes(b"\x89PNG\r\n\x1a\nno more")
    found = find_rivals(photos / "00.png", photos, SimpleRetriever(), 100)
    assert len(found.paths) == 11
    (problem,) = found.problems
    assert "bad.png" in problem.problem


def test_no_neighbours_are_refused(photos: Path) -> None:
    with pytest.raises(TellapartError, match="0 neighbours were asked for"):
        find_rivals(photos / "00.png", photos, SimpleRetriever(), 0)
