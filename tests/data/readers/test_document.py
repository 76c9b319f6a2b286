from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tellapart.data.readers.document import read_document
from tellapart.errors import TellapartError

SCALARS = st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8"))
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text('ab[]{},:"\\\n'), inner), max_leaves=8
)


@settings(max_examples=50)
@given(
    content=st.dictionaries(st.text('ab"\\ é'), VALUES),
    indent=st.sampled_from([None, 0, 2]),
    ascii_=st.booleans(),
)
def test_agrees_with_the_standard_library(
    tmp_path_factory: pytest.TempPathFactory, content: dict[str, object], indent: int | None, ascii_: bool
) -> None:
    path = tmp_path_factory.mktemp("document") / "any.json"
    text = json.dumps(content, indent=indent, ensure_ascii=ascii_)
    path.write_text(text, encoding="utf-8")

    document = read_document(path)

    lists = {key: value for key, value in content.items() if isinstance(value, list)}
    assert {key: [record.value for record in records] for key, records in document.lists.items()} == lists
    for key, records in document.lists.items():
        assert [record.label for record in records] == [f"{key}[{n}]" for n in range(len(records))]
        assert [json.loads(text[record.begin : record.end]) for record in records] == lists[key]


def test_tells_the_line_of_a_record_and_of_what_it_mentions(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{\n"list": [{"a": 1,\n"b": "x"},\n\n{"b": "y",\n"c": "x"}]}')
    document = read_document(path)
    first, second = document.records("list")

    assert document.where(first) == f"{path}:2"
    assert document.where(first, "x") == f"{path}:3"
    assert document.where(second) == f"{path}:5"
    assert document.where(second, "x") == f"{path}:6"
    assert document.where(second, "not there") == f"{path}:5"
    assert document.where(second, 5) == f"{path}:5"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", ":1: not JSON: Expecting '{' (column 1)"),
        (b"5", ":1: not JSON: Expecting '{' (column 1)"),
        (b"[1,\n 2", ":2: not JSON: Expecting ',' (column 3)"),
        (b"[1]\n 2", ":2: not JSON: Extra data (column 2)"),
        (b'[1,\n {"a": 1, "b": 2, "a": 3}]', ":2: not JSON: the key 'a' stands there twice (column 2)"),
        (b'{"a": [1],\n"a": [2]}', ":2: not JSON: the key 'a' stands there twice (column 1)"),
        (b'{"a": [1,\n 2', ":2: not JSON: Expecting ',' (column 3)"),
        (b'{"a": [1,\n\n  ]}', ":3: not JSON: Expecting value (column 3)"),
        (b'{"a": 1\n "b": 2}', ":2: not JSON: Expecting ',' (column 2)"),
        (b'{"a": 1} x', ":1: not JSON: Extra data (column 10)"),
        (b'{"a": 1,}', ":1: not JSON: Expecting value (column 9)"),
        (b'{"a": [1],\n5: 2}', ":2: not JSON: Expecting a key in double quotes (column 1)"),
        (b"{", ":1: not JSON: Expecting a key in double quotes (column 2)"),
        (b'{"a" 1}', ":1: not JSON: Expecting ':' (column 6)"),
        (b'{"a": "x\ny"}', ":1: not JSON: Invalid control character at (column 9)"),
        (b'{\n"a": [{"b": "\xe9"}]}', ":2: the line is not UTF-8 text"),
        (b'{"a": [' + b"[" * 100_000, ": not JSON that can be read"),
        (b'{"a": ' + b"1" * 5000 + b"}", ": not JSON that can be read"),
        (b"\x1f\x8b\x08\x00\x00", " is a damaged gzip file"),
    ],
)
def test_a_broken_file_is_an_error_with_its_line(tmp_path: Path, data: bytes, problem: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(data)

    with pytest.raises(TellapartError) as caught:
        read_document(path)

    assert caught.value.problem.startswith(f"{path}{problem}")


def test_a_file_may_be_one_list(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('\n [{"a": 1},\n\n{"a": 2}] \n')
    document = read_document(path)
    records = document.records("")
    assert [record.value for record in records] == [{"a": 1}, {"a": 2}]
    assert [document.where(record) for record in records] == [f"{path}:2", f"{path}:4"]


def test_a_list_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"images": {}}')

    with pytest.raises(TellapartError, match=r"a\.json: there is no list 'images'"):
        read_document(path).records("images")
