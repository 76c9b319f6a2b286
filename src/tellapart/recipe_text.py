"""The text of a recipe: values with their lines, so that a complaint names the key, the line and the cure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from tellapart.errors import TellapartError
from tellapart.registry import Config, suggest

C = TypeVar("C", bound=Config)
Keys = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RecipeText:
    """A recipe's file and the changes made to it on the command line."""

    path: Path
    text: str
    changes: Mapping[Keys, Any]
    within: Keys = ()  # the table that all complaints are about

    @classmethod
    def read(cls, path: Path, *, changes: Sequence[str]) -> RecipeText:
        """Read the file; understand `section.key=value`."""
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise TellapartError(
                f"{path}: cannot be read ({error})", hint="a recipe is a TOML file in UTF-8"
            ) from error
        return cls(path, text, dict(_change(change) for change in changes))

    def values(self, *, parts: Collection[str]) -> dict[str, Any]:
        """All values, changes applied; a section of `parts` that gets another name loses its old settings."""
        try:
            values = tomllib.loads(self.text)
        except tomllib.TOMLDecodeError as error:
            twice = "twice" in str(error) or "overwrite" in str(error)
            hint = "give each its own name" if twice else "strings need quotes, sections [brackets]"
            raise TellapartError(f"{self.path}: not TOML: {error}", hint=hint) from error
        self._drop_renamed(values, parts)
        for keys, value in self.changes.items():
            table = values
            for key in keys[:-1]:
                table = table.setdefault(key, {})
                if not isinstance(table, dict):
                    raise TellapartError(
                        f"--set {'.'.join(keys)}: {key!r} is not a section",
                        hint="see 'tellapart recipe schema'",
                    )
            table[keys[-1]] = value
        return values

    def _drop_renamed(self, values: dict[str, Any], parts: Collection[str]) -> None:
        for (*outer, key), new in self.changes.items():
            if key != "name" or not outer or outer[-1] not in parts:
                continue
            table: Any = values
            for name in outer[:-1]:
                table = table.get(name, {}) if isinstance(table, dict) else {}
            before = table.get(outer[-1]) if isinstance(table, dict) else None
            if isinstance(before, dict) and before.get("name") != new:
                table[outer[-1]] = {}

    def inside(self, *keys: str) -> RecipeText:
        """The same, for complaints about what stands in one of its tables."""
        return replace(self, within=(*self.within, *keys))

    def validate(self, config: type[C], raw: Mapping[str, Any], *, at: Keys) -> C:
        """The checked configuration, or an error about the first value that is wrong."""
        try:
            return config.model_validate(raw)
        except ValidationError as error:
            first = error.errors()[0]
            keys = (*at, *(str(key) for key in first["loc"]))
            if first["type"] == "extra_forbidden":
                known = _fields(config, first["loc"][:-1])
                raise self.error(keys, f"unknown key {keys[-1]!r}", hint=suggest(keys[-1], known)) from error
            got = (
                ""
                if first["type"] == "missing" or isinstance(first["input"], dict)
                else f", got {first['input']!r}"
            )
            said = first["msg"].removeprefix("Value error, ")
            problem = said[:1].lower() + said[1:] + got
            raise self.error(keys, problem, hint=_cure(first)) from error

    def error(self, keys: Keys, problem: str, *, hint: str) -> TellapartError:
        """A complaint about a value, with the place that set it."""
        keys = (*self.within, *keys)
        name = ".".join(keys)
        if any(changed[: len(keys)] == keys for changed in self.changes):
            return TellapartError(f"--set {name}: {problem}", hint=hint)
        line = self.line_of(keys)
        where = f"{self.path}:{line}" if line else f"{self.path}"
        return TellapartError(f"{where}: {name}: {problem}", hint=hint)

    def line_of(self, keys: Keys) -> int | None:
        """The line that sets a key or something in it, or else opens its section; None without either."""
        section: Keys = ()
        best = None
        for number, line in enumerate(self.text.splitlines(), start=1):
            if header := re.match(r"\s*\[\[?\s*([^\]]+?)\s*\]", line):
                section = _split(header.group(1))
                written = section
            elif setting := re.match(r"\s*([\w.\"'-]+)\s*=", line):
                written = (*section, *_split(setting.group(1)))
            else:
                continue
            if written[: len(keys)] == keys:
                return number
            if written == keys[: len(written)]:
                best = number
        return best


def _cure(complaint: ErrorDetails) -> str:
    """The nearest right word where one of a few is wanted, or else where to read what is wanted."""
    choices = re.findall(r"[\w-]+", str(complaint.get("ctx", {}).get("expected", "")).replace(" or ", " "))
    if choices and isinstance(complaint["input"], str):
        return suggest(complaint["input"], choices)
    return "'tellapart recipe schema' lists every key and its type"


def _split(dotted: str) -> Keys:
    return tuple(key.strip().strip("\"'") for key in dotted.split("."))


def _change(change: str) -> tuple[Keys, Any]:
    name, equals, value = change.partition("=")
    if not equals or not name.strip():
        raise TellapartError(
            f"--set {change}: not of the form section.key=value", hint="e.g. --set training.epochs=5"
        )
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value  # a bare word is meant as text
    return _split(name.strip()), parsed


def _fields(config: type[BaseModel], keys: tuple[int | str, ...]) -> list[str]:
    """Names of the fields at that depth of a configuration."""
    for key in keys:
        if isinstance(key, int):
            continue  # a place in a list, whose items are what was looked up before
        inner = config.model_fields[key].annotation
        if get_origin(inner) is list:
            (inner,) = get_args(inner)
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return []
        config = inner
    return list(config.model_fields)
