"""Captions come in many files: all say the same, none loses or shifts a text, and what is wrong is named."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tellapart.data.caption_file import CaptionFile, read_candidates, read_captions
from tellapart.errors import TellapartError

Captions = Mapping[str, Sequence[str]]


def coco_captions(captions: Captions) -> str:
    images = [{"id": int(image_id), "file_name": f"{image_id:0>12}.jpg"} for image_id in captions]
    rows = [
        {"image_id": int(image_id), "id": 7, "caption": text}
        for image_id, texts in captions.items()
        for text in texts
    ]
    return json.dumps({"info": {"a": [1]}, "images": images, "annotations": rows})


def coco_results(captions: Captions) -> str:
    return json.dumps(
        [{"image_id": int(image_id), "caption": texts[0]} for image_id, texts in captions.items()]
    )


def karpathy(captions: Captions) -> str:
    images = [
        {
            "cocoid": int(image_id),
            "filename": f"COCO_{image_id}.jpg",
            "split": "test",
            "sentences": [{"raw": text, "tokens": ["other"]} for text in texts],
        }
        for image_id, texts in captions.items()
    ]
    return json.dumps({"images": images, "dataset": "coco"})


def jsonl(captions: Captions) -> str:
    rows = [{"image_id": image_id, "captions": texts} for image_id, texts in captions.items()]
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def table(captions: Captions) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["image_id", "caption"])
    writer.writerows((image_id, text) for image_id, texts in captions.items() for text in texts)
    return text.getvalue()


OF_SEVERAL: Mapping[str, tuple[str, Callable[[Captions], str]]] = {
    "COCO captions": ("a.json", coco_captions),
    "Karpathy": ("a.json", karpathy),
    "JSONL": ("a.jsonl", jsonl),
    "JSONL under another name": ("a.json", jsonl),
    "CSV": ("a.csv", table),
}
SEVERAL: Captions = {
    "17": ("a dog", "a brown dog, running"),
    "5": ('a "big" cat',),
    "391895": ("Größe 写真", "👩"),
}
SINGLE: Captions = {image_id: texts[:1] for image_id, texts in SEVERAL.items()}


def found(file: CaptionFile) -> dict[str, tuple[str, ...]]:
    return {entry.image_id: entry.captions for entry in file.entries}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("format_", OF_SEVERAL)
def test_references_of_every_format(format_: str, packed: bool, tmp_path: Path) -> None:
    name, write = OF_SEVERAL[format_]
    data = write(SEVERAL).encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if packed else data)  # the name need not say so
    file = read_captions(path)
    assert found(file) == SEVERAL
    assert all(entry.where.startswith(f"{path}:") for entry in file.entries)
    named = path.rename(path.with_name(f"{name}.gz")) if packed else path
    assert found(read_captions(named)) == SEVERAL


@pytest.mark.parametrize("format_", [*OF_SEVERAL, "COCO results"])
def test_candidates_of_every_format(format_: str, tmp_path: Path) -> None:
    name, write = {**OF_SEVERAL, "COCO results": ("a.json", coco_results)}[format_]
    path = tmp_path / name
    path.write_text(write(SINGLE), encoding="utf-8")
    assert found(read_candidates(path)) == SINGLE


@pytest.mark.parametrize("format_", ["COCO captions", "Karpathy", "JSONL"])
def test_candidates_may_be_several(format_: str, tmp_path: Path) -> None:
    name, write = OF_SEVERAL[format_]
    path = tmp_path / name
    path.write_text(write(SEVERAL), encoding="utf-8")
    assert found(read_candidates(path)) == SEVERAL


def test_a_folder_of_texts(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "b.txt").write_text("\ufeffa dog\r\n\r\n a cat \u2028 too\n", encoding="utf-8")
    (tmp_path / "inside" / "a.TXT").write_text("a bird", encoding="utf-8")
    (tmp_path / "empty.txt").touch()
    (tmp_path / ".hidden.txt").write_text("not this one")
    (tmp_path / "b.jpg").touch()
    expected = {"b": ("a dog", "a cat \u2028 too"), "empty": ("",), "inside/a": ("a bird",)}
    assert found(read_candidates(tmp_path)) == expected
    assert found(read_captions(tmp_path)) == expected


@settings(max_examples=40)
@given(
    captions=st.dictionaries(
        st.integers(0, 10**12).map(str),
        st.lists(st.text(st.characters(codec="utf-8"), max_size=12), min_size=1, max_size=3),
        min_size=1,
        max_size=5,
    ),
    indent=st.sampled_from([None, 1]),
)
def test_no_text_is_lost_or_shifted_whatever_it_holds(
    tmp_path_factory: pytest.TempPathFactory, captions: Captions, indent: int | None
) -> None:
    path = tmp_path_factory.mktemp("captions") / "a.json"
    expected = {image_id: tuple(texts) for image_id, texts in captions.items()}
    for write in (coco_captions, karpathy):
        path.write_text(
            json.dumps(json.loads(write(captions)), indent=indent, ensure_ascii=indent is None),
            encoding="utf-8",
            newline="\n",
        )
        assert found(read_captions(path)) == expected
    path.write_text(jsonl(captions), encoding="utf-8", newline="\n")
    assert found(read_captions(path)) == expected


def test_blank_lines_marks_and_carriage_returns_are_no_captions(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [{"image_id": number, "caption": f"text\r\u2028 {number}"} for number in range(3)]
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    path.write_bytes(b"\xef\xbb\xbf\r\n" + "\r\n \r\n".join(lines).encode() + b"\r\n\r\n")
    file = read_candidates(path)
    assert found(file) == {str(row["image_id"]): (row["caption"],) for row in rows}
    assert [entry.where for entry in file.entries] == [f"{path}:{number}" for number in (2, 4, 6)]

    path = tmp_path / "a.csv"
    path.write_bytes(b'\xef\xbb\xbfImage,"Caption"\r\n\r\nx.jpg,"two\r\nlines"\r\nin/y.png,\r\n')
    file = read_candidates(path)
    assert [(entry.image_id, entry.captions, entry.name, entry.where) for entry in file.entries] == [
        ("x", ("two\nlines",), "x.jpg", f"{path}:3"),
        ("in/y", ("",), "in/y.png", f"{path}:5"),
    ]


def test_the_first_line_may_be_longer_than_what_is_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "predictions.json"
    rows = [{"image_id": 1, "candidates": ["word " * 5000] * 3}, {"image_id": 2, "candidates": ["b"] * 3}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [len(entry.captions) for entry in read_candidates(path).entries] == [3, 3]


def test_the_caption_comes_first_of_its_candidates(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows: list[dict[str, object]] = [
        {
            "image": "in/x.jpg",
            "image_id": "x",
            "caption": "b",
            "candidates": [{"caption": "a"}, {"caption": "b"}],
        },
        {"image": "y.jpg", "caption": "c", "captions": ["a", "b"], "references": ["r"]},
        {"filename": "z.jpg", "caption": "d"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    file = read_candidates(path)
    assert found(file) == {"x": ("b", "a"), "y": ("c", "a", "b"), "z": ("d",)}
    assert [entry.name for entry in file.entries] == ["in/x.jpg", "y.jpg", "z.jpg"]
    assert found(read_captions(path)) == {"x": ("b",), "y": ("r",), "z": ("d",)}


def test_what_this_program_predicts_can_be_read(tmp_path: Path) -> None:
    from tellapart.captioning import Candidate, Captioned

    path = tmp_path / "a.jsonl"
    image = Captioned(Path("in/x.jpg"), "x", (Candidate("a dog", -1.0), Candidate("a cat", -2.0)))
    path.write_text(json.dumps(image.to_json(model="m")) + "\n")
    assert found(read_candidates(path)) == {"x": ("a dog", "a cat")}


def test_karpathys_restval_is_trained_on_and_tokens_do_for_a_text(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    images = [
        {"filename": "x.jpg", "split": "restval", "sentences": [{"tokens": ["a", "dog"]}]},
        {"filename": "y.jpg", "split": "val", "sentences": []},
    ]
    path.write_text(json.dumps({"images": images}))
    entries = read_captions(path).entries
    assert [(entry.image_id, entry.captions, entry.split) for entry in entries] == [
        ("x", ("a dog",), "train"),
        ("y", (), "val"),
    ]


ROW = '{"image_id": 1, "caption": "a dog"}'
COCO = '{"images": [{"id": 1}],\n"annotations": [%s]}'
BAD: Mapping[str, tuple[str, bytes | str, str]] = {
    "doubled": ("a.jsonl", f"{ROW}\n\n{ROW}", ":3: image '1' stands there twice, first at {path}:1"),
    "number and text": (
        "a.json",
        '[{"image_id": 1, "caption": "a"}, {"image_id": "1", "caption": "a"}]',
        ":1 [1]: image '1' stands there twice, first at {path}:1 [0]",
    ),
    "doubled row": ("a.csv", "image,caption\nx.jpg,a\nx.png,b", ":3: image 'x' stands there twice"),
    "doubled image": (
        "a.json",
        '{"images": [{"id": 1},\n{"id": 1}], "annotations": []}',
        ":2 images[1]: image '1' stands there twice, first at {path}:1 images[0]",
    ),
    "doubled key": (
        "a.jsonl",
        '{"image_id": 1, "caption": "a", "caption": "b"}',
        ":1: the line is not JSON: the key 'caption' stands there twice",
    ),
    "doubled key of a document": (
        "a.json",
        '[\n{"image_id": 1, "image_id": 2, "caption": "a"}]',
        ":2: not JSON: the key 'image_id' stands there twice",
    ),
    "no id": ("a.jsonl", '{"caption": "a"}', ":1: there is no image id"),
    "id NaN": ("a.jsonl", '{"image_id": NaN, "caption": "a"}', ":1: image_id is nan, which is no image's id"),
    "id true": ("a.jsonl", '{"image_id": true, "caption": "a"}', ":1: image_id is True"),
    "id blank": ("a.csv", "image_id,caption\n ,a", ":2: image_id is ' '"),
    "half an id": ("a.jsonl", '{"image_id": "\\ud800", "caption": "a"}', ":1: image_id is '\\ud800'"),
    "no caption": ("a.jsonl", '{"image_id": 1}', ":1: image '1' has no caption"),
    "null caption": ("a.jsonl", '{"image_id": 1, "caption": null}', ":1: image '1' has no caption"),
    "no candidates": ("a.jsonl", '{"image_id": 1, "candidates": []}', ":1: image '1' has no caption"),
    "no annotation": ("a.json", COCO % "", ":1 images[0]: image '1' has no caption"),
    "caption NaN": (
        "a.json",
        '[{"image_id": 1, "caption": NaN}]',
        ":1 [0]: a caption of image '1' is nan, which is no text",
    ),
    "caption number": ("a.jsonl", '{"image_id": 1, "captions": ["a", 5]}', ":1: a caption of image '1' is 5"),
    "annotation without caption": (
        "a.json",
        COCO % '{"image_id": 1, "bbox": [1]}',
        ":2 annotations[0]: a caption of image '1' is None",
    ),
    "half a character": (
        "a.jsonl",
        '{"image_id": 1, "caption": "a \\udc00"}',
        ":1: a caption of image '1' holds half a character",
    ),
    "unlisted": (
        "a.json",
        COCO % '{"image_id": 2, "caption": "a"}',
        ":2 annotations[0]: its image '2' is not among the images",
    ),
    "not JSON": ("a.jsonl", f"{ROW}\n{ROW[:-1]}", ":2: the line is not JSON"),
    "too deep": ("a.jsonl", "[" * 100_000, ":1: the line is not JSON"),
    "not an object": ("a.jsonl", f"{ROW}\n[1]", ":2: the line is not a JSON object"),
    "broken first line": ("a.json", '{"image_id": 1, "caption": "a\n' + ROW, ":1: the line is not JSON"),
    "broken document": ("a.json", '[{"image_id": 1},\n{', ":2: not JSON"),
    "other document": ("a.json", '{"info": {},\n"licenses": []}', ": neither 'images' nor 'annotations'"),
    "not UTF-8": (
        "a.jsonl",
        ROW.encode() + b'\n{"image_id": 2, "caption": "\xe9"}',
        ":2: the line is not UTF-8",
    ),
    "UTF-16": ("a.json", ROW.encode("utf-16"), ":1: the line is not UTF-8"),
    "CSV not UTF-8": ("a.csv", b"image,caption\nx,caf\xe9", ":2: the line is not UTF-8"),
    "no header": ("a.csv", "x.jpg,a dog", ":1: the header names no column"),
    "two columns of captions": ("a.csv", "image,caption,caption\nx,a,b", ":1: the header names"),
    "broken header": ("a.csv", 'image,"caption\n', ":1: the row is not CSV"),
    "open quote": ("a.csv", 'image,caption\nx,a\ny,"b\n', ":3: the row is not CSV"),
    "bare comma": ("a.csv", "image,caption\nx,a, b", ":2: the row has 3 fields and the header 2"),
    "cut gzip": ("a.json", gzip.compress(ROW.encode() * 99)[:-20], " is a damaged gzip file"),
    "bad gzip": ("a.json.gz", b"\x1f\x8b" + bytes(50), " is a damaged gzip file"),
    "empty": ("a.jsonl", "\n\n", ": there is no caption in it"),
    "empty list": ("a.json", "[]", ": there is no caption in it"),
    "something else": ("a.bin", b"\x89PNG\r\n", ": this is no file of captions that we know"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_is_wrong_is_said_with_file_and_line(kind: str, tmp_path: Path) -> None:
    name, content, said = BAD[kind]
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(TellapartError) as caught:
        read_candidates(path)
    assert caught.value.problem.startswith(str(path) + said.format(path=path))
    assert caught.value.hint


@pytest.mark.parametrize("name", ["nowhere.json", "nowhere.jsonl", "nowhere"])
def test_a_file_that_is_not_there(name: str, tmp_path: Path) -> None:
    with pytest.raises(TellapartError, match="does not exist"):
        read_captions(tmp_path / name)


def test_a_folder_without_texts_or_with_a_name_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(TellapartError, match="there is no caption in it"):
        read_candidates(tmp_path)
    (tmp_path / "caf\udce9.txt").write_text("a dog")
    with pytest.raises(TellapartError, match="is not UTF-8"):
        read_candidates(tmp_path)


def test_an_image_may_be_without_references_until_somebody_asks_for_them(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(COCO % "")
    assert found(read_captions(path)) == {"1": ()}


def test_val2017_is_read_whole(real_data: Path) -> None:
    file = read_captions(real_data / "text" / "coco_captions_val2017.json.gz")
    assert len(file.entries) == 5000
    assert sum(len(entry.captions) for entry in file.entries) == 25_014
    karpathys = read_captions(real_data / "flickr8k" / "dataset_flickr8k.json.gz")
    assert {entry.split for entry in karpathys.entries} == {"train", "val", "test"}
