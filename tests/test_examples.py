"""The examples run, and show what they say they show."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_smile_lengthens_what_language_models_write() -> None:
    script = EXAMPLES / "smile_language_model.py"
    command = [sys.executable, str(script), "--steps", "80", "--further", "15"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = re.findall(r"^(\w+), ([\w ]+): ([\d.]+) words a text", done.stdout, flags=re.MULTILINE)
    stages = ("maximum likelihood", "more of it", "SMILE")
    assert [(model, stage) for model, stage, _ in found] == [
        (model, stage) for model in ("gpt2", "bart") for stage in stages
    ]
    lengths = [float(length) for _, _, length in found]
    for before, more, after in (lengths[:3], lengths[3:]):
        assert after > before + 1
        assert after > more + 1
