"""Figures of objectives, kept as lines of text: runs take hours, and need not end on one day."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tellapart.comparison import compare
from tellapart.metrics.score import Scores

RECORDS = Path("docs/results/objectives.jsonl")
BASE, CONTROL = "base", "mle"


def add_record(
    captioner: str, name: str, settings: Sequence[str], scores: Scores, measured: Mapping[str, Scores]
) -> None:
    """A line for one objective, in the place of an older one: figures, and differences with intervals."""
    against: dict[str, Any] = {}
    for other in (BASE, CONTROL):
        found = compare(measured[other], scores)
        against[other] = {one.name: [one.value, one.low, one.high] for one in found}
    line = {"captioner": captioner, "name": name, "settings": list(settings), "scores": scores.scores}
    with RECORDS.with_name(f".{RECORDS.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two programs may write at once
        kept = [old for old in read_records() if (old["captioner"], old["name"]) != (captioner, name)]
        text = "".join(json.dumps(some) + "\n" for some in [*kept, line | {"against": against}])
        RECORDS.write_text(text, encoding="utf-8")


def read_records() -> list[dict[str, Any]]:
    """Every line of the file."""
    if not RECORDS.exists():
        return []
    return [json.loads(line) for line in RECORDS.read_text(encoding="utf-8").splitlines()]
