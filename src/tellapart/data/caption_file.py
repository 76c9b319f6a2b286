"""Captions by image id, from any file that has them, whether there are pictures or not.

What is measured comes from other programs as often as from ours: COCO results, COCO captions, Karpathy's
JSON, JSONL, CSV, a folder of .txt files; each plain or packed by gzip. Texts are kept as they are, empty ones
too: how an empty caption scores is for a measure to say.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tellapart.data.readers.document import Document, Record, read_document, unique_keys
from tellapart.data.readers.files import Lines, is_writable, read_lines, read_start
from tellapart.data.readers.karpathy import sentence_text
from tellapart.data.readers.records import stem
from tellapart.errors import TellapartError

_NAME_FIELDS = ("image", "filename", "file_name", "path")
_ID_FIELDS = ("image_id", *_NAME_FIELDS, "id")
_ROW = '{"image_id": "17", "captions": ["…"]}'
_FIRST_KEY = re.compile(r'\{\s*"(\w+)"\s*:')


@dataclass(frozen=True, slots=True)
class Entry:
    """One image and its texts."""

    image_id: str
    captions: tuple[str, ...]
    where: str  # "file:line"; in a JSON document also which record
    name: str = ""  # of the picture's file, where the file gives it
    split: str = ""


@dataclass(frozen=True, slots=True)
class CaptionFile:
    """All images of a file, each once."""

    path: Path
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class _Role:
    """How candidates differ from references: where their texts stand, and what is asked of them."""

    fields: tuple[str, ...]
    are_candidates: bool


_CANDIDATES = _Role(("candidates", "captions", "caption"), are_candidates=True)
_REFERENCES = _Role(("references", "captions", "caption"), are_candidates=False)


def read_candidates(path: Path) -> CaptionFile:
    """Captions to be measured: one an image, or several, the first being the caption proper.

    In a JSONL line that has both `caption` and a list, the caption comes first.
    """
    return _read(path, _CANDIDATES)


def read_captions(path: Path) -> CaptionFile:
    """References, or the captions of a training set. An image may have none: its user judges that."""
    return _read(path, _REFERENCES)


def _read(path: Path, role: _Role) -> CaptionFile:
    entries = tuple(_reader(path)(path, role))
    if not entries:
        raise TellapartError(f"{path}: there is no caption in it", hint="name a file of captions")
    seen: dict[str, str] = {}
    for entry in entries:
        if entry.image_id in seen:
            raise _doubled(entry.image_id, entry.where, seen[entry.image_id])
        seen[entry.image_id] = entry.where
        if role.are_candidates and not entry.captions:
            raise TellapartError(
                f"{entry.where}: image {entry.image_id!r} has no caption", hint=f"drop it, or write {_ROW}"
            )
    return CaptionFile(path, entries)


def _doubled(image_id: str, where: str, first: str) -> TellapartError:
    return TellapartError(
        f"{where}: image {image_id!r} stands there twice, first at {first}",
        hint=f"drop one; several texts of an image go together: {_ROW}",
    )


def _reader(path: Path) -> Callable[[Path, _Role], Iterator[Entry]]:
    if path.is_dir():
        return _from_folder
    ending = (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()
    start = read_start(path).lstrip()
    first_line = start.partition("\n")[0]
    if ending in (".jsonl", ".ndjson") or _is_row(first_line):
        return _from_jsonl
    if start.startswith(("{", "[")) or ending == ".json":
        return _from_json
    if ending in (".csv", ".txt") or "," in first_line:
        return _from_csv
    raise TellapartError(
        f"{path}: this is no file of captions that we know",
        hint="COCO or Karpathy JSON, JSONL, CSV with a header, or a folder of .txt files",
    )


def _is_row(line: str) -> bool:
    """Whether a line is one image's, and not the beginning of a document."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):  # broken, or longer than what was looked at
        first = _FIRST_KEY.match(line)
        return first is not None and first[1] in {*_ID_FIELDS, *_CANDIDATES.fields, *_REFERENCES.fields}
    return isinstance(value, dict) and not {"images", "annotations"} & value.keys()


def _from_json(path: Path, role: _Role) -> Iterator[Entry]:
    document = read_document(path)
    if "" in document.lists:
        return (_of_fields(record.fields(), _place(document, record), role) for record in document.lists[""])
    if "annotations" in document.lists:
        return _from_coco(document)
    if "images" in document.lists:
        return (_of_karpathy(record, document) for record in document.lists["images"])
    raise TellapartError(
        f"{path}: neither 'images' nor 'annotations' are in it",
        hint="COCO results are a list; COCO captions have 'annotations', Karpathy's files 'images'",
    )


def _place(document: Document, record: Record) -> str:
    """File and line, and the record's number: such files often are one long line."""
    return f"{document.where(record)} {record.label}"


@dataclass(slots=True)
class _Draft:
    """An image whose texts are still being gathered."""

    where: str
    name: str = ""
    captions: list[str] = field(default_factory=list)


def _from_coco(document: Document) -> Iterator[Entry]:
    """Images in the order of `images`, where the file has them, else in that of their annotations."""
    drafts = _listed(document)
    are_listed = "images" in document.lists
    for record in document.lists["annotations"]:
        fields = record.fields()
        try:
            image_id = _identifier(fields, ("image_id",))
            caption = _text(fields.get("caption"), image_id)
        except TellapartError as error:
            raise _placed(error, _place(document, record)) from error
        draft = drafts.get(image_id)
        if draft is None:
            if are_listed:
                raise TellapartError(
                    f"{_place(document, record)}: its image {image_id!r} is not among the images",
                    hint="add the image or drop the annotation",
                )
            draft = drafts[image_id] = _Draft(_place(document, record))
        draft.captions.append(caption)
    for image_id, draft in drafts.items():
        yield Entry(image_id, tuple(draft.captions), draft.where, draft.name)


def _listed(document: Document) -> dict[str, _Draft]:
    drafts: dict[str, _Draft] = {}
    for record in document.lists.get("images", []):
        where = _place(document, record)
        try:
            image_id = _identifier(record.fields(), ("id",))
        except TellapartError as error:
            raise _placed(error, where) from error
        if image_id in drafts:
            raise _doubled(image_id, where, drafts[image_id].where)
        drafts[image_id] = _Draft(where, _picture_name(record.fields()))
    return drafts


def _of_karpathy(record: Record, document: Document) -> Entry:
    fields = record.fields()
    where = _place(document, record)
    sentences = fields.get("sentences")
    try:
        image_id = _identifier(fields, ("cocoid", "filename"))
        texts = [
            _text(sentence_text(sentence), image_id)
            for sentence in (sentences if isinstance(sentences, list) else [])
        ]
    except TellapartError as error:
        raise _placed(error, where) from error
    split = str(fields.get("split") or "")
    return Entry(
        image_id, tuple(texts), where, _picture_name(fields), "train" if split == "restval" else split
    )


def _from_jsonl(path: Path, role: _Role) -> Iterator[Entry]:
    lines = _sound(read_lines(path))
    decode = json.JSONDecoder(object_pairs_hook=unique_keys).decode
    for number, text in lines.good():
        where = lines.where(number)
        try:
            value = decode(text)
        except (ValueError, RecursionError) as error:
            raise TellapartError(f"{where}: the line is not JSON: {error}", hint=f"write {_ROW}") from error
        if not isinstance(value, dict):
            raise TellapartError(f"{where}: the line is not a JSON object", hint=f"write {_ROW}")
        yield _of_fields(value, where, role)


def _of_fields(fields: Mapping[str, object], where: str, role: _Role) -> Entry:
    try:
        image_id = _identifier(fields, _ID_FIELDS)
        texts = _texts(fields, image_id, role)
    except TellapartError as error:
        raise _placed(error, where) from error
    return Entry(image_id, tuple(texts), where, _picture_name(fields), str(fields.get("split") or ""))


def _texts(fields: Mapping[str, object], image_id: str, role: _Role) -> list[str]:
    key = next((name for name in role.fields if fields.get(name) is not None), None)
    if key is None:
        raise TellapartError(
            f"image {image_id!r} has no caption", hint=f"give it one of {', '.join(role.fields)}"
        )
    values = fields[key]
    texts = [
        _text(value.get("caption") if isinstance(value, dict) else value, image_id)
        for value in (values if isinstance(values, list) else [values])
    ]
    if role.are_candidates and key != "caption" and fields.get("caption") is not None:
        caption = _text(fields["caption"], image_id)
        if caption in texts:
            texts.remove(caption)
        texts.insert(0, caption)
    return texts


def _from_csv(path: Path, role: _Role) -> Iterator[Entry]:
    """One caption a row. Rows of an image add up to its references; candidates have one row an image."""
    lines = _sound(read_lines(path))
    rows = _rows(lines)
    header = [name.strip(' "').lower() for name in next(rows, (1, []))[1]]
    id_column = next((name for name in _ID_FIELDS if name in header), "")
    if header.count(id_column) != 1 or header.count("caption") != 1:
        raise TellapartError(
            f"{lines.where(1)}: the header names no column of images or none of captions, or one twice",
            hint=f"call the captions 'caption', the images one of {', '.join(_ID_FIELDS)}",
        )
    drafts: dict[str, _Draft] = {}
    for number, values in rows:
        where = lines.where(number)
        if len(values) != len(header):
            raise TellapartError(
                f"{where}: the row has {len(values)} fields and the header {len(header)}",
                hint='put captions that hold a comma in "quotes"',
            )
        row = dict(zip(header, values, strict=True))
        try:
            image_id = _identifier(row, (id_column,))
        except TellapartError as error:
            raise _placed(error, where) from error
        draft = drafts.setdefault(image_id, _Draft(where, _picture_name(row)))
        if draft.captions and role.are_candidates:
            raise _doubled(image_id, where, draft.where)
        draft.captions.append(row["caption"])
    for image_id, draft in drafts.items():
        yield Entry(image_id, tuple(draft.captions), draft.where, draft.name)


def _rows(lines: Lines) -> Iterator[tuple[int, list[str]]]:
    """Each row that is not blank, with the number of the line on which it begins."""
    # Line ends go back in, since a quoted caption may go on over several lines.
    reader = csv.reader((f"{text}\n" for text in lines.texts), strict=True)
    while True:
        begin = reader.line_num + 1
        try:
            values = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise TellapartError(
                f"{lines.where(begin)}: the row is not CSV: {error}",
                hint='write a quote inside a quoted caption twice, as in "a ""big"" dog"',
            ) from error
        if values:
            yield begin, values


def _from_folder(path: Path, role: _Role) -> Iterator[Entry]:
    """One .txt file an image, one caption a line; a file without a caption holds an empty one."""
    for file in sorted(path.rglob("*")):
        inside = file.relative_to(path)
        if file.suffix.lower() != ".txt" or any(part.startswith(".") for part in inside.parts):
            continue
        lines = _sound(read_lines(file))
        texts = tuple(text.strip() for _, text in lines.good()) or ("",)
        image_id = inside.with_suffix("").as_posix()
        if not is_writable(image_id):
            raise TellapartError(f"{path}: the name {inside.name!a} is not UTF-8", hint="rename the file")
        yield Entry(image_id, texts, lines.where(1))


def _sound(lines: Lines) -> Lines:
    for problem in lines.problems():
        raise problem.error()
    return lines


def _identifier(fields: Mapping[str, object], names: tuple[str, ...]) -> str:
    """An image's id; from a file's name, the name without its ending."""
    for name in names:
        value = fields.get(name)
        if type(value) is int:
            return str(value)
        if isinstance(value, str) and value.strip() and is_writable(value):
            return value.strip() if name.endswith("id") else stem(value.strip())
        if value is not None:
            raise TellapartError(
                f"{name} is {value!r:.60}, which is no image's id",
                hint="write a whole number or a name there",
            )
    raise TellapartError("there is no image id", hint=f"give it as {' or '.join(names)}")


def _picture_name(fields: Mapping[str, object]) -> str:
    names = (fields.get(name) for name in _NAME_FIELDS)
    return next((name for name in names if isinstance(name, str)), "")


def _text(value: object, image_id: str) -> str:
    if not isinstance(value, str):
        raise TellapartError(
            f"a caption of image {image_id!r} is {value!r:.60}, which is no text",
            hint="write a caption in quotes there, or drop the line",
        )
    if not is_writable(value):
        raise TellapartError(
            f"a caption of image {image_id!r} holds half a character (a lone surrogate)",
            hint="write the caption again, or drop the line",
        )
    return value


def _placed(error: TellapartError, where: str) -> TellapartError:
    """The same error with file and line, which are looked up only when something is wrong."""
    return TellapartError(f"{where}: {error.problem}", hint=error.hint)
