"""Several processes that train together hold the weights of one that sees the whole batch."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from tests.objectives.material import SMALL, objective_changes

from tellapart.errors import TellapartError
from tellapart.objectives.parts import OBJECTIVES
from tellapart.run import Run
from tellapart.world import World, join_world

WORKER = Path(__file__).with_name("parallel_worker.py")
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
State = dict[str, torch.Tensor]
STILL = (*SMALL, "captioner.name=transformer", "captioner.dropout=0.0", "training.images_per_batch=5")


def launch(command: Sequence[str | Path], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, one thread a process."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parents[1])}
    ended = subprocess.run(
        list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    return ended


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, own_cache: Path) -> Callable[[str, int], State]:
    """What one process alone and each of two hold after a few steps of every objective."""
    folder = tmp_path_factory.mktemp("parallel")
    # Adam makes as much of a gradient that is nothing but rounding as of any other.
    plain = [*STILL, "optimiser.name=sgd", "optimiser.learning_rate=0.5"]
    jobs = {name: [*plain, *objective_changes(name, folder)] for name in OBJECTIVES.names()}
    jobs["mle-in-portions"] = [*plain, "training.portions=2"]
    (folder / "jobs.json").write_text(json.dumps(jobs))
    for kind, launcher in (("one", (sys.executable,)), ("two", TORCHRUN)):
        (folder / kind).mkdir()
        launch([*launcher, WORKER, folder / "jobs.json", folder / kind], folder)

    def read(name: str, rank: int) -> State:
        kind, place = ("one", 0) if rank < 0 else ("two", rank)
        found: State = torch.load(folder / kind / f"{name}-{place}.pt", weights_only=True)
        return found

    return read


@pytest.mark.parametrize("name", [*OBJECTIVES.names(), "mle-in-portions"])
def test_two_processes_equal_one_at_the_same_batch(name: str, both: Callable[[str, int], State]) -> None:
    alone, first, second = both(name, -1), both(name, 0), both(name, 1)
    assert first.keys() == second.keys() == alone.keys()
    for key, tensor in first.items():
        assert torch.equal(tensor, second[key]), f"{key} differs between the processes"
        torch.testing.assert_close(tensor, alone[key], rtol=1e-4, atol=1e-6)


LAUNCHERS = {
    "torchrun": TORCHRUN,
    # On processors, accelerate starts several processes only where it is told of several GPUs.
    "accelerate": (
        *(sys.executable, "-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2"),
        *("--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no"),
    ),
}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_train_runs_unchanged_under_a_launcher(launcher: str, tmp_path: Path, own_cache: Path) -> None:
    changes = [word for change in (*STILL, "training.epochs=1") for word in ("--set", change)]
    start = (*LAUNCHERS[launcher], "-m", "tellapart", "train", "mrnn-shapes", *changes)
    ended = launch([*start, "--out", tmp_path / "two"], tmp_path)
    assert ended.stdout.count("the best captioner is in") == 1  # one process speaks
    alone = (sys.executable, "-m", "tellapart", "train", "mrnn-shapes", *changes)
    launch([*alone, "--out", tmp_path / "one"], tmp_path)
    one, two = (Run(tmp_path / name) for name in ("one", "two"))
    states = [torch.load(run.latest_checkpoint() or "", weights_only=True)["step"] for run in (one, two)]
    for key, tensor in states[0].items():
        torch.testing.assert_close(states[1][key], tensor, rtol=1e-3, atol=1e-5)
    assert [entry["step"] for entry in one.entries()] == [entry["step"] for entry in two.entries()]


def start(rank: int, port: int, *words: str | Path) -> subprocess.Popen[str]:
    """One of two processes as a launcher would start it, with an output of its own."""
    told = {
        "RANK": rank,
        "WORLD_SIZE": 2,
        "LOCAL_RANK": rank,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
    }
    return subprocess.Popen(
        [sys.executable, "-m", "tellapart", "train", "mrnn-shapes", *map(str, words)],
        env={**os.environ, "OMP_NUM_THREADS": "1", **{name: str(value) for name, value in told.items()}},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def free_port() -> int:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        port: int = door.getsockname()[1]
        return port


def test_an_error_of_the_leading_process_is_said_once(tmp_path: Path, own_cache: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "note.txt").touch()  # which the leading process alone looks for
    port, changes = free_port(), [word for change in STILL for word in ("--set", change)]
    both = [start(rank, port, "--out", tmp_path / "run", *changes) for rank in (0, 1)]
    told = [process.communicate(timeout=120)[1] for process in both]
    assert [process.returncode for process in both] == [1, 1]
    assert told[0].startswith("error: ")
    assert "there is something in this folder already" in told[0]
    assert told[1] == "process 2 of 2 ends, for another one has ended\n"


def test_a_process_whose_leader_was_killed_ends_with_one_line(tmp_path: Path, own_cache: Path) -> None:
    run, port = Run(tmp_path / "run"), free_port()
    changes = [word for change in (*STILL, "training.epochs=1000000") for word in ("--set", change)]
    leader, other = (start(rank, port, "--out", run.folder, *changes) for rank in (0, 1))
    deadline = time.monotonic() + 120
    while run.latest_checkpoint() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    leader.kill()
    _, told = other.communicate(timeout=60)
    leader.communicate()
    assert run.latest_checkpoint() is not None
    assert other.returncode == 1
    assert told == "process 2 of 2 ends, for another one has ended\n"


LEAVES = """
import pathlib
from tellapart.world import join_world
def threads():
    return sorted(place.read_text() for place in pathlib.Path("/proc/self/task").glob("*/comm"))
before = threads()
with join_world() as world:
    import torch.distributed.nn.functional  # as torch does by itself for some optimisers
    world.total(1.0)
    assert any("gloo" in name for name in threads())
assert threads() == before, threads()
"""


def test_no_thread_outlives_the_group(tmp_path: Path) -> None:
    # One that did would abort the process now and then at its end.
    (tmp_path / "leaves.py").write_text(LEAVES)
    launch([*TORCHRUN, tmp_path / "leaves.py"], tmp_path)


def test_a_launcher_that_says_nonsense_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "many")
    with pytest.raises(TellapartError, match="WORLD_SIZE is 'many'"), join_world():
        pass


def test_alone_there_is_nothing_to_agree_on() -> None:
    with join_world() as world:
        assert world.leads
        assert world.agree("x") == "x"
        assert world.any(True)
        assert not world.any(False)
        assert world.total(2.5) == 2.5


def test_processes_share_all_rows() -> None:
    rows = list(range(7))
    shared = [row for rank in range(3) for row in World(rank, 3).share(rows)]
    assert sorted(shared) == rows
