"""Flickr8k and Flickr30k: `captions.txt` or the older token file, with lists of splits beside it."""

from __future__ import annotations

import csv
import re
from collections.abc import Container, Iterator
from pathlib import Path

from tellapart.data.examples import Reading
from tellapart.data.readers.files import Lines, read_lines
from tellapart.data.readers.records import Findings, Rows, locator

HEADER = re.compile(r"\s*image\s*,\s*caption\s*", re.IGNORECASE)
TOKEN = re.compile(r"([^\t]+)#\d+\t(.*)", re.DOTALL)

_NAMES_OF_SPLITS = {"train": "train", "val": "dev|(?<!e)val", "test": "test"}


def read_flickr(path: Path, *, images: Path | None = None) -> Reading:
    """Images and captions of a Flickr file; the captions of an image stand in their order.

    The splits are read from the .txt files beside it that have train, dev, val or test in their name and
    one picture a line; an image in none of them has the split "". The image id is the picture's name
    without its ending.
    """
    lines = read_lines(path)
    rows = Rows(Findings(problems=lines.problems()))
    numbered = lines.good()
    is_table = bool(numbered and HEADER.fullmatch(numbered[0][1]))
    for number, text in numbered[1:] if is_table else numbered:
        fields = _table_fields(text) if is_table else _token_fields(text)
        _add_row(fields, lines.where(number), rows)
    _assign_splits(path, rows)
    return rows.finish(locator(path, images))


def _table_fields(text: str) -> tuple[str, str]:
    """Picture and caption of a CSV line; here a caption keeps to its line, and its commas need no quotes."""
    try:
        name, *caption = next(csv.reader([text]))
    except csv.Error:
        return text, ""
    return name, ",".join(caption)


def _token_fields(text: str) -> tuple[str, str]:
    match = TOKEN.fullmatch(text)
    return (match[1], match[2]) if match else (text, "")


def _add_row(fields: tuple[str, str], where: str, rows: Rows) -> None:
    name = rows.findings.name(fields[0].strip(), where, "the picture")
    caption = rows.findings.caption(fields[1], where, "what follows the picture")
    if name is not None and caption is not None:
        rows.add(name, caption, where)


def _assign_splits(path: Path, rows: Rows) -> None:
    """Put the pictures of each list in its split; a list may name them or give their ids."""
    drafts = {draft.image_id: draft for draft in rows.drafts.values()} | rows.drafts
    for split, lines in _split_lists(path, drafts):
        rows.findings.problems.extend(lines.problems())
        for number, text in lines.good():
            draft = drafts.get(text.strip())
            if draft is not None:
                rows.put_in_split(draft, split, lines.where(number))
            else:
                what = f"{text.strip()} has no caption in {path}"
                rows.findings.report(lines.where(number), what, "add captions or drop the line")


def _split_lists(path: Path, known: Container[str]) -> Iterator[tuple[str, Lines]]:
    """The lists beside a file: other files may have such names too, but mention none of its pictures."""
    for beside in sorted(path.parent.glob("*.txt")):
        kinds = [split for split, names in _NAMES_OF_SPLITS.items() if re.search(names, beside.name.lower())]
        # A name with two kinds, such as trainval.txt, says nothing about either.
        if len(kinds) == 1 and beside.is_file():
            lines = read_lines(beside)
            if any(text.strip() in known for _, text in lines.good()):
                yield kinds[0], lines
