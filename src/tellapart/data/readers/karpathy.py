"""Karpathy's JSON: `{"images": [{"filename", "filepath", "split", "sentences": [{"raw", "tokens"}], …}]}`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from tellapart.data.examples import Example, Reading
from tellapart.data.readers.document import read_document
from tellapart.data.readers.records import Findings, locator, stem


def read_karpathy(path: Path, *, images: Path | None = None) -> Reading:
    """Images and sentences of a Karpathy file, plain or packed by gzip.

    The image id is `cocoid` where there is one, else the file name without its ending: as the original
    annotations of each data set call it. The split "restval" counts as "train".
    """
    document = read_document(path)
    locate = locator(path, images)
    findings = Findings()
    for record in document.records("images"):
        fields = record.fields()
        where = document.where(record, fields.get("filename"))
        name = findings.name(fields.get("filename"), where, f"{record.label}.filename")
        captions = findings.captions(_sentences(fields), where, f"{record.label}.sentences")
        split = findings.split(fields.get("split"), where, f"{record.label}.split")
        if name is None or split is None or not captions:
            continue
        image_id = findings.identifier(fields.get("cocoid", stem(name)), where, f"{record.label}.cocoid")
        if image_id is not None:
            place = locate(_in_folder(fields.get("filepath"), name))
            findings.examples.append(Example(image_id, place, captions, split, where))
    return findings.reading()


def _sentences(fields: Mapping[str, object]) -> list[object]:
    sentences = fields.get("sentences")
    return [sentence_text(sentence) for sentence in sentences] if isinstance(sentences, list) else []


def sentence_text(sentence: object) -> object:
    """The sentence as written, else its tokens joined; what is neither is judged as it is."""
    if not isinstance(sentence, dict):
        return sentence
    raw, tokens = sentence.get("raw"), sentence.get("tokens")
    return " ".join(map(str, tokens)) if raw is None and isinstance(tokens, list) else raw


def _in_folder(folder: object, name: str) -> str:
    return str(PurePosixPath(folder, name)) if isinstance(folder, str) and folder else name
