"""What the verbs share in speaking to a person: complaints, waiting signs and bars, all on stderr."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from tellapart.errors import TellapartError

_WIDER_THAN_ANY_ROW = 1000
_BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")

stderr = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)


def complain(error: TellapartError) -> None:
    """One line with the problem, one with the hint."""
    stderr.print(Text.assemble(("error: ", "bold red"), one_line(error.problem)))
    stderr.print(Text.assemble(("  hint: ", "bold"), one_line(error.hint)))


def remark(text: str) -> None:
    """One line about the result that is no complaint."""
    stderr.print(Text.assemble(("note: ", "bold"), one_line(text)))


def tell_left_out(problems: Sequence[TellapartError], notes: Iterable[str], *, most: int = 100) -> None:
    """What could not be taken into account, and notes: a telephone's folder may be full of bad files."""
    for error in problems[:most]:
        remark(f"left out: {error.problem}")
    if (more := len(problems) - most) > 0:
        remark(f"left out: {more:,} more, which --json names")
    for note in notes:
        remark(note)


def one_line(text: str) -> str:
    """The text with line breaks and control signs spelt out: a file's name may hold any of them."""
    return _BREAKS.sub(lambda sign: sign.group().encode("unicode_escape").decode("ascii"), text)


def say(value: object) -> None:
    """A result as JSON on stdout, at once."""
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:  # the name of a file need not be text, nor stdout UTF-8
        text = json.dumps(value)
    tell(text)


def tell(line: str) -> None:
    """A result for people on stdout, at once."""
    encoding = sys.stdout.encoding
    sys.stdout.write(line.encode(encoding, "backslashreplace").decode(encoding) + "\n")
    sys.stdout.flush()


def tell_table(table: Table) -> None:
    """A table for people on stdout, as wide as the screen; in a file or a pipe, a row a line."""
    wide = None if sys.stdout.isatty() else _WIDER_THAN_ANY_ROW
    screen = Console(markup=False, highlight=False, width=wide)
    with screen.capture() as drawn:
        screen.print(table)
    for line in drawn.get().splitlines():
        tell(line.rstrip())


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """A spinner while something loads."""
    with stderr.status(what):
        yield


def progress_bar(*columns: ProgressColumn) -> Progress:
    """A bar on stderr that leaves stdout alone: rich would send results to the screen instead of a file.

    Without a screen there is nothing to draw on, and rich would leave an empty line among the complaints.
    """
    return Progress(
        *columns, console=stderr, transient=True, redirect_stdout=False, disable=not stderr.is_terminal
    )


class RateColumn(ProgressColumn):
    """How many are done in a second, as soon as that can be told."""

    def render(self, task: Task) -> Text:
        """A digit behind the point where there would be but one before it."""
        speed = task.finished_speed or task.speed
        return Text(f"{speed:.{int(speed < 10)}f}/s" if speed else "", style="progress.data.speed")


@contextmanager
def counting(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar that counts what is done, with the time left."""
    columns = (
        SpinnerColumn(),
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        RateColumn(),
        TimeRemainingColumn(),
    )
    with progress_bar(*columns) as bar:
        task = bar.add_task(what, total=None)

        def watch(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total or None)

        yield watch


@contextmanager
def watching() -> Iterator[Callable[[str, int, int], None]]:
    """A bar for work that says itself what it is doing; without a screen, a line for each thing it does."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with progress_bar(*columns, RateColumn(), TimeRemainingColumn()) as bar:
        tasks: dict[str, TaskID] = {}
        current = ""

        def watch(what: str, done: int, total: int) -> None:
            nonlocal current
            if what not in tasks:
                tasks[what] = bar.add_task(one_line(what), total=total or None)
                if not stderr.is_terminal:
                    stderr.print(f"{one_line(what)} …")
            if what != current and current:
                bar.update(tasks[current], visible=False)
            current = what
            bar.update(tasks[what], completed=done, total=total or None, visible=True)

        yield watch
