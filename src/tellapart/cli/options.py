"""Flags that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tellapart.errors import TellapartError

LengthPenalty = Annotated[
    float | None,
    typer.Option(min=0, help="Above 0, a beam favours longer captions.", show_default="the captioner's own"),
]

PAGE_SUFFIXES = (".html", ".htm")


def expect_page(page: Path | None) -> None:
    """Refuse what is not the name of a page: `--page *.jpg` would replace a photograph by one."""
    if page is not None and page.suffix.lower() not in PAGE_SUFFIXES:
        raise TellapartError(f"--page {page}: not the name of a page", hint="let it end in .html")
