"""On a real screen (a pseudo-terminal): bars are drawn, and results go where they belong."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

from tests.collection.gallery import draw_many
from tests.retrievers.tiny_dual import write_tiny_dual

CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def run_on_screen(command: list[str | Path], *, stdout: int | None) -> tuple[int, str]:
    """Exit code and what the screen showed; stderr is the screen, and stdout too unless it goes elsewhere."""
    screen, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tellapart", *command],
        stdout=terminal if stdout is None else stdout,
        stderr=terminal,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(terminal)
    shown = b""
    while True:
        try:
            piece = os.read(screen, 65536)
        except OSError:  # Linux says so when the last writer has gone
            break
        if not piece:
            break
        shown += piece
    os.close(screen)
    return process.wait(), shown.decode(errors="replace")


def test_captions_go_to_the_file_while_the_bar_is_on_the_screen(
    scenes: Path, tiny_captioner: Path, tmp_path: Path
) -> None:
    with (tmp_path / "out.txt").open("wb") as out:
        command: list[str | Path] = [
            "caption",
            scenes / "images",
            "--captioner",
            tiny_captioner,
            "--no-cache",
        ]
        code, screen = run_on_screen(command, stdout=out.fileno())
    lines = (tmp_path / "out.txt").read_text().splitlines()
    assert code == 0
    assert len(lines) == 60
    assert all(line.startswith(str(scenes)) for line in lines)
    assert "captioning" in screen
    assert lines[0] not in screen


def test_a_collection_shows_what_is_done_how_fast_and_how_long_still(
    tiny_captioner: Path, tmp_path: Path
) -> None:
    photos = draw_many(tmp_path / "photos", 150)
    retriever = write_tiny_dual(tmp_path / "retriever", ["a red circle on the left"])
    command: list[str | Path] = ["caption", photos, "--captioner", tiny_captioner, "--retriever", retriever]
    with (tmp_path / "out.txt").open("wb") as out:
        code, screen = run_on_screen([*command, "--effort", "0"], stdout=out.fileno())
    assert code == 0, screen
    for what in ("looking", "comparing", "captioning"):
        assert re.search(rf"{what}\S* .*150/150", CONTROL.sub("", screen)), what
    assert re.search(r"150/150 \d+(\.\d)?/s \d+:\d\d:\d\d", CONTROL.sub("", screen))

    code, screen = run_on_screen([*command, "--effort", "0"], stdout=None)

    assert code == 0, screen
    shown = (tmp_path / "out.txt").read_text().splitlines()
    before, _, after = screen.partition(shown[0])
    assert "looking" in before
    lines = CONTROL.sub("", shown[0] + after).replace("\r", "").splitlines()
    assert [line.strip() for line in lines][:150] == shown, "the bar stands among the captions"
    assert "captioning" not in after


def test_training_shows_loss_speed_and_time_left(tmp_path: Path) -> None:
    changes = ["data.scenes=60", "training.epochs=2", "captioner.multimodal=8"]
    command: list[str | Path] = ["train", "mrnn-shapes", "--out", tmp_path / "run"]
    code, screen = run_on_screen(
        [*command, *(word for change in changes for word in ("--set", change))], stdout=None
    )
    assert code == 0, screen
    assert "tokens/s" in screen
    assert "loss" in screen
    assert "0:00:0" in screen  # the time left
    assert screen.count("validation: perplexity") == 2
    assert "Traceback" not in screen


def test_comparing_shows_how_far_it_is(scenes: Path, tmp_path: Path) -> None:
    with (tmp_path / "out.txt").open("wb") as out:
        captions = scenes / "captions.jsonl"
        command: list[str | Path] = ["compare", captions, captions, "--references", captions]
        code, screen = run_on_screen([*command, "--metrics", "bleu", "--draws", "40000"], stdout=out.fileno())
    assert code == 0, screen
    assert "drawing images anew" in screen
    assert "/40000" in screen
    assert "BLEU-4" not in screen
    assert "BLEU-4" in (tmp_path / "out.txt").read_text()
