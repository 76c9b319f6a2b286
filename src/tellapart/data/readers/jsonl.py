"""JSONL: one object a line, `{"image", "captions", "image_id", "split"}`, the last two if one likes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tellapart.data.examples import Example, Reading
from tellapart.data.readers.files import read_lines
from tellapart.data.readers.records import Findings, locator, stem

_SHAPE = 'write {"image": "x.jpg", "captions": ["…"]} on each line'


def read_jsonl(path: Path, *, images: Path | None = None) -> Reading:
    """Images and captions of a JSONL file, plain or packed by gzip.

    `"caption"` with one string may stand for `"captions"`. The image id is `image_id` where there is one,
    else the picture's name without its ending.
    """
    lines = read_lines(path)
    locate = locator(path, images)
    findings = Findings(problems=lines.problems())
    for number, text in lines.good():
        where = lines.where(number)
        fields = _fields(text, where, findings)
        if fields is None:
            continue
        name = findings.name(fields.get("image"), where, "image")
        captions = findings.captions(_captions(fields), where, "captions")
        split = findings.split(fields.get("split"), where, "split")
        if name is None or split is None or not captions:
            continue
        image_id = findings.identifier(fields.get("image_id", stem(name)), where, "image_id")
        if image_id is not None:
            findings.examples.append(Example(image_id, locate(name), captions, split, where))
    return findings.reading()


def _fields(text: str, where: str, findings: Findings) -> Mapping[str, object] | None:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        findings.report(where, f"the line is not JSON: {error.msg} (column {error.colno})", _SHAPE)
    except (ValueError, RecursionError) as error:
        findings.report(where, f"the line is not JSON that can be read: {error}", _SHAPE)
    else:
        if isinstance(value, dict):
            return value
        findings.report(where, "the line is not a JSON object", _SHAPE)
    return None


def _captions(fields: Mapping[str, object]) -> list[object]:
    captions = fields.get("captions")
    if isinstance(captions, list):
        return captions
    only = fields.get("caption", captions)
    return [] if only is None else [only]
