from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tellapart.data.readers import FORMATS, read_dataset
from tellapart.errors import TellapartError

KARPATHY = json.dumps({"images": [{"filename": "a.jpg", "split": "val", "sentences": [{"raw": "A dog"}]}]})
COCO = json.dumps(
    {
        "info": {},
        "images": [{"id": 1, "file_name": "a.jpg"}],
        "annotations": [{"image_id": 1, "caption": "A dog"}],
    }
)
LATE_IMAGES = json.dumps(
    {
        "annotations": [{"image_id": 1, "caption": "A dog"}],
        "info": "-" * 100_000,
        "images": json.loads(COCO)["images"],
    }
)
JSONL = '{"image": "a.jpg", "captions": ["A dog"]}\n{"image": "b.jpg", "captions": ["A cat"]}\n'
TABLE = "image,caption\na.jpg,A dog\n"
TOKENS = "a.jpg#0\tA dog\n"

CONTENT = {"karpathy": KARPATHY, "coco": COCO, "flickr": TABLE, "jsonl": JSONL, "csv": TABLE}


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("dataset.json", KARPATHY, "karpathy"),
        ("dataset", KARPATHY, "karpathy"),
        ("captions.json", COCO, "coco"),
        ("captions.json", LATE_IMAGES, "coco"),
        ("captions.jsonl", JSONL, "jsonl"),
        ("captions.JSONL", JSONL, "jsonl"),
        ("captions.json", JSONL, "jsonl"),
        ("captions.ndjson", "\n" + JSONL, "jsonl"),
        ("captions.txt", TABLE, "flickr"),
        ("captions.txt", TABLE.replace("\n", "\r\n"), "flickr"),
        ("Flickr8k.token.txt", TOKENS, "flickr"),
        ("results.token", TOKENS, "flickr"),
        ("captions.csv", TABLE, "csv"),
        ("captions.txt", "split,caption,path\ntest,A dog,a.jpg\n", "csv"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_tells_the_format(tmp_path: Path, name: str, text: str, expected: str, packed: bool) -> None:
    path = tmp_path / (f"{name}.gz" if packed else name)
    data = b"\xef\xbb\xbf" + text.encode()
    path.write_bytes(gzip.compress(data) if packed else data)

    found = read_dataset(path)

    assert found == read_dataset(path, format=expected)
    assert found.strict()[0].captions == ("A dog",)


def test_a_folder_is_a_format(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").touch()
    (tmp_path / "a.txt").write_text("A dog")

    assert read_dataset(tmp_path).strict()[0].captions == ("A dog",)
    assert read_dataset(tmp_path, format="folder") == read_dataset(tmp_path)


@pytest.mark.parametrize(
    "data", [b"", b"hello\n", b'{"words": []}', b"[1]", b"\xff\xd8\xff\xe0\r\n", b"{" * 70_000]
)
def test_what_has_no_known_format_is_an_error_that_lists_them(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "captions.dat"
    path.write_bytes(data)

    with pytest.raises(TellapartError, match="the format cannot be told") as caught:
        read_dataset(path)

    assert str(path) in caught.value.problem
    assert all(name in caught.value.hint for name in FORMATS)


def test_an_unknown_format_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TellapartError, match="no format is called 'karpaty'") as caught:
        read_dataset(tmp_path, format="karpaty")

    assert "'karpathy'" in caught.value.hint


@pytest.mark.parametrize("format_", ["auto", *CONTENT])
def test_a_missing_file_is_an_error(tmp_path: Path, format_: str) -> None:
    with pytest.raises(TellapartError, match=r"nowhere\.json does not exist"):
        read_dataset(tmp_path / "nowhere.json", format=format_)


@pytest.mark.parametrize("format_", ["auto", "coco"])
def test_what_cannot_be_read_is_an_error(tmp_path: Path, format_: str) -> None:
    path = tmp_path / "cut.json.gz"
    path.write_bytes(gzip.compress(COCO.encode())[:-12])
    with pytest.raises(TellapartError, match="is a damaged gzip file"):
        read_dataset(path, format=format_)
    with pytest.raises(TellapartError, match="cannot be read"):
        read_dataset(Path("a\0.json"), format=format_)


def test_a_folder_read_as_a_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TellapartError, match="cannot be read: Is a directory"):
        read_dataset(tmp_path, format="jsonl")


@pytest.mark.parametrize("format_", CONTENT)
def test_pictures_are_where_the_user_says_or_in_images_or_beside(tmp_path: Path, format_: str) -> None:
    path = tmp_path / "set" / "captions"
    path.parent.mkdir()
    path.write_text(CONTENT[format_])
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def place(images: Path | None) -> Path:
        return read_dataset(path, format=format_, images=images).strict()[0].path

    assert place(None) == tmp_path / "set" / "a.jpg"
    (tmp_path / "set" / "images").mkdir()
    assert place(None) == tmp_path / "set" / "images" / "a.jpg"
    assert place(elsewhere) == elsewhere / "a.jpg"


def test_names_that_begin_with_images_are_taken_from_the_files_folder(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    path = tmp_path / "captions.jsonl"
    path.write_text('{"image": "images/a.jpg", "captions": ["A dog"]}')

    (example,) = read_dataset(path).strict()

    assert example.path == tmp_path / "images" / "a.jpg"
    assert example.image_id == "images/a"


def test_an_absolute_name_stays(tmp_path: Path) -> None:
    path = tmp_path / "captions.jsonl"
    path.write_text('{"image": "/photos/a.jpg", "captions": ["A dog"]}')

    assert read_dataset(path).strict()[0].path == Path("/photos/a.jpg")


def test_a_wrong_images_folder_is_one_error(tmp_path: Path) -> None:
    path = tmp_path / "captions.jsonl"
    path.write_text(JSONL)

    with pytest.raises(TellapartError, match="nowhere is not a folder"):
        read_dataset(path, images=tmp_path / "nowhere")


def test_a_folder_has_its_pictures_inside(tmp_path: Path) -> None:
    with pytest.raises(TellapartError, match=r"pictures stand beside their \.txt files"):
        read_dataset(tmp_path, images=tmp_path)


def test_messages_call_the_file_as_the_user_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("captions.jsonl").write_text(JSONL + "{}\n")

    with pytest.raises(TellapartError) as caught:
        read_dataset(Path("captions.jsonl")).strict()

    assert caught.value.problem.startswith("captions.jsonl:3: image is not")
