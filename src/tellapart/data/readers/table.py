"""CSV with a header: a column of pictures, a column of captions, one caption a row."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tellapart.data.examples import Reading
from tellapart.data.readers.files import Lines, read_lines
from tellapart.data.readers.records import Findings, Rows, locator
from tellapart.errors import TellapartError

IMAGE_COLUMNS = ("image", "filename", "file_name", "path")
CAPTION_COLUMN = "caption"


def read_csv(path: Path, *, images: Path | None = None) -> Reading:
    """Images and captions of a CSV file; the rows of an image are gathered in their order.

    The columns `split` and `image_id` may be there; the image id is otherwise the picture's name without
    its ending. Other columns are not read.
    """
    lines = read_lines(path)
    findings = Findings(problems=lines.problems())
    rows = Rows(findings)
    numbered = _rows(lines, findings)
    header = _columns(next(numbered, (1, []))[1])
    image_column = _image_column(header)
    if image_column is None:
        raise TellapartError(
            f"{lines.where(1)}: the header names no column of pictures or none of captions",
            hint=f"call the captions {CAPTION_COLUMN!r}, the pictures one of {', '.join(IMAGE_COLUMNS)}",
        )
    for number, values in numbered:
        where = lines.where(number)
        if len(values) != len(header):
            what = f"the row has {len(values)} fields and the header {len(header)}"
            findings.report(where, what, 'put captions that hold a comma in "quotes"')
            continue
        _add_row(dict(zip(header, values, strict=True)), image_column, where, rows)
    return rows.finish(locator(path, images))


def is_header(line: str) -> bool:
    """Whether a line names the columns of such a file."""
    return _image_column(_columns(line.split(","))) is not None


def _columns(header: Sequence[str]) -> list[str]:
    return [name.strip(' "').lower() for name in header]


def _image_column(columns: Sequence[str]) -> str | None:
    """The column of pictures, if there is one of captions as well."""
    return next((name for name in IMAGE_COLUMNS if name in columns and CAPTION_COLUMN in columns), None)


def _add_row(row: Mapping[str, str], image_column: str, where: str, rows: Rows) -> None:
    findings = rows.findings
    name = findings.name(row[image_column].strip(), where, image_column)
    caption = findings.caption(row[CAPTION_COLUMN], where, CAPTION_COLUMN)
    split = findings.split(row.get("split"), where, "split")
    if name is not None and split is not None:
        rows.add(name, caption, where, image_id=row.get("image_id", "").strip(), split=split)


def _rows(lines: Lines, findings: Findings) -> Iterator[tuple[int, list[str]]]:
    """Each row that is neither blank nor broken, with the number of the line on which it begins."""
    # Line ends go back in, since a quoted caption may go on over several lines.
    reader = csv.reader((f"{text}\n" for text in lines.texts), strict=True)
    while True:
        begin = reader.line_num + 1
        try:
            values = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            hint = 'write a quote inside a quoted caption twice, as in "a ""big"" dog"'
            findings.report(lines.where(begin), f"the row is not CSV: {error}", hint)
            continue
        if values and lines.broken.isdisjoint(range(begin, reader.line_num + 1)):
            yield begin, values
