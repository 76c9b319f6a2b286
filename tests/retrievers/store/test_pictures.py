"""The pictures of a folder are placed once, and again only where they have changed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.retrievers.simple_retriever import SimpleRetriever

from tellapart.errors import TellapartError
from tellapart.retrievers.retriever import Placed
from tellapart.retrievers.store import keeping, memory, vectors
from tellapart.retrievers.store.listing import list_pictures
from tellapart.retrievers.store.pictures import Pictures, gather_pictures
from tellapart.retrievers.store.vectors import store_of

LONG_AGO = 1_600_000_000 * memory.SECOND


@pytest.fixture(autouse=True)
def empty_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("own cache")
    monkeypatch.setenv("TELLAPART_CACHE", str(folder))
    return folder


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Four colours, last changed long ago."""
    folder = tmp_path / "photos"
    for name, colour in (("a", "red"), ("b", "green"), ("c", "blue"), ("deep/d", "yellow")):
        draw(folder / f"{name}.png", colour)
    return folder


def draw(path: Path, colour: str, *, at: int = LONG_AGO) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (12, 9), colour).save(path)
    os.utime(path, ns=(at, at))


def gather(folder: Path, retriever: SimpleRetriever | None = None) -> tuple[Pictures, list[str]]:
    """What can be searched, and the names of the pictures that had to be placed for it."""
    retriever = retriever or SimpleRetriever()
    found = gather_pictures(folder, retriever)
    assert_right(folder, found)
    return found, [str(path.relative_to(folder)) for path in retriever.placed]


def assert_right(folder: Path, found: Pictures) -> None:
    """As if there were no store."""
    expected = SimpleRetriever().embed_images([folder / name for name in found.names])
    np.testing.assert_array_equal(found.pool.take(np.arange(len(found.names))), expected)


def test_every_picture_is_placed_once(photos: Path) -> None:
    watched: list[tuple[int, int]] = []
    retriever = SimpleRetriever()
    found = gather_pictures(photos, retriever, watch=lambda done, all_: watched.append((done, all_)))
    assert found.names == ["a.png", "b.png", "c.png", "deep/d.png"]
    assert (found.problems, found.notes) == ((), ())
    assert watched == [(number, 4) for number in range(5)]
    assert_right(photos, found)
    again, placed = gather(photos)
    assert (again.names, placed) == (found.names, [])


def test_only_what_is_new_or_changed_is_placed(photos: Path) -> None:
    gather(photos)
    draw(photos / "b.png", "white")
    draw(photos / "new.png", "black")
    (photos / "c.png").unlink()
    found, placed = gather(photos)
    assert found.names == ["a.png", "b.png", "deep/d.png", "new.png"]
    assert sorted(placed) == ["b.png", "new.png"]
    assert gather(photos)[1] == []


def test_a_change_is_seen_by_the_time_alone_or_the_size_alone(photos: Path) -> None:
    small, large = photos / "a.bmp", photos / "b.bmp"
    draw(small, "red")
    draw(large, "red")
    gather(photos)
    draw(small, "blue", at=LONG_AGO + 1)  # a bitmap of another colour has the same size
    Image.new("RGB", (13, 9), "blue").save(large)
    os.utime(large, ns=(LONG_AGO, LONG_AGO))
    assert sorted(gather(photos)[1]) == ["a.bmp", "b.bmp"]


def test_what_was_touched_moved_or_copied_is_not_placed_again(photos: Path) -> None:
    gather(photos)
    os.utime(photos / "a.png")
    (photos / "b.png").rename(photos / "deep" / "elsewhere.png")
    shutil.copy(photos / "c.png", photos / "copy.png")
    found, placed = gather(photos)
    assert placed == []
    assert found.names == ["a.png", "c.png", "copy.png", "deep/d.png", "deep/elsewhere.png"]
    rows = dict(zip(found.names, found.pool.rows.tolist(), strict=True))
    assert rows["c.png"] == rows["copy.png"]
    assert len(set(rows.values())) == 4


def test_a_picture_changed_a_moment_ago_is_not_trusted_to_stay(photos: Path) -> None:
    """Two changes within one tick of the clock leave the same time."""
    now = time.time_ns()
    draw(photos / "a.bmp", "red", at=now)
    gather(photos)
    draw(photos / "a.bmp", "blue", at=now)
    assert gather(photos)[1] == ["a.bmp"]
    later = now + 3600 * memory.SECOND  # a camera's clock may be ahead: that time will not come twice
    draw(photos / "a.bmp", "green", at=later)
    gather(photos)
    listing = list_pictures(photos)
    place = listing.names.index("a.bmp")
    assert memory.recall(store_of("pictures", photos, SimpleRetriever()).read()).places(listing)[place] >= 0


def test_equal_pictures_are_placed_once(tmp_path: Path) -> None:
    for name in ("x", "a", "m"):
        draw(tmp_path / f"{name}.png", "red")
    found, placed = gather(tmp_path)
    assert placed == ["a.png"]
    assert found.names == ["a.png", "m.png", "x.png"]
    assert len(set(found.pool.rows.tolist())) == 1


def test_another_retriever_has_a_store_of_its_own(photos: Path) -> None:
    gather(photos)
    other = SimpleRetriever("simple@2")
    assert len(gather(photos, other)[1]) == 4
    assert gather(photos)[1] == []
    assert gather(photos, SimpleRetriever("simple@2"))[1] == []


def test_a_folder_is_known_by_its_real_path(photos: Path, tmp_path: Path) -> None:
    gather(photos)
    (tmp_path / "link").symlink_to(photos)
    assert gather(tmp_path / "link")[1] == []
    assert gather(tmp_path / "photos" / "deep" / "..")[1] == []
    assert len(gather(photos / "deep")[1]) == 1


def test_bad_files_are_said_each_time_and_tried_once(photos: Path) -> None:
    for name in ("bad.png", "twin of bad.png"):
        (photos / name).write_text("words")
        os.utime(photos / name, ns=(LONG_AGO, LONG_AGO))
    (photos / "gone.png").symlink_to("nowhere.png")
    said = [
        f"{photos / 'bad.png'} is not a picture of a known format",
        f"{photos / 'gone.png'} is a link to a file that does not exist",
        f"{photos / 'twin of bad.png'} is not a picture of a known format",
    ]
    for placed in (["a.png", "b.png", "bad.png", "c.png", "deep/d.png"], [], []):
        found, tried = gather(photos)
        assert found.names == ["a.png", "b.png", "c.png", "deep/d.png"]
        assert [error.problem for error in found.problems] == said
        assert all(error.hint for error in found.problems)
        assert tried == placed
    draw(photos / "bad.png", "white")
    found, tried = gather(photos)
    assert tried == ["bad.png"]
    assert [error.problem for error in found.problems] == said[1:]


def test_a_bad_file_is_tried_again_after_a_day(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (photos / "bad.png").write_text("words")
    os.utime(photos / "bad.png", ns=(LONG_AGO, LONG_AGO))
    gather(photos)
    assert gather(photos)[1] == []
    monkeypatch.setattr(memory, "FAILURE_LASTS", -1)
    assert gather(photos)[1] == ["bad.png"]


def test_a_file_that_may_not_be_read_is_tried_each_time_and_writes_nothing(photos: Path) -> None:
    gather(photos)
    draw(photos / "secret.png", "white")

    def refuse(path: Path) -> bytes:
        if path.name == "secret.png":  # the tests may run as one who may read everything
            raise TellapartError(f"{path} may not be read: permission denied", hint="change its permissions")
        return path.read_bytes()

    table = store_of("pictures", photos, SimpleRetriever()).folder / "table"
    written = table.stat().st_mtime_ns
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tellapart.retrievers.store.pictures.read_bytes", refuse)
        for _ in range(2):
            found, tried = gather(photos)
            assert (len(found.names), tried) == (4, [])
            assert [error.hint for error in found.problems] == ["change its permissions"]
            assert table.stat().st_mtime_ns == written
    assert gather(photos)[1] == ["secret.png"]


class Grumbler(SimpleRetriever):
    """Has something to say that is about no file."""

    def place(self, paths: Iterable[Path | TellapartError]) -> Iterator[Placed | TellapartError]:
        for number, result in enumerate(super().place(paths)):
            if number == 1:
                yield TellapartError("the disk is full", hint="free some space")
            yield result


class Lost(SimpleRetriever):
    """Does not know where blue is."""

    def place(self, paths: Iterable[Path | TellapartError]) -> Iterator[Placed | TellapartError]:
        for result in super().place(paths):
            if isinstance(result, Placed) and result.path.name == "c.png":
                result = replace(result, vector=np.full_like(result.vector, np.nan))
            yield result


def test_a_picture_without_a_place_is_named(photos: Path) -> None:
    for _ in range(2):
        found = gather_pictures(photos, Lost())
        assert found.names == ["a.png", "b.png", "deep/d.png"]
        assert [error.problem for error in found.problems] == [
            f"{photos / 'c.png'} has no place: the retriever gave what is no number"
        ]


def test_a_complaint_about_no_file_costs_no_picture(photos: Path) -> None:
    (photos / "bad.png").write_text("words")
    found, _ = gather(photos, Grumbler())
    assert found.names == ["a.png", "b.png", "c.png", "deep/d.png"]
    (problem,) = found.problems
    assert problem.problem == f"{photos / 'bad.png'} is not a picture of a known format"
    assert found.notes == ("the disk is full",)


def test_a_folder_that_cannot_be_searched_any_more_loses_only_itself(photos: Path) -> None:
    gather(photos)
    (photos / "deep").rename(photos.parent / "away")
    assert gather(photos)[0].names == ["a.png", "b.png", "c.png"]
    (photos.parent / "away").rename(photos / "deep")
    found, placed = gather(photos)
    assert found.names == ["a.png", "b.png", "c.png", "deep/d.png"]
    assert placed == [], "its bytes were placed before"


def test_only_bad_files_leave_nothing_to_search(tmp_path: Path) -> None:
    (tmp_path / "bad.png").write_text("words")
    found, _ = gather(tmp_path)
    assert (found.names, len(found.pool), len(found.problems)) == ([], 0, 1)


def flip_table(folder: Path) -> None:
    data = bytearray((folder / "table").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "table").write_bytes(bytes(data))


def flip_vector(folder: Path) -> None:
    file = next(folder.glob("vectors-*"))
    data = bytearray(file.read_bytes())
    data[7] ^= 1
    file.write_bytes(bytes(data))


def cut_vectors(folder: Path) -> None:
    file = next(folder.glob("vectors-*"))
    file.write_bytes(file.read_bytes()[:10])


@pytest.mark.parametrize(
    ("damage", "noted", "placed"),
    [(flip_table, True, 4), (cut_vectors, True, 4), (flip_vector, False, 1)],
)
def test_a_damaged_store_is_made_again_as_far_as_it_is_damaged(
    photos: Path, damage: Callable[[Path], None], noted: bool, placed: int
) -> None:
    gather(photos)
    folder = store_of("pictures", photos, SimpleRetriever()).folder
    damage(folder)
    found, again = gather(photos)
    assert len(again) == placed
    assert any(note.startswith(str(folder)) and "made again" in note for note in found.notes) == noted
    found, again = gather(photos)
    assert (again, found.notes) == ([], ())


def test_where_nothing_can_be_kept_the_answer_is_the_same(photos: Path, empty_cache: Path) -> None:
    (empty_cache / "search").write_text("a file where the folder should be")
    for _ in range(2):
        found, placed = gather(photos)
        assert (len(found.names), len(placed)) == (4, 4)
        (note,) = found.notes
        assert "cannot be written" in note


def test_vectors_that_are_no_longer_used_go_in_the_end(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "SPARE", 2)
    gather(photos)
    for name in ("a", "b", "c"):
        (photos / f"{name}.png").unlink()
    gather(photos)
    kept = store_of("pictures", photos, SimpleRetriever()).read()
    assert len(kept.vectors) == 1
    assert gather(photos)[1] == []


COMMON = """
import os, sys, time
from pathlib import Path
from tellapart.retrievers.store import keeping
from tellapart.retrievers.store.pictures import gather_pictures
from tests.retrievers.simple_retriever import SimpleRetriever

class Slow(SimpleRetriever):
    def place(self, paths):
        for placed in super().place(paths):
            time.sleep(0.005)
            print(len(self.placed), flush=True)
            yield placed

keeping.EVERY = 0.02
keeping._SHARE = 0
found = gather_pictures(Path(sys.argv[1]), Slow())
print("found", len(found.names), flush=True)
"""


def slowly(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", COMMON, str(folder)]
    root = Path(__file__).parents[3]
    return subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def many(folder: Path, count: int = 60) -> Path:
    for number in range(count):
        draw(folder / f"{number:03d}.png", f"#{number * 4:02x}{255 - number:02x}80")
    return folder


def test_a_kill_costs_little_of_what_was_placed(tmp_path: Path) -> None:
    many(tmp_path)
    running = slowly(tmp_path)
    assert running.stdout is not None
    while int(running.stdout.readline()) < 30:
        pass
    running.kill()
    running.communicate()
    assert running.returncode == -signal.SIGKILL
    found, placed = gather(tmp_path)
    assert len(found.names) == 60
    assert len(placed) < 45
    assert found.notes == ()
    assert gather(tmp_path)[1] == []


def test_two_at_once_find_the_same_and_leave_a_whole_store(tmp_path: Path) -> None:
    many(tmp_path)
    both = [slowly(tmp_path), slowly(tmp_path)]
    for running in both:
        out, err = running.communicate(timeout=100)
        assert out.splitlines()[-1] == "found 60", err
    found, placed = gather(tmp_path)
    assert (len(found.names), placed, found.notes) == (60, [], ())
    assert len(store_of("pictures", tmp_path, SimpleRetriever()).read().vectors) == 60


class Meddler(SimpleRetriever):
    """While it looks at one picture, somebody changes that one and deletes another."""

    def place(self, paths: Iterable[Path | TellapartError]) -> Iterator[Placed | TellapartError]:
        for result in super().place(paths):
            if isinstance(result, Placed) and result.path.name == "b.png":
                draw(result.path, "white", at=LONG_AGO + 5)
            if isinstance(result, Placed) and result.path.name == "c.png":
                result.path.unlink()
            yield result


def test_a_picture_that_changes_under_ones_eyes_is_left_for_the_next_search(photos: Path) -> None:
    shutil.copy2(photos / "b.png", photos / "twin of b.png")
    found = gather_pictures(photos, Meddler())
    assert found.names == ["a.png", "deep/d.png"]
    assert [error.problem for error in found.problems] == [
        f"{photos / name} was not placed: it or a copy of it has changed meanwhile"
        for name in ("b.png", "c.png", "twin of b.png")
    ]
    found, placed = gather(photos)
    assert found.names == ["a.png", "b.png", "deep/d.png", "twin of b.png"]
    assert placed == ["b.png", "twin of b.png"]


class Interrupted(SimpleRetriever):
    """Stops after three."""

    def place(self, paths: Iterable[Path | TellapartError]) -> Iterator[Placed | TellapartError]:
        for number, result in enumerate(super().place(paths)):
            if number == 3:
                raise KeyboardInterrupt
            yield result


def test_what_was_placed_before_an_interruption_is_kept(photos: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        gather(photos, Interrupted())
    assert gather(photos)[1] == ["deep/d.png"]


def test_writing_takes_a_small_share_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    written: list[float] = []

    class Slow(vectors.VectorStore):
        def write(self, fresh: object, choose: object, *, tidy: bool) -> None:
            written.append(clock[0])
            clock[0] += 2  # as long as a very large store takes

    def nothing(kept: vectors.Kept, numbers: object) -> vectors.Entries:
        return vectors.Entries([], {})

    monkeypatch.setattr(keeping, "monotonic", lambda: clock[0])
    keeper = keeping.Keeper(Slow(tmp_path, identity="slow@1", width=1), nothing)
    while clock[0] < 200:
        clock[0] += 1
        keeper.keep_if_due({})
    assert written[0] == keeping.EVERY
    assert 2 <= len(written) <= 0.03 * 200


def test_pictures_that_swap_names_at_equal_size_and_time_are_noticed(tmp_path: Path) -> None:
    for name, colour in (("a", "red"), ("b", "blue")):
        Image.new("RGB", (12, 9), colour).save(tmp_path / f"{name}.bmp")
        os.utime(tmp_path / f"{name}.bmp", ns=(LONG_AGO, LONG_AGO))
    assert len(gather(tmp_path)[1]) == 2
    time.sleep(0.02)  # a tick of the file system's clock
    (tmp_path / "a.bmp").rename(tmp_path / "c")
    (tmp_path / "b.bmp").rename(tmp_path / "a.bmp")
    (tmp_path / "c").rename(tmp_path / "b.bmp")
    found, placed = gather(tmp_path)  # which also compares the answer with one from no store
    assert (found.names, placed) == (["a.bmp", "b.bmp"], [])
