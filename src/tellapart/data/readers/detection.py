"""Telling the format of a captioned image set from its name and how it begins."""

from __future__ import annotations

import json
from pathlib import Path

from tellapart.data.readers.files import read_start
from tellapart.data.readers.flickr import HEADER, TOKEN
from tellapart.data.readers.table import is_header
from tellapart.errors import TellapartError

FORMATS = ("karpathy", "coco", "flickr", "jsonl", "csv", "msrvtt", "folder")
"""Names of the formats that can be read."""

_BY_ENDING = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".zip": "msrvtt"}


def detect(path: Path) -> str:
    """The name of the format, or an error that lists the formats."""
    if path.is_dir():
        return "folder"
    ending = path.with_suffix("").suffix if path.suffix.lower() == ".gz" else path.suffix
    start = read_start(path)
    found = _BY_ENDING.get(ending.lower()) or _by_content(start)
    if found is None:
        raise TellapartError(
            f"{path}: the format cannot be told from the name or the first lines",
            hint=f"name it; the formats are {', '.join(FORMATS)}",
        )
    return found


def _by_content(start: str) -> str | None:
    first = start.lstrip().partition("\n")[0]
    if first.startswith("{"):
        return _kind_of_json(first, start)
    if HEADER.fullmatch(first) or TOKEN.fullmatch(first):
        return "flickr"
    return "csv" if is_header(first) else None


def _kind_of_json(first: str, start: str) -> str | None:
    if _is_example(first):
        return "jsonl"
    # Not "videos": that may be a token of a caption.
    if '"video_id"' in start:
        return "msrvtt"
    if '"sentences"' in start:
        return "karpathy"
    return "coco" if '"images"' in start or '"annotations"' in start else None


def _is_example(line: str) -> bool:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and "image" in value
