"""Files are whole or not there: while they are replaced, when a block fails, and when the process dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Event
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tellapart.storage import cache_folder, is_abandoned, left_over, new_file, new_folder, write_text

DIES_HALFWAY = """
import os, signal, sys
from pathlib import Path
from tellapart.storage import new_file

with new_file(Path(sys.argv[1])) as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""

DISK_FILLS = """
import resource, signal, sys
from pathlib import Path
from tellapart.storage import write_text

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
try:
    write_text(Path(sys.argv[1]), "new" * 10_000)
except OSError as error:
    print("refused:", error)
"""


@pytest.fixture(params=[0o022, 0o002, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """A umask for the length of one test."""
    chosen: int = request.param
    before = os.umask(chosen)
    yield chosen
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def names_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def fail_halfway(block: AbstractContextManager[Path], inside: str, fault: type[BaseException]) -> None:
    with block as temporary:
        (temporary / inside).write_text("half")
        raise fault


def test_the_cache_folder_is_the_one_named_or_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELLAPART_CACHE", "/somewhere/else")
    assert cache_folder() == Path("/somewhere/else")
    for unset in ("", None):
        monkeypatch.delenv("TELLAPART_CACHE")
        if unset is not None:
            monkeypatch.setenv("TELLAPART_CACHE", unset)
        monkeypatch.setenv("XDG_CACHE_HOME", "/home/somebody/.cache")
        assert cache_folder() == Path("/home/somebody/.cache/tellapart")


def test_a_new_file_takes_its_place_when_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "down" / "file.txt"
    with new_file(path) as temporary:
        temporary.write_text("first")
        assert temporary.parent == path.parent  # a rename across file systems would not be atomic
        assert not path.exists()
    assert path.read_text() == "first"
    with new_file(path) as temporary:
        temporary.write_text("second")
        assert path.read_text() == "first"
    assert path.read_text() == "second"
    assert names_in(path.parent) == ["file.txt"]


@pytest.mark.parametrize("fault", [OSError, KeyboardInterrupt])
def test_a_failed_block_leaves_the_old_file_and_no_rubbish(
    tmp_path: Path, fault: type[BaseException]
) -> None:
    path = tmp_path / "file.txt"
    for before in ([], ["file.txt"]):
        with pytest.raises(fault):
            fail_halfway(new_file(path), "", fault)
        assert names_in(tmp_path) == before
        path.write_text("old")
    assert path.read_text() == "old"


@pytest.mark.parametrize("fault", [OSError, KeyboardInterrupt])
def test_a_failed_block_leaves_the_old_folder_and_no_rubbish(
    tmp_path: Path, fault: type[BaseException]
) -> None:
    folder = tmp_path / "folder"
    for before in ([], ["folder"]):
        with pytest.raises(fault):
            fail_halfway(new_folder(folder), "half.txt", fault)
        assert names_in(tmp_path) == before
        folder.mkdir(exist_ok=True)
        (folder / "old.txt").write_text("old")
    assert names_in(folder) == ["old.txt"]
    assert (folder / "old.txt").read_text() == "old"


def test_a_new_folder_replaces_the_old_one_with_all_that_is_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "folder"
    for text in ("first", "again"):
        with new_folder(folder) as temporary:
            write_text(temporary / f"{text}.txt", text)
            write_text(temporary / "inner" / "file.txt", text)
            assert not (folder / f"{text}.txt").exists()
        assert names_in(folder) == [f"{text}.txt", "inner"]
        assert (folder / "inner" / "file.txt").read_text() == text
    assert names_in(folder.parent) == ["folder"]


def test_a_reader_never_misses_the_file_nor_sees_half_of_it(tmp_path: Path) -> None:
    path = tmp_path / "file.bin"
    size = 300_000
    path.write_bytes(bytes(size))
    finished = Event()

    def read_on() -> list[tuple[int, set[int]]]:
        seen = []
        while not finished.is_set():
            data = path.read_bytes()
            seen.append((len(data), set(data)))
        return seen

    with ThreadPoolExecutor(1) as pool:
        reader = pool.submit(read_on)
        try:
            for number in range(100):
                with new_file(path) as temporary, temporary.open("wb") as file:
                    for _ in range(3):
                        file.write(bytes([number]) * (size // 3))
                        file.flush()
        finally:
            finished.set()
        seen = reader.result()
    assert {length for length, _ in seen} == {size}
    assert all(len(values) == 1 for _, values in seen)
    assert len({value for _, values in seen for value in values}) > 5, "the reader saw hardly any version"


def test_writers_at_once_leave_one_whole_version(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"

    def write(letter: str) -> None:
        for _ in range(20):
            write_text(path, letter * 50_000)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, "abcd"))
    assert path.read_text() in {letter * 50_000 for letter in "abcd"}
    assert names_in(tmp_path) == ["file.txt"]


def test_permissions_follow_the_umask(tmp_path: Path, umask: int) -> None:
    write_text(tmp_path / "file", "text")
    with new_folder(tmp_path / "folder") as temporary:
        write_text(temporary / "file", "text")
    assert mode(tmp_path / "file") == mode(tmp_path / "folder" / "file") == 0o666 & ~umask
    assert mode(tmp_path / "folder") == 0o777 & ~umask


def test_the_umask_of_the_process_is_left_alone(tmp_path: Path) -> None:
    # Asking for it means changing it, and another thread's files would be open to everybody meanwhile.
    called: list[object] = []

    def watch(_frame: FrameType, event: str, function: object) -> None:
        if event == "c_call":
            called.append(function)

    sys.setprofile(watch)
    try:
        write_text(tmp_path / "file", "text")
        with new_folder(tmp_path / "folder") as temporary:
            (temporary / "file").touch()
    finally:
        sys.setprofile(None)
    assert os.fsync in called
    assert os.umask not in called


def test_a_killed_writer_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")
    done = subprocess.run([sys.executable, "-c", DIES_HALFWAY, str(path)], timeout=60, check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_text() == "old"


def test_a_full_disk_leaves_the_old_file_and_no_rubbish(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")
    command = [sys.executable, "-c", DISK_FILLS, str(path)]
    done = subprocess.run(command, timeout=60, check=True, capture_output=True, text=True)
    assert done.stdout.startswith("refused:")
    assert path.read_text() == "old"
    assert names_in(tmp_path) == ["file.txt"]


@settings(max_examples=30, deadline=None)
@given(text=st.text())
def test_any_text_is_written_as_it_is(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.txt"
    write_text(path, text)
    assert path.read_bytes() == text.encode("utf-8")


def test_a_folder_that_is_replaced_is_never_missing(tmp_path: Path) -> None:
    target = tmp_path / "kept"
    with new_folder(target) as fresh:
        (fresh / "number").write_text("0")
    stop, missing = Event(), Event()

    def watch() -> None:
        while not stop.is_set():
            if not target.is_dir():
                missing.set()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(watch)
        for number in range(1, 100):
            with new_folder(target) as fresh:
                (fresh / "number").write_text(str(number))
        stop.set()
    assert not missing.is_set()
    assert (target / "number").read_text() == "99"
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_file_that_need_not_outlive_a_loss_of_power_is_not_waited_for(tmp_path: Path) -> None:
    called: list[object] = []

    def watch(_frame: FrameType, event: str, function: object) -> None:
        if event == "c_call":
            called.append(function)

    sys.setprofile(watch)
    try:
        with new_file(tmp_path / "file", lasting=False) as temporary:
            temporary.write_text("text")
    finally:
        sys.setprofile(None)
    assert os.fsync not in called
    assert (tmp_path / "file").read_text() == "text"


@pytest.mark.parametrize("name", ["x" * 255, "猫" * 85, "a" + "猫" * 84])
def test_a_name_may_be_as_long_as_the_system_allows(tmp_path: Path, name: str) -> None:
    write_text(tmp_path / name, "text")
    assert names_in(tmp_path) == [name]


def test_what_killed_writers_leave_is_known(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")
    (tmp_path / ".other.txt.0123456789abcdef.part").touch()
    (tmp_path / ".file.txt.part").touch()
    subprocess.run([sys.executable, "-c", DIES_HALFWAY, str(path)], timeout=60, check=False)
    (left,) = left_over(path)
    assert left.read_text() == "half"

    def abandoned() -> set[str]:
        with os.scandir(tmp_path) as entries:
            return {entry.name for entry in entries if is_abandoned(entry)}

    assert abandoned() == set()
    for file in tmp_path.iterdir():
        os.utime(file, (0, 0))
    assert abandoned() == {left.name, ".other.txt.0123456789abcdef.part"}
