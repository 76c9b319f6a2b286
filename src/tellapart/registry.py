"""Names of exchangeable parts: what can be written in a recipe, and what each name stands for.

A registry never imports the code of a part to list or check it: a `Part` holds the configuration class,
which is light, and the *address* of its builder, which may import torch. Other packages add parts through
the entry-point groups `tellapart.captioners`, `tellapart.objectives`, `tellapart.encoders` and so on; each
entry point names a `Part`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict

from tellapart.errors import TellapartError, UnknownName


class Config(BaseModel):
    """Settings of one part. Frozen; an unknown key is an error, and so is "3" where a number belongs."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def _where(name: str) -> str:
    kind, colon, model = name.rpartition(":")
    if kind == "stage":  # what a recipe's own stage makes, whatever folders there are
        return name
    folder = Path(model).expanduser()
    return f"{kind}{colon}{folder.absolute()}" if model and folder.is_dir() else name


ModelName = Annotated[str, AfterValidator(_where)]
"""A setting that names a model: a folder as it may be read from every folder, any other name as it is."""


@dataclass(frozen=True, slots=True)
class Part:
    """What a registered name points to."""

    name: str
    summary: str
    config: type[Config]
    build: str  # "package.module:function", imported only when the part is used
    paper: str = ""
    # Settings that belong together under a name; "tiny" is for tests.
    presets: Mapping[str, Mapping[str, object]] = field(default_factory=dict)

    def configure(self, settings: Mapping[str, object], *, preset: str = "") -> Config:
        """Checked settings: the defaults, then those of the preset, then the given ones."""
        return self.config.model_validate({**self.preset(preset), **settings})

    def preset(self, name: str) -> Mapping[str, object]:
        """The settings under that name; none where no name is given."""
        if name and name not in self.presets:
            raise UnknownName(
                f"{self.name!r} has no preset called {name!r}", hint=suggest(name, sorted(self.presets))
            )
        return self.presets[name] if name else {}

    def builder(self) -> Callable[..., Any]:
        """Import the function that makes the part from its configuration."""
        module, _, attribute = self.build.partition(":")
        function: Callable[..., Any] = getattr(import_module(module), attribute)
        return function


P = TypeVar("P", bound=Part)


class Registry(Generic[P]):
    """The parts of one kind, by name."""

    def __init__(self, kind: str, parts: Iterable[P], *, group: str, holds: type[P]) -> None:
        self.kind = kind
        self.group = group
        self._holds = holds
        self._own = {part.name: part for part in parts}

    @cached_property
    def _all(self) -> dict[str, P]:
        found = dict(self._own)
        for point in entry_points(group=self.group):
            if point.name in found:
                raise TellapartError(
                    f"two packages offer a {self.kind} called {point.name!r}; one of them is {point.value!r}",
                    hint="uninstall one of the two packages",
                )
            found[point.name] = self._load(point)
        return found

    def _load(self, point: EntryPoint) -> P:
        try:
            part = point.load()
        except Exception as error:  # the code is another package's: it may raise anything
            raise self._useless(point, f"{type(error).__name__}: {error}") from error
        if not isinstance(part, self._holds) or part.name != point.name:
            raise self._useless(point, f"it is no {self._holds.__name__} called {point.name!r}")
        return part

    def _useless(self, point: EntryPoint, why: str) -> TellapartError:
        return TellapartError(
            f"the {self.kind} {point.name!r} of another package cannot be used ({point.value}): {why}",
            hint="update or uninstall that package",
        )

    def names(self) -> Sequence[str]:
        """Every name, in alphabetical order."""
        return sorted(self._all)

    def get(self, name: str) -> P:
        """The part of that name, or an error that lists the names there are."""
        if name not in self._all:
            raise UnknownName(f"no {self.kind} is called {name!r}", hint=suggest(name, self.names()))
        return self._all[name]


def suggest(word: str, known: Sequence[str]) -> str:
    """A hint for a mistyped word: the nearest right spelling, or all there are."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"there are: {', '.join(known)}" if known else "there are none"
