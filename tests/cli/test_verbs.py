"""Verbs are known by name, and imported when they are asked for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from tellapart.cli.verbs import HOMES

if TYPE_CHECKING:
    from tests.conftest import Outcome

    Tellapart = Callable[..., Outcome]


def test_the_help_has_every_verb(tellapart: Tellapart) -> None:
    lines = tellapart("--help").out.splitlines()
    for verb in HOMES:
        assert any(line.startswith(f"│ {verb} ") for line in lines), verb


def test_every_verb_has_a_help_with_its_own_name(tellapart: Tellapart) -> None:
    for verb in HOMES:
        outcome = tellapart(verb, "--help")
        assert outcome.code == 0
        assert f"tellapart {verb} " in outcome.out
        assert "--install-completion" not in outcome.out


def test_a_slip_of_the_finger_is_understood(tellapart: Tellapart) -> None:
    outcome = tellapart("serch", "a dog", "photos")
    assert outcome.code == 2
    assert "No such command 'serch'. Did you mean 'search'?" in outcome.err


def test_the_command_line_alone_brings_no_verb_along() -> None:
    code = (
        "import sys, tellapart.cli;"
        "print([name for name in sys.modules if name.startswith(('pydantic', 'numpy', 'tellapart.cli.'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['tellapart.cli.console', 'tellapart.cli.verbs']\n"


def test_the_flags_of_caption_wait_for_neither_arrays_nor_torch() -> None:
    code = (
        "import sys, tellapart.cli.caption;"
        "print([name for name in ('numpy', 'torch', 'pydantic', 'PIL') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
