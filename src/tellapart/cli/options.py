"""Flags that several verbs share."""

from __future__ import annotations

from typing import Annotated

import typer

LengthPenalty = Annotated[
    float | None,
    typer.Option(min=0, help="Above 0, a beam favours longer captions.", show_default="the captioner's own"),
]
