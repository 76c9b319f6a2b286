"""What tests of `tellapart caption` on collections share: a folder, a retriever, and the verb with both."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.collection.gallery import draw_many
from tests.retrievers.tiny_dual import write_tiny_dual

if TYPE_CHECKING:
    from tests.conftest import Outcome

Caption = Callable[..., "Outcome"]
COUNT = 8
SENTENCES = ["a red circle on the left of the blue square", "the photo of a circle on the right"]


def write_retriever(folder: Path) -> Path:
    """It looks at raw pixels as the tiny captioner does, and knows the same words."""
    return write_tiny_dual(folder, SENTENCES)


def draw_photos(folder: Path, count: int = COUNT) -> Path:
    """Pictures that are all unlike."""
    return draw_many(folder, count)


def records(outcome: Outcome) -> list[dict[str, Any]]:
    assert outcome.code == 0, outcome.err
    return [json.loads(line) for line in outcome.out.splitlines()]


def remarks(outcome: Outcome) -> list[str]:
    """What is said at the end, without the lines that say what is being done."""
    return [line for line in outcome.err.splitlines() if not line.endswith(" …")]


def refusal(outcome: Outcome) -> str:
    """What was wrong, said in one line with a hint, before any caption."""
    assert (outcome.code, outcome.out) == (1, ""), outcome.err
    problem, hint = outcome.err.splitlines()
    assert hint.startswith("  hint: ")
    return problem.removeprefix("error: ")
