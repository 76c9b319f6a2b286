"""`tellapart caption` as a process of its own: captions stream, and it can be stopped at any moment.

Each caption asks for so many candidates that the pipe is full long before the last picture: the process
has to wait until somebody reads, so that these tests do not depend on who is faster.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest
from PIL import Image

Process = subprocess.Popen[bytes]


def start(tiny_captioner: Path, *paths: Path) -> tuple[Process, IO[bytes], bytes]:
    """A process that has given its first line and has much to say."""
    command = [
        sys.executable,
        "-m",
        "tellapart",
        "caption",
        "--apart",
        "off",
        *map(str, paths),
        "--captioner",
        str(tiny_captioner),
    ]
    process = subprocess.Popen(
        [*command, "--json", "--candidates", "60", "--no-cache"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    )
    assert process.stdout is not None
    return process, process.stdout, process.stdout.readline()


def test_captions_come_before_the_last_picture_is_there(
    tiny_captioner: Path, scenes: Path, tmp_path: Path
) -> None:
    late = tmp_path / "late.png"
    process, _, first = start(tiny_captioner, scenes / "images", late)
    shutil.copy(scenes / "images" / "000000.png", late)
    rest, err = process.communicate()

    assert (process.returncode, err) == (0, b"")
    images = [Path(json.loads(line)["image"]) for line in (first + rest).splitlines()]
    assert images == [*sorted((scenes / "images").iterdir()), late]
    assert len(rest) > 1 << 17, "the pipe was never full: the last picture may have been looked at too late"


@pytest.mark.parametrize("stop", ["reader gone", "Ctrl-C"])
def test_stopping_leaves_no_traceback(stop: str, tiny_captioner: Path, scenes: Path) -> None:
    process, out, first = start(tiny_captioner, scenes / "images")
    if stop == "Ctrl-C":
        process.send_signal(signal.SIGINT)
    else:
        out.close()
    rest, err = process.communicate() if stop == "Ctrl-C" else (b"", process.communicate()[1])

    assert json.loads(first)["image_id"] == "000000"
    assert process.returncode == (130 if stop == "Ctrl-C" else 1)
    assert err.strip() == b""
    assert len(rest.splitlines()) < 59


def test_a_full_disk_under_the_cache_is_said_once_and_captions_go_on(
    scenes: Path, tiny_captioner: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for number, picture in enumerate(sorted((scenes / "images").iterdir()) * 3):
        with Image.open(picture) as opened:
            opened.resize((128 + number, 128)).save(folder / f"{number:03}.png")
    limited = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000));"
        "from tellapart.cli import main; main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", limited, "caption", "--apart", "off", folder, "--captioner", tiny_captioner],
        env=os.environ | {"TELLAPART_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert len(ended.stdout.splitlines()) == 180
    assert ended.stderr.count("error:") == 1
    assert "cannot store features" in ended.stderr
    assert ended.returncode == 1
