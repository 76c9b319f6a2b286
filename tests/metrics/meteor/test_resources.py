"""The index of METEOR's resources: found or explained, made once, and never used when it is not whole."""

from __future__ import annotations

import gzip
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tellapart.errors import TellapartError
from tellapart.metrics.meteor import extras
from tellapart.metrics.meteor.resources import (
    ABANDONED,
    ResourceFiles,
    Resources,
    find_resources,
    load_resources,
)

PROGRAM = """
import os, resource, signal, sys
from pathlib import Path
from tellapart.errors import TellapartError
from tellapart.metrics.meteor import resources
files = resources.find_resources(Path(sys.argv[1]))
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of this test alone."""
    monkeypatch.setenv("TELLAPART_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "meteor"


def is_built_by(files: ResourceFiles) -> bool:
    """Whether loading had to make an index."""
    steps: list[tuple[int, int]] = []
    loaded = load_resources(files, watch=lambda *step: steps.append(step))
    assert knows_all(loaded)
    return bool(steps)


def knows_all(loaded: Resources) -> bool:
    """Whether what the tiny files hold can be looked up."""
    synonyms = loaded.synonyms
    phrases = {phrase: paraphrases(loaded, phrase) for phrase in ("is riding", "rides", "many", "on")}
    return (
        synonyms.of("dogs") == [1, 7]
        and synonyms.of("mice") == [9]
        and loaded.normalizer.words("Mr. No. 5 no.") == ["mr.", "no.", "5", "no", "."]
        and phrases == {"is riding": ["rides", "on"], "rides": ["is riding"], "many": ["a lot of"], "on": []}
        and [word for word, number in loaded.numbers.items() if loaded.functions[number]]
        == ["a", "is", "of", "on", "the"]
    )


def paraphrases(loaded: Resources, phrase: str) -> list[str]:
    tree = loaded.phrases
    spelled = list(loaded.numbers)
    paths = {0: ""}
    for node in range(len(tree.words)):
        for child in range(tree.children[node], tree.children[node + 1]):
            paths[child] = f"{paths[node]} {spelled[tree.words[child]]}".strip()
    (found,) = [node for node, path in paths.items() if path == phrase]
    return [paths[node] for node in tree.table.row(found)]


def index_folder(cache: Path) -> Path:
    (folder,) = [path for path in cache.iterdir() if path.name != "known" and not path.name.startswith(".")]
    return folder


def run(program: str, files: ResourceFiles) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM + program, files.jar.parent],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_index_is_made_once(tiny_files: ResourceFiles, cache: Path) -> None:
    steps: list[tuple[int, int]] = []
    assert knows_all(load_resources(tiny_files, watch=lambda *step: steps.append(step)))
    size = tiny_files.paraphrases.stat().st_size
    assert steps[-1] == (size, size)
    assert [done for done, total in steps] == sorted(done for done, total in steps)
    assert not is_built_by(tiny_files)


def test_the_same_files_elsewhere_need_no_new_index(
    tiny_files: ResourceFiles, cache: Path, tmp_path: Path
) -> None:
    assert is_built_by(tiny_files)
    shutil.copytree(tiny_files.jar.parent, tmp_path / "moved")
    assert not is_built_by(find_resources(tmp_path / "moved"))


def test_other_content_is_another_index(tiny_files: ResourceFiles, cache: Path) -> None:
    assert is_built_by(tiny_files)
    content = gzip.decompress(tiny_files.paraphrases.read_bytes())
    # Stored, not squeezed, so that a changed word does not change the size; the old times are put back.
    tiny_files.paraphrases.write_bytes(gzip.compress(content, 0, mtime=0))
    load_resources(tiny_files)
    stored = tiny_files.paraphrases.stat()
    tiny_files.paraphrases.write_bytes(gzip.compress(content.replace(b"rides", b"loves"), 0, mtime=0))
    os.utime(tiny_files.paraphrases, ns=(stored.st_atime_ns, stored.st_mtime_ns))
    after = tiny_files.paraphrases.stat()
    assert (after.st_size, after.st_mtime_ns) == (stored.st_size, stored.st_mtime_ns)
    assert "loves" in load_resources(tiny_files).numbers


def test_a_damaged_index_is_made_again(tiny_files: ResourceFiles, cache: Path) -> None:
    assert is_built_by(tiny_files)
    names = sorted(path.name for path in index_folder(cache).iterdir())
    assert len(names) == 13
    for name in names:
        file = index_folder(cache) / name
        whole = file.read_bytes()
        flipped = whole[:-1] + bytes([whole[-1] ^ 1])
        for damage in (whole[: len(whole) // 2], b"", flipped, whole + b"\0"):
            file = index_folder(cache) / name
            file.write_bytes(damage)
            assert is_built_by(tiny_files), (name, damage)
            assert (index_folder(cache) / name).read_bytes() == whole
        (index_folder(cache) / name).unlink()
        assert is_built_by(tiny_files), name
    assert not is_built_by(tiny_files)


def test_a_damaged_note_is_written_again(tiny_files: ResourceFiles, cache: Path) -> None:
    assert is_built_by(tiny_files)
    (note,) = (cache / "known").iterdir()
    known = note.read_bytes()
    for damage in (b"", known[:7], b"\xff" * 40):
        note.write_bytes(damage)
        assert not is_built_by(tiny_files)
        assert note.read_bytes() == known


def test_a_kill_at_any_moment_leaves_no_broken_index(tiny_files: ResourceFiles, cache: Path) -> None:
    program = """
import numpy as np
save, count = np.save, [0]
def deadly(file, array, **options):
    count[0] += 1
    if count[0] == {at}:
        Path(file).write_bytes(b"half a fi")
        os.kill(os.getpid(), signal.SIGKILL)
    save(file, array, **options)
np.save = deadly
resources.load_resources(files)
"""
    for at in (1, 10):
        process = run(program.format(at=at), tiny_files)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
    left = list(cache.glob(".*.part"))
    assert len(left) == 2
    assert is_built_by(tiny_files)
    assert not is_built_by(tiny_files)
    assert list(cache.glob(".*.part")) == left, "somebody could still be writing these"
    for folder in left:
        os.utime(folder, (time.time() - 2 * ABANDONED,) * 2)
    (index_folder(cache) / "checksums.json").unlink()
    assert is_built_by(tiny_files)
    assert list(cache.glob(".*.part")) == []


def test_two_programs_at_once_both_work(tiny_files: ResourceFiles, cache: Path) -> None:
    program = """
for _ in range(10):
    found = resources.load_resources(files)
    assert found.synonyms.of("mice") == [9]
    for path in (resources.cache_folder() / "meteor").glob("*/checksums.json"):
        path.unlink(missing_ok=True)
print("done")
"""
    processes = [run(program, tiny_files) for _ in range(3)]
    for process in processes:
        out, err = process.communicate(timeout=120)
        assert (process.returncode, out) == (0, "done\n"), err
    load_resources(tiny_files)
    assert not is_built_by(tiny_files)


def test_a_full_disk_is_explained(tiny_files: ResourceFiles, cache: Path) -> None:
    program = """
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    resources.load_resources(files)
except TellapartError as error:
    print(error)
"""
    process = run(program, tiny_files)
    out, err = process.communicate(timeout=120)
    assert "cannot be read or indexed" in out, err
    assert "TELLAPART_CACHE names another folder" in out
    assert is_built_by(tiny_files)


def test_a_folder_that_may_not_be_written_is_explained(
    tiny_files: ResourceFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TELLAPART_CACHE", str(tmp_path / "file"))
    with pytest.raises(TellapartError, match="METEOR's resources cannot be read or indexed"):
        load_resources(tiny_files)


def test_resources_lie_in_the_installed_package() -> None:
    files = find_resources()
    assert files.jar.parent.parent.name == "pycocoevalcap"
    assert files.paraphrases.is_file()


def test_a_folder_of_the_users_may_hold_both_files_side_by_side(
    tiny_files: ResourceFiles, tmp_path: Path
) -> None:
    assert find_resources(tiny_files.jar.parent) == tiny_files
    beside = tmp_path / "beside"
    beside.mkdir()
    for file in (tiny_files.jar, tiny_files.paraphrases):
        shutil.copy(file, beside)
    assert find_resources(beside).paraphrases == beside / "paraphrase-en.gz"


def test_no_resources_are_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TellapartError, match="METEOR's resources are not there") as caught:
        find_resources(tmp_path)
    assert str(tmp_path) in caught.value.problem
    assert "meteor-1.5.jar" in caught.value.hint
    monkeypatch.setattr(sys, "path", [])
    for name in [name for name in sys.modules if name.startswith("pycocoevalcap")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(TellapartError, match="pycocoevalcap is not installed") as caught:
        find_resources()
    assert caught.value.hint == "pip install 'tellapart[meteor]'"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"no gzip", "Not a gzipped file"),
        (gzip.compress(b"0.5\na b\nc\n" * 99)[:-9], "ended before"),
        (gzip.compress(b"0.5\na b\nc\n0.5\nd\n"), "not whole"),
        (gzip.compress(b""), "empty"),
    ],
    ids=["no gzip", "cut", "half an entry", "empty"],
)
def test_a_damaged_table_is_explained(
    content: bytes, why: str, tiny_files: ResourceFiles, cache: Path
) -> None:
    tiny_files.paraphrases.write_bytes(content)
    with pytest.raises(TellapartError, match="table of paraphrases cannot be read") as caught:
        load_resources(tiny_files)
    assert why in caught.value.problem


def test_a_damaged_jar_is_explained(tiny_files: ResourceFiles, cache: Path) -> None:
    tiny_files.jar.write_bytes(tiny_files.jar.read_bytes()[:200])
    with pytest.raises(TellapartError, match="word lists cannot be read"):
        load_resources(tiny_files)


def test_a_table_without_a_last_line_end_is_whole(tiny_files: ResourceFiles, cache: Path) -> None:
    content = gzip.decompress(tiny_files.paraphrases.read_bytes())
    tiny_files.paraphrases.write_bytes(gzip.compress(content.rstrip(b"\n")))
    assert is_built_by(tiny_files)


@pytest.mark.parametrize("library", ["numba", "snowballstemmer.english_stemmer"])
def test_a_missing_library_is_explained(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(TellapartError, match=f"METEOR needs {library}") as caught:
        extras.compiled(len) if library == "numba" else extras.stem_function()
    assert caught.value.hint == "pip install 'tellapart[meteor]'"


def test_another_stemmer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: "3.0.1")
    with pytest.raises(TellapartError, match=r"snowballstemmer 3\.0\.1 cuts some words otherwise"):
        extras.stem_function()


def test_compiled_code_is_kept_in_the_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELLAPART_CACHE", str(tmp_path / "here"))

    def twice(number: int) -> int:
        return 2 * number

    numba = pytest.importorskip("numba")
    before = numba.config.CACHE_DIR
    assert extras.compiled(twice)(4) == 8
    assert list((tmp_path / "here" / "compiled").rglob("*.nbi"))
    assert before == numba.config.CACHE_DIR
    (tmp_path / "there").touch()
    monkeypatch.setenv("TELLAPART_CACHE", str(tmp_path / "there"))
    assert extras.compiled(twice)(4) == 8
