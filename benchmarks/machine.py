"""What a benchmark runs on, in one line above its figures."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")


def machine() -> str:
    """Cores, processor, the libraries that do the work, and how busy it has been in the last minute."""
    libraries = ", ".join(f"{name} {version(name)}" for name in ("torch", "onnxruntime"))
    return f"{os.cpu_count()} cores, {processor()}, {libraries}, load {os.getloadavg()[0]:.1f}"


def processor() -> str:
    """What the processor calls itself, or its kind where the system does not tell."""
    lines = CPUINFO.read_text(encoding="utf-8").splitlines() if CPUINFO.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
