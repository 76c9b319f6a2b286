"""A run folder: the only module that knows the names of the files inside it.

recipe.toml        the resolved recipe
environment.json   versions, machine and commit it ran on
metrics.jsonl      one line a log entry, up to the newest checkpoint after a resume
checkpoints/       step-00000123.pt; only the newest is kept
captioner/         what is kept: the best by the validation metric, or the last; or retriever/, or encoder/
stages/            what the recipe wants made first: a folder a stage, another run or caption files
predictions/       captions of a split, one JSONL a split and beam
evaluations/       what `tellapart evaluate` measured, one JSON a split and beam
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tellapart.errors import TellapartError
from tellapart.storage import write_text

VERSIONS = ("torch", "numpy", "onnxruntime", "pillow")


@dataclass(frozen=True, slots=True)
class Run:
    """One training run on disk."""

    folder: Path

    @property
    def recipe(self) -> Path:
        """The resolved recipe."""
        return self.folder / "recipe.toml"

    @property
    def metrics(self) -> Path:
        """The log."""
        return self.folder / "metrics.jsonl"

    @property
    def captioner(self) -> Path:
        """The captioner that is kept."""
        return self.folder / "captioner"

    @property
    def retriever(self) -> Path:
        """The best retriever so far."""
        return self.folder / "retriever"

    @property
    def encoder(self) -> Path:
        """The best tuned encoder so far."""
        return self.folder / "encoder"

    @property
    def stages(self) -> Path:
        """The folders of the recipe's stages."""
        return self.folder / "stages"

    @property
    def is_over(self) -> bool:
        """Whether its training came to an end, rather than being stopped."""
        entries = self.entries()
        return bool(entries and entries[-1].get("stopped_by"))

    def predictions(self, split: str, *, width: int) -> Path:
        """Captions of a split by a beam of that width."""
        return self.folder / "predictions" / f"{split}-beam{width}.jsonl"

    def evaluation(self, split: str, *, width: int) -> Path:
        """What was measured on a split by a beam of that width."""
        return self.folder / "evaluations" / f"{split}-beam{width}.json"

    def checkpoint(self, step: int) -> Path:
        """The file of one checkpoint."""
        return self.folder / "checkpoints" / f"step-{step:08d}.pt"

    def latest_checkpoint(self) -> Path | None:
        """The newest checkpoint; a half-written one has another name and is never seen."""
        found = sorted((self.folder / "checkpoints").glob("step-*.pt"))
        return found[-1] if found else None

    def drop_checkpoints(self, *, but: Path) -> None:
        """Remove all checkpoints but one."""
        for file in (self.folder / "checkpoints").glob("step-*.pt"):
            if file != but:
                file.unlink()

    def log(self, entry: Mapping[str, object]) -> None:
        """Append one line to the log."""
        with self.metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def forget_after(self, step: int) -> None:
        """Drop log entries of steps that a resumed run will take again, and a line cut by a kill."""
        kept = [entry for entry in self.entries() if entry["step"] <= step]
        write_text(self.metrics, "".join(json.dumps(entry) + "\n" for entry in kept))

    def entries(self) -> list[dict[str, Any]]:
        """The log, without a last line that was cut off."""
        if not self.metrics.exists():
            return []
        lines = self.metrics.read_text(encoding="utf-8").split("\n")
        return [self._entry(number, line) for number, line in enumerate(lines[:-1], start=1)]

    def _entry(self, number: int, line: str) -> dict[str, Any]:
        try:
            entry: dict[str, Any] = json.loads(line)
            entry["step"] += 0
        except (ValueError, KeyError, TypeError) as error:
            raise TellapartError(
                f"{self.metrics}:{number}: not a line of a run's log", hint="delete that line"
            ) from error
        return entry


def refuse_full(folder: Path) -> None:
    """A new run wants a folder of its own."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise TellapartError(
            f"{folder}: there is something in this folder already",
            hint="add --resume to go on with the run in it, or name another folder with --out",
        )


def start_run(folder: Path, recipe: str) -> Run:
    """A new run in an empty or missing folder."""
    refuse_full(folder)
    run = Run(folder)
    write_text(run.recipe, recipe)
    write_text(folder / "environment.json", json.dumps(_environment(), indent=2) + "\n")
    return run


def resume_run(folder: Path, recipe: str) -> Run:
    """The run in a folder, if it is of the same recipe."""
    run = Run(folder)
    if not run.recipe.exists():
        raise TellapartError(f"{folder}: there is no run to resume", hint="leave out --resume to start one")
    before = run.recipe.read_text(encoding="utf-8")
    if tomllib.loads(before) != tomllib.loads(recipe):
        changed = [line for line in recipe.splitlines() if line not in before.splitlines()]
        raise TellapartError(
            f"{folder}: the run was started with another recipe"
            + (f" (now: {changed[0]})" if changed else ""),
            hint=f"resume with the recipe it was started with: tellapart train {folder} --resume",
        )
    return run


def _environment() -> dict[str, object]:
    return {
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        **{package: version(package) for package in VERSIONS},
    }
