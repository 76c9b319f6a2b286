"""`tellapart ensemble`: several captioners as one."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tellapart.cli.console import say, tell, waiting


class Mean(StrEnum):
    """What the mean is taken of."""

    probabilities = "probabilities"
    log_probabilities = "log-probabilities"


def ensemble(
    captioners: Annotated[
        list[str],
        typer.Argument(help="Two or more captioner or run folders, or 'default'.", show_default=False),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the new captioner.", show_default=False)],
    mean: Annotated[Mean, typer.Option(help="What the mean is taken of.")] = Mean.probabilities,
    json: Annotated[bool, typer.Option("--json", help="The result as JSON.")] = False,
) -> None:
    """Join captioners with the same words and the same encoder into one.

    Example: tellapart ensemble runs/a runs/b --out captioners/both
    """
    with waiting("joining the captioners"):
        from tellapart.ensembles import write_ensemble

        saved = write_ensemble(captioners, out, mean=mean.value)
    words = len(saved.captioner.text)
    if json:
        say({"captioner": str(out), "members": captioners, "mean": mean.value, "vocabulary": words})
        return
    tell(f"{out}: the mean of the {mean.value} of {len(captioners)} captioners, {words} words known")
