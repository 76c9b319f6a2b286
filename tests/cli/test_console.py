"""Results reach the reader at once and whole, whatever the screen can show."""

from __future__ import annotations

import io
import json
import re
import sys
import time
from collections.abc import Callable

import pytest
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from tellapart.cli import console
from tellapart.cli.console import (
    RateColumn,
    complain,
    counting,
    one_line,
    remark,
    say,
    tell,
    tell_table,
    watching,
)
from tellapart.errors import TellapartError

SPELT_OUT = {
    "plain": "plain",
    "größe": r"gr\xf6\xdfe",
    "写真 👩": r"\u5199\u771f \U0001f469",
    "half \udcff a letter": r"half \udcff a letter",
    "two\nlines": r"two\nlines",
}

Screen = Callable[[str], io.BytesIO]


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """A stdout of that encoding that keeps to itself what was not flushed."""

    def make(encoding: str) -> io.BytesIO:
        raw = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BufferedWriter(raw), encoding))
        return raw

    return make


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "ascii", "cp1252"])
@pytest.mark.parametrize("name", SPELT_OUT)
def test_json_is_whole_on_any_screen(encoding: str, name: str, screen: Screen) -> None:
    shown = screen(encoding)
    say({"name": name})
    line = shown.getvalue().decode(encoding)
    assert (line.count("\n"), line[-1]) == (1, "\n")
    assert json.loads(line) == {"name": name}


@pytest.mark.parametrize("name", SPELT_OUT)
def test_what_cannot_be_shown_is_spelt_out(name: str, screen: Screen) -> None:
    shown = screen("ascii")
    tell(one_line(name))
    assert shown.getvalue().decode() == SPELT_OUT[name] + "\n"
    shown = screen("utf-8")
    tell(one_line(name))
    assert shown.getvalue().decode() in (name + "\n", SPELT_OUT[name] + "\n")


def test_json_is_not_escaped_where_it_need_not_be(screen: Screen) -> None:
    shown = screen("utf-8")
    say(["größe 写真"])
    assert shown.getvalue() == '["größe 写真"]\n'.encode()


def test_a_complaint_is_two_lines_of_any_length(capfd: pytest.CaptureFixture[str]) -> None:
    complain(TellapartError("[red]wrong[/red]\r\n" + 300 * "long ", hint="mend\u2028it"))
    assert capfd.readouterr().err.splitlines() == [
        "error: [red]wrong[/red]\\r\\n" + 300 * "long ",
        "  hint: mend\\u2028it",
    ]


def test_a_remark_is_one_line_of_any_length(capfd: pytest.CaptureFixture[str]) -> None:
    remark("[b]odd[/b]\n" + 300 * "long ")
    assert capfd.readouterr().err == "note: [b]odd[/b]\\n" + 300 * "long " + "\n"


def test_a_table_is_spelt_out_where_it_cannot_be_shown(screen: Screen) -> None:
    shown = screen("ascii")
    table = Table("name", "size", box=None, pad_edge=False)
    table.add_row("größe", "1 … 2")
    tell_table(table)
    assert shown.getvalue().decode().splitlines() == ["name   size", r"gr\xf6\xdfe  1 \u2026 2"]


def test_without_a_screen_each_thing_is_said_once(capfd: pytest.CaptureFixture[str]) -> None:
    with watching() as watch:
        for what, done in (("METEOR", 0), ("METEOR", 5), ("two\nlines", 0), ("METEOR", 0), ("METEOR", 9)):
            watch(what, done, 10)
    assert capfd.readouterr().err == "METEOR …\ntwo\\nlines …\n"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What a screen shows."""
    shown = io.StringIO()
    monkeypatch.setattr(
        console, "stderr", Console(file=shown, force_terminal=True, width=120, color_system=None)
    )
    return shown


FAR = re.compile(r"looking .* 60/90 \d+/s 0:00:0\d")


def test_on_a_screen_a_bar_shows_count_speed_and_time_left(terminal: io.StringIO) -> None:
    with counting("looking") as watch:
        for done in (0, 30, 60):
            watch(done, 90)
            time.sleep(0.05)
    assert FAR.search(terminal.getvalue())


def test_so_does_a_bar_of_work_that_says_what_it_does(terminal: io.StringIO) -> None:
    with watching() as watch:
        for done in (0, 30, 60):
            watch("looking", done, 90)
            time.sleep(0.05)
    assert FAR.search(terminal.getvalue())


def test_how_fast_is_told_to_a_digit_where_it_is_slow() -> None:
    column, clock = RateColumn(), iter(range(100))
    with Progress(
        column, get_time=lambda: float(next(clock)), console=Console(file=io.StringIO())
    ) as progress:
        task = progress.add_task("looking", total=9)
        assert column.render(progress.tasks[0]).plain == ""
        progress.update(task, completed=1)
        progress.update(task, completed=2)
        slow = column.render(progress.tasks[0]).plain
    assert re.fullmatch(r"\d\.\d/s", slow)
