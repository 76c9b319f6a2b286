from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from tellapart.data.readers import read_dataset, read_msrvtt
from tellapart.errors import TellapartError

VIDEOS = [
    {"video_id": "video7", "split": "train", "category": 9},
    {"video_id": "video2", "split": "validate", "category": 1},
]
SENTENCES = [
    {"video_id": "video2", "caption": "a man sings", "sen_id": 0},
    {"video_id": "video7", "caption": " a dog runs ", "sen_id": 1},
    {"video_id": "video2", "caption": "someone is singing", "sen_id": 2},
]
DOCUMENT = {"info": {"year": "2016"}, "videos": VIDEOS, "sentences": SENTENCES}


def packed(path: Path, *members: tuple[str, str | bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members:
            file.writestr(name, data)
    return path


def write(folder: Path, document: object = DOCUMENT) -> Path:
    return packed(folder / "annotation.zip", ("readme.txt", "hi"), ("data.json", json.dumps(document)))


def test_reads_videos_and_sentences_of_a_zip(tmp_path: Path) -> None:
    first, second = read_msrvtt(write(tmp_path)).strict()

    assert (first.image_id, first.captions, first.split) == ("video7", ("a dog runs",), "train")
    assert (second.image_id, second.split) == ("video2", "val")
    assert second.captions == ("a man sings", "someone is singing")
    assert first.path == tmp_path / "video7.mp4"
    assert first.where == f"{tmp_path / 'annotation.zip'}/data.json"


@pytest.mark.parametrize("indent", [None, 1])
def test_the_json_alone_is_as_good_as_the_zip(tmp_path: Path, indent: int | None) -> None:
    plain = tmp_path / "data.json"
    plain.write_bytes(b"\xef\xbb\xbf" + json.dumps(DOCUMENT, indent=indent).encode())

    found = read_dataset(plain)

    zipped = read_dataset(write(tmp_path))
    assert [(e.image_id, e.captions) for e in found.strict()] == [
        (e.image_id, e.captions) for e in zipped.strict()
    ]
    assert read_dataset(plain, format="msrvtt") == found


def test_what_macos_adds_is_no_second_file(tmp_path: Path) -> None:
    path = packed(
        tmp_path / "a.zip", ("data.json", json.dumps(DOCUMENT)), ("__MACOSX/._data.json", b"\0\5\x16\7")
    )

    assert len(read_msrvtt(path).strict()) == 2


def test_karpathys_captions_may_speak_of_videos(tmp_path: Path) -> None:
    image = {"filename": "a.jpg", "split": "val", "sentences": [{"tokens": ["two", "videos"]}]}
    path = tmp_path / "dataset.json"
    path.write_text(json.dumps({"images": [image]}))

    assert read_dataset(path).strict()[0].captions == ("two videos",)


@pytest.mark.parametrize(
    ("sentence", "what"),
    [
        ({"video_id": "video2", "caption": " "}, "sentences[3].caption is an empty caption"),
        ({"video_id": "video2"}, "sentences[3].caption is not a string"),
        ({"video_id": "video3", "caption": "x"}, "sentences[3] belongs to video3, which is not among"),
        ("x", "sentences[3] belongs to None, which is not among"),
    ],
)
def test_a_bad_sentence_is_a_problem_and_the_others_are_read(
    tmp_path: Path, sentence: object, what: str
) -> None:
    path = write(tmp_path, DOCUMENT | {"sentences": [*SENTENCES, sentence]})

    reading = read_msrvtt(path)

    assert [len(example.captions) for example in reading.examples] == [1, 2]
    (problem,) = reading.problems
    assert problem.what.startswith(what)
    assert problem.where == f"{path}/data.json"


@pytest.mark.parametrize(
    ("video", "what"),
    [
        ({"video_id": "video9", "split": "train"}, "video9 has no caption"),
        ({"video_id": 1.5, "split": "train"}, "videos[2].video_id is neither a whole number nor a string"),
        ({"video_id": "video9", "split": "trian"}, "videos[2].split is 'trian', which is no split"),
        ("video9", "videos[2].video_id is neither a whole number nor a string"),
        (VIDEOS[0], "videos[2]: video7 stands there twice"),
    ],
)
def test_a_bad_video_is_a_problem_and_the_others_are_read(tmp_path: Path, video: object, what: str) -> None:
    reading = read_msrvtt(write(tmp_path, DOCUMENT | {"videos": [*VIDEOS, video]}))

    assert [example.image_id for example in reading.examples] == ["video7", "video2"]
    (problem,) = reading.problems
    assert problem.what.startswith(what)


@pytest.mark.parametrize("document", [[], {"sentences": SENTENCES}, {"videos": {}, "sentences": []}])
def test_another_document_is_an_error(tmp_path: Path, document: object) -> None:
    with pytest.raises(TellapartError, match=r"data\.json: there is no list 'videos'") as caught:
        read_msrvtt(write(tmp_path, document))

    assert "format" in caught.value.hint


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b'{"videos": [}', r"data\.json:1: not JSON: Expecting value \(column 13\)"),
        (b'{"videos": [],\n "x": "\xff"}', r"data\.json:2: the line is not UTF-8 text"),
        (b'{"a": 1, "a": 2}', r"data\.json: not JSON that can be read: the key 'a' stands there twice"),
        (b"[" * 100_000, r"data\.json: not JSON that can be read"),
    ],
)
def test_what_is_no_json_is_an_error_with_its_line(tmp_path: Path, data: bytes, problem: str) -> None:
    with pytest.raises(TellapartError, match=problem):
        read_msrvtt(packed(tmp_path / "a.zip", ("data.json", data)))


@pytest.mark.parametrize(
    ("members", "held"),
    [([("readme.txt", "x")], "none"), ([("a.json", "{}"), ("b.json", "{}")], "a.json, b.json")],
)
def test_a_zip_without_one_json_is_an_error(
    tmp_path: Path, members: list[tuple[str, str]], held: str
) -> None:
    with pytest.raises(TellapartError, match=f"holds one JSON file, this one {held}"):
        read_msrvtt(packed(tmp_path / "a.zip", *members))


@pytest.mark.parametrize("keep", [4, 40, 150, -30])
def test_a_zip_that_was_cut_is_an_error(tmp_path: Path, keep: int) -> None:
    path = write(tmp_path)
    path.write_bytes(path.read_bytes()[:keep])

    with pytest.raises(TellapartError, match=r"annotation\.zip is a damaged zip file"):
        read_msrvtt(path)


def test_a_zip_with_a_wrong_byte_is_an_error(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.zip", ("data.json", json.dumps(DOCUMENT)))
    data = bytearray(path.read_bytes())
    data[60] ^= 0xFF
    path.write_bytes(data)

    with pytest.raises(TellapartError, match=r"a\.zip is a damaged zip file"):
        read_msrvtt(path)


@pytest.mark.parametrize("change", [(6, 1), (8, 97)], ids=["password", "unknown packing"])
def test_a_zip_that_cannot_be_unpacked_is_an_error(tmp_path: Path, change: tuple[int, int]) -> None:
    place, value = change
    path = packed(tmp_path / "a.zip", ("data.json", json.dumps(DOCUMENT)))
    data = bytearray(path.read_bytes())
    entry = data.index(b"PK\1\2")
    data[place] = data[entry + place + 2] = value
    path.write_bytes(data)

    with pytest.raises(TellapartError, match=r"a\.zip cannot be unpacked"):
        read_msrvtt(path)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TellapartError, match=r"nowhere\.zip does not exist"):
        read_dataset(tmp_path / "nowhere.zip", format="msrvtt")


def test_reads_msrvtt(real_data: Path) -> None:
    learning = read_dataset(real_data / "text" / "train_val_annotation.zip", format="msrvtt").strict()
    testing = read_dataset(real_data / "text" / "test_videodatainfo.json.zip").strict()

    splits = [example.split for example in learning]
    assert (splits.count("train"), splits.count("val"), len(splits)) == (6513, 497, 7010)
    assert {example.split for example in testing} == {"test"}
    assert len(testing) == 2990
    assert {len(example.captions) for example in (*learning, *testing)} == {20}
    by_id = {example.image_id: example for example in learning}
    assert by_id["video2960"].captions[1] == "a cartoon character runs around inside of a video game"
