"""What the verbs share in speaking to a person: complaints, waiting signs and bars, all on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from tellapart.errors import TellapartError

stderr = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)


def complain(error: TellapartError) -> None:
    """One line with the problem, one with the hint."""
    stderr.print(Text.assemble(("error: ", "bold red"), error.problem))
    stderr.print(Text.assemble(("  hint: ", "bold"), error.hint))


def say(value: object) -> None:
    """A result as JSON on stdout, at once."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def tell(line: str) -> None:
    """A result for people on stdout, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """A spinner while something loads."""
    with stderr.status(what):
        yield


@contextmanager
def counting(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar that counts what is done, with the time left."""
    columns = (
        SpinnerColumn(),
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=stderr, transient=True) as bar:
        task = bar.add_task(what, total=None, rate="")

        def watch(done: int, total: int) -> None:
            speed = bar.tasks[0].finished_speed or bar.tasks[0].speed
            bar.update(task, completed=done, total=total or None, rate=f"{speed:.0f}/s" if speed else "")

        yield watch
