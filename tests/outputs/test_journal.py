"""A journal holds what was added to it, cut anywhere; and it keeps its hands off other files."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.outputs.faults import names_in, read_only

from tellapart.data.caption_file import read_candidates
from tellapart.data.readers import read_dataset
from tellapart.errors import TellapartError
from tellapart.outputs.journal import Record, fingerprint, open_journal
from tellapart.written_captions import read_written

SETTINGS: dict[str, object] = {"model": "default", "seed": 0, "apart": "margin"}
NAMES = ["a", "b b", "ž 猫", "two\nlines", "sub/c"]


def record(name: str, *, caption: str = "", key: str = "k") -> Record:
    about = {
        "candidates": [
            {"caption": caption or f"a {name}", "logprob": -1.5},
            {"caption": "other", "logprob": -2},
        ],
        "neighbours": ["x", "y"],
        "attempts": [],
    }
    return Record(Path("photos") / f"{name}.jpg", name, key, caption or f"a {name}", about)


def write(path: Path, *records: Record) -> None:
    with open_journal(path, SETTINGS) as journal:
        for each in records:
            journal.add(each)


def ids_in(path: Path) -> list[str]:
    return [json.loads(line)["image_id"] for line in path.read_bytes().splitlines()]


def test_what_was_added_holds_when_the_journal_is_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "captions.jsonl"
    write(path, *map(record, NAMES))
    with open_journal(path, SETTINGS) as journal:
        assert len(journal) == len(NAMES)
        for name in NAMES:
            assert journal.holds(name, "k")
            assert not journal.holds(name, "another")
            fields = journal.fields(name)
            assert fields is not None
            assert fields["caption"] == f"a {name}"
            assert fields["neighbours"] == ["x", "y"]
            assert fields["model"] == "default"
        assert "z" not in journal
        assert journal.fields("z") is None
        assert not journal.holds("z", "k")


def test_a_line_is_what_the_other_verbs_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "captions.jsonl"
    pictures = tmp_path / "photos"
    pictures.mkdir()
    for name in ("a", "b b"):
        (pictures / f"{name}.jpg").touch()
    write(path, record("a"), record("b b", caption="ein Hündchen"))
    entries = read_candidates(path).entries
    assert [entry.image_id for entry in entries] == ["a", "b b"]
    assert entries[1].captions == ("ein Hündchen", "other")
    assert entries[1].name == str(Path("photos") / "b b.jpg")
    reading = read_dataset(path, images=tmp_path)
    assert reading.problems == []
    assert [example.captions for example in reading.examples] == [("a a",), ("ein Hündchen",)]
    monkeypatch.chdir(tmp_path)
    assert read_written(path).captioner == "default"
    assert "Hündchen".encode() in path.read_bytes()


def test_a_name_that_is_no_text_is_kept_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "captions.jsonl"
    name = "caf\udce9.jpg"
    write(path, Record(Path(name), "caf\\xe9", "k", "coffee"))
    with open_journal(path, SETTINGS) as journal:
        fields = journal.fields("caf\\xe9")
        assert fields is not None
        assert fields["image"] == name
    assert read_candidates(path).entries[0].captions == ("coffee",)


@settings(max_examples=50)
@given(data=st.data())
def test_cut_anywhere_it_holds_the_records_before(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "cut.jsonl"
    path.unlink(missing_ok=True)
    captions = data.draw(st.lists(st.text(), min_size=1, max_size=4))
    write(path, *(Record(Path(f"{n}.jpg"), str(n), "k", text) for n, text in enumerate(captions)))
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    path.unlink()  # to write over it would make the disk work
    path.write_bytes(whole[:cut])
    ends = [place for place, sign in enumerate(whole) if sign == ord("\n")]
    left = sum(end <= cut for end in ends)  # a line that lacks nothing but its end counts
    with open_journal(path, SETTINGS) as journal:
        assert [journal.holds(str(n), "k") for n in range(len(captions))] == [
            n < left for n in range(len(captions))
        ]
        for number in range(left, len(captions)):
            journal.add(Record(Path(f"{number}.jpg"), str(number), "k", captions[number]))
    assert path.read_bytes() == whole


def test_every_cut_of_a_file_is_mended(tmp_path: Path) -> None:
    path = tmp_path / "captions.jsonl"
    write(path, *(Record(Path(f"{name}.jpg"), name, "k", name) for name in ("a", "ž 猫")))
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        with open_journal(path, SETTINGS) as journal:
            expected = 2 * (cut >= len(whole) - 1) or int(cut >= whole.index(b"\n"))
            assert len(journal) == expected
        assert whole.startswith(path.read_bytes())
        assert path.read_bytes().endswith(b"\n") or not path.read_bytes()


def test_zeros_after_a_loss_of_power_are_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "captions.jsonl"
    write(path, record("a"))
    whole = path.read_bytes()
    path.write_bytes(whole + bytes(100))
    write(path)
    assert path.read_bytes() == whole


def test_another_key_or_other_settings_do_not_hold(tmp_path: Path) -> None:
    path = tmp_path / "captions.jsonl"
    write(path, record("a"))
    for changed in ({"seed": 1}, {"apart": "off"}, {"beam": 3}):
        with open_journal(path, {**SETTINGS, **changed}) as journal:
            assert not journal.holds("a", "k")
            with pytest.raises(TellapartError, match=r"the caption of 'a' was made with \w+") as caught:
                journal.refuse_other_settings()
            assert "another file" in caught.value.hint
    with open_journal(path, SETTINGS) as journal:
        journal.refuse_other_settings()
        assert journal.holds("a", "k")


def test_at_the_end_there_is_one_line_a_picture_in_order(tmp_path: Path) -> None:
    path = tmp_path / "captions.jsonl"
    write(path, record("c"), record("gone"), record("a"), record("stranger"))
    path.chmod(0o640)
    with open_journal(path, SETTINGS) as journal:
        journal.add(record("a", key="k2", caption="better"))
        journal.add(record("b"))
        journal.add(record("a", key="k3", caption="best"))
        assert journal.earlier("a") == ("better", "a a")
        assert ids_in(path) == ["c", "gone", "a", "stranger", "a", "b", "a"]
        journal.finish(["a", "b", "c", "never captioned"], gone=["gone"])
        assert ids_in(path) == ["a", "b", "c", "stranger"]
        assert journal.earlier("a") == ()
        assert journal.holds("a", "k3")
        journal.add(record("d"))  # it can be gone on with
        fields = journal.fields("a")
        assert fields is not None
        assert fields["caption"] == "best"
    assert ids_in(path) == ["a", "b", "c", "stranger", "d"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert len(read_candidates(path).entries) == 5
    assert names_in(tmp_path) == ["captions.jsonl"]


def test_a_file_in_order_is_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "captions.jsonl"
    write(path, record("b"), record("a"))
    with open_journal(path, SETTINGS) as journal:
        journal.finish(["a", "b"])
        assert ids_in(path) == ["a", "b"]
        before = path.stat()
        journal.finish(["a", "b"])
        assert path.stat() == before
        journal.finish(["a"], gone=["b"])
        assert ids_in(path) == ["a"]
        before = path.stat()
        journal.finish(["a"])
    assert path.stat() == before


def test_earlier_captions_are_known_after_a_kill_too(tmp_path: Path) -> None:
    path = tmp_path / "captions.jsonl"
    write(path, record("a", caption="one"))
    write(path, record("a", caption="two", key="k2"))
    write(path, record("a", caption="three", key="k3"))
    with open_journal(path, SETTINGS) as journal:
        assert journal.earlier("a") == ("two", "one")
        assert journal.holds("a", "k3")


@pytest.mark.parametrize(
    "text",
    [
        '{"image_id": "a", "caption": "x"}\n',
        '{"image_id": "a", "caption": "x"}',
        '{"image_id": "a", "capt',
        '[{"image_id": 1, "caption": "x"}]\n',
        "image,caption\na.jpg,x\n",
        "\x89PNG\r\n",
        '{"journal": 2, "image": "a.jpg", "image_id": "a", "key": "k", "caption": "x"}\n',
        '{"journal": 1, "image": "a.jpg", "image_id": "a", "caption": "x"}\n',
        '{"journal": 1, "image": "a", "image_id": "a", "key": "k", "caption": "x"}\nnonsense\n',
        '{"journal": 1, "image": "a", "image_id": "a", "key": "k", "caption": "x"}\n{"other": 1}',
    ],
)
def test_a_file_of_others_is_left_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "theirs.jsonl"
    path.write_bytes(text.encode())
    with pytest.raises(TellapartError, match=r"theirs\.jsonl"):
        write(path, record("a"))
    assert path.read_bytes() == text.encode()


def test_lines_that_another_program_has_written_anew_are_read(tmp_path: Path) -> None:
    path = tmp_path / "captions.jsonl"
    write(path, record("a"), record("b"))
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("\r\n".join(json.dumps(row, separators=(",", ":"), sort_keys=True) for row in rows))
    with open_journal(path, SETTINGS) as journal:
        assert journal.holds("a", "k")
        assert journal.holds("b", "k")
        journal.add(record("c"))
    assert ids_in(path) == ["a", "b", "c"]


def test_two_writers_are_one_too_many(tmp_path: Path) -> None:
    path = tmp_path / "captions.jsonl"
    with open_journal(path, SETTINGS) as journal:
        for turn in range(3):
            with pytest.raises(TellapartError, match="another process is writing"):
                write(path, record("b"))
            journal.add(record("a", key=str(turn)))
            journal.finish([])  # puts another file in the place of the first, which has to be locked too
    write(path, record("b"))
    assert ids_in(path) == ["a", "b"]


@pytest.mark.parametrize("how", ["replaced", "removed", "longer"])
def test_a_file_that_another_program_saves_meanwhile_is_said(tmp_path: Path, how: str) -> None:
    path = tmp_path / "captions.jsonl"
    with open_journal(path, SETTINGS) as journal:
        journal.add(record("a"))
        if how == "longer":
            with path.open("a") as file:
                file.write("\n")
        else:
            path.rename(tmp_path / "aside")
        if how == "replaced":
            path.write_text("mine\n")
        with pytest.raises(TellapartError, match="changed by another program"):
            journal.add(record("b"))
        with pytest.raises(TellapartError, match="changed by another program"):
            journal.finish(["b", "a"])
    assert how != "replaced" or path.read_text() == "mine\n"


def test_nothing_is_left_where_nothing_was_written(tmp_path: Path) -> None:
    write(tmp_path / "captions.jsonl")
    assert names_in(tmp_path) == []
    (tmp_path / "empty.jsonl").touch()
    write(tmp_path / "empty.jsonl")
    assert names_in(tmp_path) == ["empty.jsonl"]


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_what_is_no_file_is_refused(tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(tmp_path / "captions.jsonl")
    with pytest.raises(TellapartError, match="is not a file"):
        write(tmp_path / "captions.jsonl", record("a"))


def test_a_read_only_folder_is_said(tmp_path: Path) -> None:
    with read_only(tmp_path), pytest.raises(TellapartError, match="cannot be written"):
        write(tmp_path / "captions.jsonl", record("a"))


def test_two_pictures_of_one_name_are_told(tmp_path: Path) -> None:
    with open_journal(tmp_path / "captions.jsonl", SETTINGS) as journal:
        journal.add(Record(Path("a.jpg"), "a", "k", "x"))
        with pytest.raises(TellapartError, match=r"a\.png and a\.jpg are both called 'a'"):
            journal.add(Record(Path("a.png"), "a", "k", "y"))


def test_a_fingerprint_is_of_all_parts_in_any_order() -> None:
    parts = {"digest": "d", "neighbours": ["a", "b"], "beam": 3}
    assert fingerprint(parts) == fingerprint(dict(reversed(parts.items())))
    for changed in ({"digest": "e"}, {"neighbours": ["b", "a"]}, {"beam": "3"}, {"ž\udce9": 1}):
        assert fingerprint({**parts, **changed}) != fingerprint(parts)
