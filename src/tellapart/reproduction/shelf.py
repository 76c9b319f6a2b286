"""What came out of methods, in files that outlive the machine they were made on: captions, ranks and logs.

A file is a gzipped JSONL. Its first line says what made it: the method with a digest of all its settings, the
seed, the way, the commit, the machine and the time it took. Each line after it is a picture, or an entry of a
log.
"""

from __future__ import annotations

import gzip
import json
import os
import platform
import subprocess
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import tellapart
from tellapart.errors import TellapartError
from tellapart.reproduction.plan import Job
from tellapart.storage import new_file

LOG = "log"  # the learning curve of a run, kept beside its captions
_REDO = "delete it to have it made anew, or name another folder"
_DAMAGE = (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError)


@dataclass(frozen=True, slots=True)
class Made:
    """What made a file, and when and where."""

    ground: str
    method: str
    seed: int
    way: str
    digest: str  # of the settings of method and way
    core_minutes: float = 0.0  # of training
    seconds: float = 0.0  # of writing
    commit: str = ""
    machine: str = ""
    day: str = ""
    weights: str = ""  # a hash of the captioner's

    @property
    def settings(self) -> str:
        """The digest of the method's settings alone."""
        return self.digest.partition("-")[0]


@dataclass(frozen=True, slots=True)
class Line:
    """What came out for one picture: captions, the best first, or ranks counted from 0."""

    image_id: str
    captions: tuple[str, ...] = ()
    logprobs: tuple[float, ...] = ()
    ranks: Mapping[str, Sequence[int]] = field(default_factory=dict)
    penalties: tuple[
        tuple[str, float, float], ...
    ] = ()  # a word of the caption, its -ln p by MLE and by SMILE

    def to_json(self) -> dict[str, Any]:
        """As plain values; what is not there is left out."""
        return {key: value for key, value in asdict(self).items() if value}


@dataclass(frozen=True, slots=True)
class Kept:
    """A file of the shelf."""

    path: Path
    made: Made
    entries: tuple[Mapping[str, Any], ...]

    @property
    def lines(self) -> list[Line]:
        """Its pictures."""
        return [
            Line(
                entry["image_id"],
                tuple(entry.get("captions", ())),
                tuple(entry.get("logprobs", ())),
                entry.get("ranks", {}),
                tuple((word, mle, smile) for word, mle, smile in entry.get("penalties", ())),
            )
            for entry in self.entries
        ]


@dataclass(frozen=True, slots=True)
class Shelf:
    """A folder of such files; what is there need not be made again."""

    folder: Path
    ground: str

    def path(self, job: Job, way: str) -> Path:
        """Where a way of a job is, or will be."""
        return self.folder / f"{job.name}-{way}.jsonl.gz"

    def holds(self, job: Job, way: str) -> bool:
        """Whether it is there."""
        return self.path(job, way).is_file()

    def read(self, job: Job, way: str, *, digest: str) -> Kept:
        """A file, if it is of this very method; one of another is an error."""
        made = self.check(job, way, digest=digest)
        path = self.path(job, way)
        try:
            with gzip.open(path, "rt", encoding="utf-8") as file:
                _, *rest = map(json.loads, file)
            kept = Kept(path, made, tuple(rest))
            kept.lines if way != LOG else ()  # noqa: B018 - whether all fields are there
        except _DAMAGE as error:
            raise TellapartError(f"{path}: this is no file of kept captions: {error}", hint=_REDO) from error
        return kept

    def check(self, job: Job, way: str, *, digest: str) -> Made:
        """What made a file; it is an error if that is another method than this one."""
        path = self.path(job, way)
        try:
            with gzip.open(path, "rt", encoding="utf-8") as file:
                made = Made(**json.loads(file.readline())["made"])
        except _DAMAGE as error:
            raise TellapartError(f"{path}: this is no file of kept captions: {error}", hint=_REDO) from error
        if (made.ground, made.digest) != (self.ground, digest):
            other = f"on {made.ground}" if made.ground != self.ground else "with other settings"
            raise TellapartError(f"{path}: kept from {made.method} {other} than this plan's", hint=_REDO)
        if (made.method, made.seed, made.way) != (job.method.name, job.seed, way):
            raise TellapartError(
                f"{path}: what it holds is {made.way} of {made.method}, seed {made.seed}", hint=_REDO
            )
        return made

    def write(self, job: Job, made: Made, entries: Iterable[Mapping[str, Any]]) -> None:
        """A whole file, the same bytes for the same content."""
        texts = [json.dumps(entry, ensure_ascii=False) for entry in ({"made": asdict(made)}, *entries)]
        with (
            new_file(self.path(job, made.way)) as temporary,
            temporary.open("wb") as file,
            gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
        ):
            packed.write("".join(f"{text}\n" for text in texts).encode())


def check_pictures(path: Path, lines: Sequence[Line], ids: Sequence[str]) -> None:
    """Refuse a file that does not hold each picture once: figures of fewer pictures do not compare."""
    held = [line.image_id for line in lines]
    if sorted(held) != sorted(ids):
        missing = len(set(ids) - set(held))
        raise TellapartError(
            f"{path}: {len(held)} lines, of which each of {len(ids)} pictures should have one; "
            f"{missing} have none",
            hint=_REDO,
        )


def about_here() -> dict[str, str]:
    """Commit, machine and day, as files and reports tell them."""
    cores = os.cpu_count()
    return {
        "commit": commit(),
        "machine": f"{platform.system()} {platform.machine()}, {cores} cores",
        "day": datetime.now(UTC).date().isoformat(),
    }


def commit() -> str:
    """The commit of this program, with a "+" where files differ from it; its version where there is none."""
    folder = Path(__file__).parent

    def git(*arguments: str) -> str:
        asked = ["git", "-C", str(folder), *arguments]
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603

    try:
        changed = git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "--short=12", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return f"version {tellapart.__version__}"
