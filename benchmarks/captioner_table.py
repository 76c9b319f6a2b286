"""Trained captioners side by side, as a Markdown table.

    python -m benchmarks.captioner_runs runs/table                 # trains what has no line yet
    python -m benchmarks.captioner_table [--split test]
    python -m benchmarks.captioner_table --split held-out          # 500 COCO photographs

A row a run: measures of its captions (COCO's tokenizer; METEOR 1.5), perplexity with the end sign counted,
distinct captions, those that no training caption of the run equals, different words, words a caption, how
long it trained and what ended it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from benchmarks.captioner_records import COLUMNS, Record, read_records

MORE = ("perplexity", "distinct", "novel", "words", "length", "validations", "core minutes", "ended by")


def cells(record: Record) -> Iterator[str]:
    """A row as text."""
    yield record.name
    yield from (_share(record.scores[column]) for column in COLUMNS)
    yield f"{record.perplexity:.2f}"
    yield _share(record.scores["Distinct"])
    yield _share(record.scores["Novel"])
    yield f"{record.scores['Vocabulary']:.0f}"
    yield f"{record.scores['Length']:.1f}"
    yield str(record.validations)
    yield f"{record.core_minutes:.0f}"
    yield record.ended_by


def _share(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--split", default="test")
    split = parser.parse_args().split
    print("| captioner |", " | ".join((*COLUMNS, *MORE)), "|")
    print("|" + "---|" * (len(COLUMNS) + len(MORE) + 1))
    for record in read_records():
        if record.split == split:
            print("|", " | ".join(cells(record)), "|")


if __name__ == "__main__":
    main()
