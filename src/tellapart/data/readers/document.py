"""A JSON file of records that remembers on which line each record stands."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from tellapart.data.readers.files import NOT_UTF8, read_file
from tellapart.errors import TellapartError

_SPACE = re.compile(r"[ \t\r\n]*")
_COMMA = re.compile(r"[ \t\r\n]*,[ \t\r\n]*")


class Record(NamedTuple):
    """One element of a list in the file: its value, and from where to where it stands in the text."""

    label: str  # such as images[17]
    value: object
    begin: int
    end: int

    def fields(self) -> Mapping[str, object]:
        """The record as an object; an empty one where it is none."""
        return self.value if isinstance(self.value, dict) else {}


@dataclass(frozen=True)
class Document:
    """The lists of records at the top of a JSON file, by key; a file that is one list has it under ""."""

    name: str
    text: str
    lists: Mapping[str, list[Record]]

    def records(self, key: str) -> list[Record]:
        """The records of a list; a file without it is an error."""
        if key not in self.lists:
            raise TellapartError(f"{self.name}: there is no list {key!r}", hint="is it of another format?")
        return self.lists[key]

    def where(self, record: Record, mention: object = None) -> str:
        """File and line of a record, or of the string in it that is mentioned."""
        position = record.begin
        if isinstance(mention, str):
            spellings = {json.dumps(mention), json.dumps(mention, ensure_ascii=False)}
            position = max(position, *(self.text.find(each, position, record.end) for each in spellings))
        return f"{self.name}:{self._line(position)}"

    def _line(self, position: int) -> int:
        return bisect_left(self._line_ends, position) + 1

    @cached_property
    def _line_ends(self) -> list[int]:
        return [match.start() for match in re.finditer("\n", self.text)]


def read_document(path: Path) -> Document:
    """The records of a JSON file; what is not JSON is an error with line and column."""
    text = _text(path)
    try:
        lists = {key: records for key, records in _top(text) if records is not None}
    except json.JSONDecodeError as error:
        raise _broken(f"{path}:{error.lineno}: not JSON: {error.msg} (column {error.colno})") from error
    except (ValueError, RecursionError) as error:
        raise _broken(f"{path}: not JSON that can be read: {error}") from error
    return Document(str(path), text, lists)


def _broken(problem: str) -> TellapartError:
    return TellapartError(problem, hint="mend the file there, or fetch it again if it was cut short")


def _text(path: Path) -> str:
    data = read_file(path).removeprefix(b"\xef\xbb\xbf")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TellapartError(f"{path}:{line}: the line is not UTF-8 text", hint=NOT_UTF8) from error


class DoubledKey(ValueError):  # noqa: N818 - reads as a sentence where it is raised
    """A key that stands twice in an object: its first value would be lost."""


def unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """What a JSON decoder is to make of an object: no value is lost without a word."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        keys = [key for key, _ in pairs]
        doubled = next(key for key in keys if keys.count(key) > 1)
        raise DoubledKey(f"the key {doubled!r} stands there twice")
    return fields


_DECODER = json.JSONDecoder(object_pairs_hook=unique_keys)


def _decode(text: str, position: int) -> tuple[object, int]:
    try:
        return _DECODER.raw_decode(text, position)
    except DoubledKey as error:
        raise json.JSONDecodeError(str(error), text, position) from error


def _top(text: str) -> Iterator[tuple[str, list[Record] | None]]:
    if not text.startswith("[", _skip(text, 0)):
        yield from _members(text)
        return
    records, position = _elements(text, _skip(text, 0), "")
    if (rest := _skip(text, position)) < len(text):
        raise json.JSONDecodeError("Extra data", text, rest)
    yield "", records


def _members(text: str) -> Iterator[tuple[str, list[Record] | None]]:
    """Keys of the object that is the file, each with its records where its value is a list."""
    position = _expect(text, 0, "{")
    seen: set[str] = set()
    while not text.startswith("}", position):
        begin = position
        key, position = _key(text, position)
        if key in seen:
            raise json.JSONDecodeError(f"the key {key!r} stands there twice", text, begin)
        seen.add(key)
        records = None
        if text.startswith("[", position):
            records, position = _elements(text, position, key)
        else:
            _, position = _decode(text, position)
        yield key, records
        position = _next(text, position, "}")
    if (rest := _expect(text, position, "}")) < len(text):
        raise json.JSONDecodeError("Extra data", text, rest)


def _key(text: str, position: int) -> tuple[str, int]:
    if not text.startswith('"', position):
        raise json.JSONDecodeError("Expecting a key in double quotes", text, position)
    key, position = _decode(text, position)
    return str(key), _expect(text, position, ":")


def _elements(text: str, position: int, key: str) -> tuple[list[Record], int]:
    records: list[Record] = []
    position = _expect(text, position, "[")
    while not text.startswith("]", position):
        value, end = _decode(text, position)
        records.append(Record(f"{key}[{len(records)}]", value, position, end))
        position = _next(text, end, "]")
    return records, position + 1


def _next(text: str, position: int, closing: str) -> int:
    """The place of the closing sign, or that of what follows a comma, which must be something."""
    comma = _COMMA.match(text, position)
    if comma is not None and not text.startswith(closing, comma.end()):
        return comma.end()
    position = _skip(text, position)
    if text.startswith(closing, position):
        return position
    position = _expect(text, position, ",")
    if text.startswith(closing, position):
        raise json.JSONDecodeError("Expecting value", text, position)
    return position


def _expect(text: str, position: int, sign: str) -> int:
    """The place of what follows a sign, which must be next."""
    position = _skip(text, position)
    if not text.startswith(sign, position):
        raise json.JSONDecodeError(f"Expecting {sign!r}", text, position)
    return _skip(text, position + 1)


def _skip(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    assert match is not None, "the pattern matches nothing at all as well"
    return match.end()
