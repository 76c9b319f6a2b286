"""A look at a folder sees what the reader of pictures would, in its order, and opens nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tellapart.data.picture_files import find_pictures
from tellapart.errors import TellapartError
from tellapart.retrievers.store.listing import list_pictures, without_ending
from tellapart.retrievers.store.look import look, looking_ahead

NAMES = st.sampled_from(
    [
        *("a", "a b", "a.jpg", "a-b", "a!", "B", "b.PNG", "c.txt", "f.TXT", "d.jpg.bak", "e.", "x.heic"),
        *(".hidden", ".jpg", "é.webp", "größe 写真", "two\nlines.gif", os.fsdecode(b"\xff.jpg"), "z.tiff"),
    ]
)


@settings(max_examples=60)
@given(
    st.sets(
        st.lists(NAMES, min_size=1, max_size=3).map(tuple),
        max_size=14,
    )
)
def test_it_finds_what_the_reader_of_pictures_finds(
    tmp_path_factory: pytest.TempPathFactory, paths: set[tuple[str, ...]]
) -> None:
    folder = tmp_path_factory.mktemp("tree")
    for parts in sorted(paths):
        path = folder.joinpath(*parts)
        if not path.exists() and all(parent.is_dir() or not parent.exists() for parent in path.parents):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"x" * len(parts))
    expected = list(find_pictures([folder]))
    if isinstance(expected[0], TellapartError):
        with pytest.raises(TellapartError) as caught:
            list_pictures(folder)
        assert (caught.value.problem, caught.value.hint) == (expected[0].problem, expected[0].hint)
        return
    listing = list_pictures(folder).in_order()
    assert [folder / name for name in listing.names] == expected
    about = [(folder / name).stat() for name in listing.names]
    assert listing.sizes.tolist() == [each.st_size for each in about]
    assert listing.changed.tolist() == [each.st_mtime_ns for each in about]
    assert listing.problems == []
    assert 0 <= time.time_ns() - listing.when < 10**11
    texts = {path for path in folder.rglob("*") if path.is_file() and path.suffix.lower() == ".txt"}
    hidden = {path for path in texts if any(part[0] == "." for part in path.relative_to(folder).parts)}
    assert {folder / name for name in listing.texts} == texts - hidden


def test_links_pipes_and_folders_that_are_named_like_pictures(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "photos", tmp_path / "elsewhere"
    (folder / "album.jpg").mkdir(parents=True)
    elsewhere.mkdir()
    for path in (folder / "album.jpg" / "in.png", folder / "one.png", elsewhere / "other.png"):
        path.write_bytes(b"12345")
    (folder / "linked.png").symlink_to(elsewhere / "other.png")
    (folder / "linked").symlink_to(elsewhere)
    (folder / "linked folder.jpg").symlink_to(elsewhere)
    (folder / "nowhere.png").symlink_to("gone.png")
    (folder / ".hidden nowhere.png").symlink_to("gone.png")
    os.mkfifo(folder / "pipe.png")

    listing = list_pictures(folder).in_order()

    assert listing.names == ["album.jpg/in.png", "linked.png", "one.png"]
    assert listing.sizes.tolist() == [5, 5, 5]
    assert sorted(error.problem for error in listing.problems) == [
        f"{folder / 'nowhere.png'} is a link to a file that does not exist",
        f"{folder / 'pipe.png'} is not a file",
    ]


def test_the_order_is_that_of_folders_and_not_of_letters(tmp_path: Path) -> None:
    for name in ("a b/1.jpg", "a/1.jpg", "a-b/1.jpg", "a/b/2.jpg", "a.jpg", "a!/x.jpg", "B/1.jpg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    listing = list_pictures(tmp_path)
    ordered = listing.in_order()
    assert [tmp_path / name for name in ordered.names] == list(find_pictures([tmp_path]))
    assert ordered.sizes.tolist() == [len(name) for name in ordered.names]
    assert sorted(listing.names) == sorted(ordered.names)


def test_folders_in_folders_without_end_are_walked_through(tmp_path: Path) -> None:
    folders = [tmp_path]
    for _ in range(1200):  # deeper than Python would call itself
        folders.append(folders[-1] / "f")
        folders[-1].mkdir()
    picture = folders[-1] / "down here.jpg"
    picture.touch()
    names = list_pictures(tmp_path).names
    picture.unlink()
    for folder in reversed(folders):  # nor can Python itself remove them all at once
        folder.rmdir()
    assert names == ["f/" * 1200 + "down here.jpg"]


def test_what_cannot_be_looked_through_is_said(tmp_path: Path) -> None:
    (tmp_path / "file.jpg").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "words.txt").touch()
    for name, said in (
        ("gone", "does not exist"),
        ("file.jpg", "is not a folder"),
        ("empty", "has no pictures in it"),
    ):
        with pytest.raises(TellapartError) as caught:
            list_pictures(tmp_path / name)
        assert caught.value.problem == f"{tmp_path / name} {said}"
        assert caught.value.hint


def test_names_without_their_endings() -> None:
    assert [without_ending(name) for name in ("a/b.c/d.jpg", "x.tar.png", "é.txt")] == [
        "a/b.c/d",
        "x.tar",
        "é",
    ]


AHEAD = """
import pickle, sys
from pathlib import Path
from tellapart.retrievers.store import look

folder, arguments = Path(sys.argv[1]), sys.argv[2:]
look.begin_to_look(arguments)
own = look.look
look.look = lambda folder: print("looks itself") or own(folder)
with look.looking_ahead(folder) as look_now:
    seen = look_now()
    assert look_now() is seen
problems = [str(error) for error in seen.problems]
print([seen.names, seen.texts, list(seen.sizes), list(seen.changed), problems])
"""


def ahead(folder: Path, *arguments: str | Path) -> list[str]:
    """The lines of a program that begins to look where its arguments say, and then asks about a folder."""
    command = [sys.executable, "-c", AHEAD, str(folder), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode().splitlines()


def test_another_process_sees_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "photos -x é"
    (folder / "deep").mkdir(parents=True)
    for name in ("b.jpg", "deep/a.png", "a.txt", "two\nlines.gif", os.fsdecode(b"\xff.jpg")):
        (folder / name).write_bytes(name.encode(errors="surrogateescape"))
    (folder / "nowhere.png").symlink_to("gone")
    seen = look(folder)
    problems = [str(error) for error in seen.problems]
    expected = repr([seen.names, seen.texts, list(seen.sizes), list(seen.changed), problems])
    assert ahead(folder, "a dog", "--retriever", "judge", folder) == [expected]
    assert ahead(folder, "a dog") == ["looks itself", expected]


def test_a_look_at_the_wrong_folder_does_no_harm(tmp_path: Path) -> None:
    for name in ("model", "photos"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.png").touch()
    one, found = ahead(tmp_path / "photos", "a dog", "--retriever", tmp_path / "model", tmp_path / "photos")
    assert one == "looks itself"
    assert found.startswith("[b'photos.png', ")
    assert ahead(tmp_path / "photos", "no folder " * 1000)[0] == "looks itself"


def test_a_process_that_comes_to_grief_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.jpg").touch()
    program = (
        "import os, signal, sys, time\n"
        "from tellapart.retrievers.store import look\n"
        "own, look.look = look.look, lambda folder: time.sleep(100)\n"
        "look.begin_to_look(sys.argv[1:])\n"
        "look.look, folder = own, look.Path(sys.argv[1])\n"
        "os.kill(look._begun[folder].number, signal.SIGKILL)\n"
        "with look.looking_ahead(folder) as look_now:\n"
        "    print(look_now().names)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("b'a.jpg'\n", "")


def test_what_is_wrong_with_the_folder_is_said_all_the_same(tmp_path: Path) -> None:
    for folder, said in ((tmp_path, "has no pictures in it"), (tmp_path / "gone", "does not exist")):
        with looking_ahead(folder) as look_now, pytest.raises(TellapartError, match=said):
            look_now()


def test_nobody_waits_for_a_process_that_was_not_needed(tmp_path: Path) -> None:
    """A folder that takes for ever to look at: the program ends all the same, and so does what it began."""
    slow = (
        "import os, sys, time\n"
        "from tellapart.retrievers.store import look\n"
        "look.look = lambda folder: time.sleep(100)\n"
        "look.begin_to_look(sys.argv[1:])\n"
        "print(look._begun[look.Path(sys.argv[1])].number)\n"
        "try:\n"
        "    with look.looking_ahead(look.Path(sys.argv[1])):\n"
        "        raise KeyError\n"
        "except KeyError:\n"
        "    pass\n"
    )
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", slow, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert time.monotonic() - began < 50
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)
