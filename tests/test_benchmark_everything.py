"""One benchmark that cannot run keeps no other from its turn, and the table says why."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import pytest
import torch
from benchmarks import everything
from benchmarks.everything import Benchmark, hold, main
from benchmarks.race import NotRun, Race

Run = Callable[..., tuple[int, str, str]]


def sprint() -> Iterator[Race]:
    torch.set_num_threads(torch.get_num_threads() + 1)
    yield Race("a sprint", [1.0], "s", against="a hare", theirs=[2.0])


def stumble() -> Iterator[Race]:
    yield Race("a stumble", [1.0], "s")
    raise ValueError("a stone\nin the way")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command with some benchmarks in place of the true ones: its exit code, stdout and stderr."""

    def run(benchmarks: dict[str, Benchmark], *arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(everything, "BENCHMARKS", benchmarks)
        monkeypatch.setattr(sys, "argv", ["everything", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), *capsys.readouterr()

    return run


def test_small_or_full_and_one_table(run: Run) -> None:
    before = torch.get_num_threads()
    code, out, err = run({"run": Benchmark(full=stumble, small=sprint)})
    assert code == 0
    assert out.endswith("| a sprint | 1.00 s | 2.00 s, a hare | 2.00 times as fast |  |\n")
    assert "run, 1 of 1" in err
    assert "a sprint: a hare 2.00 s, ours 1.00 s" in err
    assert torch.get_num_threads() == before
    assert "a stumble" in run({"run": Benchmark(full=stumble, small=sprint)}, "--full")[1]


def test_a_failure_is_a_row_behind_what_was_found_before_it(run: Run) -> None:
    code, out, err = run({"first": Benchmark(stumble, stumble), "second": Benchmark(sprint, sprint)})
    assert code == 1
    whats = [line.split(" | ")[0] for line in out.splitlines() if line.startswith("| ")]
    assert whats == ["| what", "| ---", "| a stumble", "| first", "| a sprint"]
    assert "not run: a stone in the way" in out
    assert "Traceback" in err


@pytest.mark.parametrize("name", ["pipeline", "metrics", "collection", "objectives"])
def test_missing_data_is_said_with_a_hint(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TELLAPART_DATA", raising=False)
    (row,) = hold(name, full=False)
    assert isinstance(row, NotRun)
    assert "TELLAPART_DATA" in row.why
