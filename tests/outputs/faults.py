"""Folders that are full or may not be written to, and small programs that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

# The disk is full for this process from here on: no file may grow beyond the size.
LIMIT = """
import resource, signal
def limit(size):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
"""


@contextmanager
def small_disk(folder: Path, *, kilobytes: int) -> Iterator[Path]:
    """A disk of that size, mounted at a new folder; skips where that is not allowed."""
    folder.mkdir()
    with _mounted(["-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)], folder):
        yield folder


def make_room(folder: Path, *, kilobytes: int) -> None:
    """Let a small disk grow."""
    subprocess.run(["mount", "-o", f"remount,size={kilobytes}k", str(folder)], check=True)


@contextmanager
def read_only(folder: Path) -> Iterator[Path]:
    """The folder, which may not be written to meanwhile. Permissions mean nothing to root: a mount does."""
    if os.geteuid() != 0:
        folder.chmod(0o555)
        try:
            yield folder
        finally:
            folder.chmod(0o755)
        return
    with _mounted(["--bind", str(folder), str(folder)], folder):
        subprocess.run(["mount", "-o", "remount,ro,bind", str(folder)], check=True)
        yield folder


@contextmanager
def _mounted(arguments: list[str], folder: Path) -> Iterator[None]:
    try:
        done = subprocess.run(["mount", *arguments], check=False, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if done.returncode:
        pytest.skip(f"mounting is not allowed: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def program(script: str, *arguments: object) -> subprocess.Popen[str]:
    """A small program in a process of its own."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def outcome(running: subprocess.Popen[str], *, code: int = 0) -> str:
    """What it printed, once it has ended with this code."""
    out, err = running.communicate(timeout=100)
    assert running.returncode == code, err
    return out


def killed(running: subprocess.Popen[str]) -> str:
    """What it printed until now, when it is killed; on a fast machine it may have come to its end."""
    running.kill()
    assert running.stdout is not None
    assert running.stderr is not None
    with running:  # `communicate` would pass over what was read ahead together with an earlier line
        out, err = running.stdout.read(), running.stderr.read()
    assert running.returncode in (0, -signal.SIGKILL), err
    return out


def names_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())
