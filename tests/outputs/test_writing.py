"""Files are replaced in one step or not at all, whatever they are called and whatever goes wrong."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from tests.outputs.faults import LIMIT, names_in, outcome, program, read_only, small_disk

from tellapart.errors import TellapartError
from tellapart.outputs.writing import in_one_line, replaceable, replacement

NAMES = ["a b.txt", "žluťoučký 猫.txt", "two\nlines.txt", "caf\udce9.txt", "-rf.txt", "x" * 251 + ".txt"]


def write(path: Path, text: str) -> None:
    with replacement(path) as temporary:
        temporary.write_text(text)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_may_be_called_anything(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    for text in ("first", "second"):
        write(path, text)
        assert path.read_text() == text
    assert names_in(tmp_path) == [name]


def test_permissions_of_the_old_file_go_over(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write(path, "old")
    path.chmod(0o640)
    write(path, "new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_behind_a_link_the_file_itself_is_replaced(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_text("old")
    link.symlink_to("file")
    write(link, "new")
    assert link.is_symlink()
    assert path.read_text() == "new"


def make_dangling(path: Path) -> None:
    path.symlink_to("nowhere")


def make_circle(path: Path) -> None:
    path.symlink_to(path.name)


def make_protected(path: Path) -> None:
    path.write_text("old")
    path.chmod(0o444)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (Path.mkdir, "is not a file"),
        (os.mkfifo, "is not a file"),
        (make_dangling, "a link to a file that does not exist"),
        (make_circle, "cannot be written"),
        (make_protected, "write-protected"),
    ],
    ids=["folder", "pipe", "dangling link", "circle of links", "write-protected file"],
)
def test_what_is_no_file_to_be_replaced_stays(tmp_path: Path, make: object, said: str) -> None:
    path = tmp_path / "file"
    assert callable(make)
    make(path)
    before = path.lstat()
    with pytest.raises(TellapartError, match=said):
        write(path, "new")
    assert path.lstat() == before
    assert names_in(tmp_path) == ["file"]


def test_a_file_that_is_not_there_may_be_written(tmp_path: Path) -> None:
    assert replaceable(tmp_path / "none") == (tmp_path / "none", None)


def test_a_folder_that_may_not_be_written_to_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "old").write_text("old")
    with read_only(folder):
        for name in ("old", "new"):
            with pytest.raises(TellapartError, match=r"cannot be written: .*(Read-only|denied)") as caught:
                write(folder / name, "new")
            assert "another place" in caught.value.hint
        assert names_in(folder) == ["old"]
    assert (folder / "old").read_text() == "old"


def test_a_full_disk_costs_nothing_that_is_there(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", kilobytes=64) as disk:
        write(disk / "file", "old")
        with pytest.raises(TellapartError, match="No space left") as caught:
            write(disk / "file", "new" * 100_000)
        assert "free some disk space" in caught.value.hint
        assert (disk / "file").read_text() == "old"
        assert names_in(disk) == ["file"]


def test_a_file_that_may_not_grow_costs_nothing_that_is_there(tmp_path: Path) -> None:
    script = """
import sys
from pathlib import Path
from tellapart.errors import TellapartError
from tellapart.outputs.writing import replacement
limit(1000)
try:
    with replacement(Path(sys.argv[1])) as temporary:
        temporary.write_text("new" * 1000)
except TellapartError as error:
    print(error)
"""
    (tmp_path / "file").write_text("old")
    said = outcome(program(LIMIT + script, tmp_path / "file"))
    assert "cannot be written: File too large" in said
    assert "free some disk space" in said
    assert (tmp_path / "file").read_text() == "old"
    assert names_in(tmp_path) == ["file"]


def test_captions_are_one_line_of_text() -> None:
    assert in_one_line("  two\n lines\u2028here ", Path("a.jpg")) == "two lines here"
    with pytest.raises(TellapartError, match="half a character"):
        in_one_line("half \ud83d", Path("a.jpg"))
