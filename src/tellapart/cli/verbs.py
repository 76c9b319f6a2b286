"""The verbs of the command line, each imported when it is asked for.

Together they bring Pydantic and half of the package along, which takes longer than a whole search.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

HOMES = {
    "caption": "caption:caption",
    "demo": "demo:demo",
    "train": "train:train",
    "evaluate": "evaluate:evaluate",
    "ensemble": "ensemble:ensemble",
    "score": "score:score",
    "compare": "compare:compare",
    "correlate": "correlate:correlate",
    "retrieve": "retrieve:retrieve",
    "search": "search:search",
    "explain": "explain:explain",
    "self-retrieve": "self_retrieve:self_retrieve",
    "audit": "audit:audit",
    "entropy": "entropy:entropy",
    "reproduce": "reproduce:reproduce",
    "list": "listing:list_parts",
    "data": "data:app",
    "recipe": "recipe:app",
}
"""The module of each verb, and what the verb is called there, in the order of the help."""


class _Commands(dict[str, Any]):
    """Commands by name, each made when it is first asked for."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(HOMES))

    def get(self, verb: str, default: Any = None) -> Any:
        """A command; typer asks in this way alone."""
        if verb in self and self[verb] is None:
            self[verb] = typer.main.get_command(_app_of(verb))
            self[verb].name = verb
        return super().get(verb, default)


class Verbs(TyperGroup):
    """A group that knows the names of its commands before it has them."""

    _commands = _Commands()

    @property
    def commands(self) -> dict[str, Any]:
        """All verbs."""
        return self._commands

    @commands.setter
    def commands(self, given: object) -> None:
        """Typer gives those that were registered with it: none."""


def _app_of(verb: str) -> typer.Typer:
    module, _, name = HOMES[verb].partition(":")
    found: Any = getattr(import_module(f"tellapart.cli.{module}"), name)
    if isinstance(found, typer.Typer):
        return found  # several verbs under one name
    app = typer.Typer(add_completion=False)
    app.command(name=verb)(found)
    return app
