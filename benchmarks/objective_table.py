"""What each objective changes, as Markdown tables: figures, and differences from the control with intervals.

python -m benchmarks.objective_runs runs/objectives     # trains and measures
python -m benchmarks.objective_table [--captioner mrnn]
"""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks.objective_records import BASE, CONTROL, read_records
from benchmarks.objective_runs import OBJECTIVES

COLUMNS = (
    "CIDEr-D",
    "METEOR",
    "BLEU-4",
    "Distinct",
    "Novel",
    "Vocabulary",
    "Length",
    "Div-1",
    "Div-2",
    "R@1",
    "R@5",
    "R@10",
    "Mean-rank",
    "Unsupported-detail",
)


def main() -> None:
    """Print the tables of one captioner."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--captioner", default="mrnn")
    captioner = parser.parse_args().captioner
    records = {record["name"]: record for record in read_records() if record["captioner"] == captioner}
    ordered = [records[name] for name in (BASE, *OBJECTIVES) if name in records]
    columns = [name for name in COLUMNS if name in ordered[0]["scores"]]
    heading = f"| objective | {' | '.join(columns)} |\n|{'---|' * (len(columns) + 1)}"
    print(heading)
    for record in ordered:
        print("|", " | ".join([record["name"], *(number(record["scores"][name]) for name in columns)]), "|")
    for other in (CONTROL, BASE):
        print(f"\nDifference from {other}, with its interval (95 %)\n\n{heading}")
        for record in ordered:
            if record["name"] not in (BASE, CONTROL):
                cells = (difference(record["against"][other][name]) for name in columns)
                print("|", " | ".join([record["name"], *cells]), "|")


def number(value: float) -> str:
    """As short as can be."""
    return f"{value:.3f}".removeprefix("0") if abs(value) < 1 else f"{value:.4g}"


def difference(found: list[Any]) -> str:
    """A difference with its interval; a measure of the whole set has none."""
    value, low, high = found
    told = f"{value:+.3f}" if abs(value) < 10 else f"{value:+.0f}"
    return told if low is None else f"{told} ({low:+.3f} to {high:+.3f})"


if __name__ == "__main__":
    main()
