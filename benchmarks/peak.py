"""Run a command and print, as the last line of stderr, the most memory it held at once, in KiB.

python -m benchmarks.peak COMMAND…
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Watched:
    """What a process left behind."""

    printed: str
    seconds: float  # from its start to its end
    peak: float  # MiB


def watch(*arguments: str, env: Mapping[str, str] | None = None) -> Watched:
    """Run Python with these arguments, and with `env` added to the environment, to its end."""
    command = [sys.executable, "-m", "benchmarks.peak", sys.executable, *arguments]
    started = time.perf_counter()
    ended = subprocess.run(
        command, check=False, capture_output=True, text=True, env={**os.environ, **(env or {})}
    )
    took = time.perf_counter() - started
    if ended.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {ended.stderr}")
    return Watched(ended.stdout, took, int(ended.stderr.splitlines()[-1]) / 1024)


if __name__ == "__main__":
    ended = subprocess.run(sys.argv[1:], check=False)
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
    sys.exit(ended.returncode)
