"""Captions as COCO's tools take them: `[{"image_id": 391895, "caption": "…"}]`."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tellapart.outputs.writing import in_one_line, replacement

# As COCO names its pictures; and plain numbers, but none with zeros before it: what 007 was called like
# cannot be told from a 7.
_NUMBER = re.compile(r"(?:COCO_[a-z]+[0-9]{4}_)?([0-9]{12})|(0|[1-9][0-9]{0,14})")


def write_coco_results(path: Path, captions: Iterable[tuple[str, str]]) -> None:
    """Write the captions of pictures, given with their ids, or leave what was there.

    An id whose last part is a number as in COCO's file names becomes that number, unless two pictures
    would get the same.
    """
    pairs = list(captions)
    numbers = Counter(coco_id(image_id) for image_id, _ in pairs)
    rows = []
    for image_id, caption in pairs:
        number = coco_id(image_id)
        row = {
            "image_id": number if numbers[number] == 1 else image_id,
            "caption": in_one_line(caption, Path(image_id)),
        }
        rows.append(json.dumps(row, ensure_ascii=False))
    with replacement(path) as temporary:
        temporary.write_text("[" + ",\n".join(rows) + "]\n", encoding="utf-8")


def coco_id(image_id: str) -> int | str:
    """A picture's id as COCO's tools know it: a number where it is one, else as it is."""
    found = _NUMBER.fullmatch(image_id.rpartition("/")[2])
    return int(found[1] or found[2]) if found else image_id
