"""Libraries that the core does without: imported when asked for, with an error that says how to get them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from tellapart.errors import TellapartError

_LONGEST = 300  # characters of a foreign library's complaint


def import_extra(module: str, *, needed_by: str, extra: str) -> ModuleType:
    """A library of an optional extra, or an error that says who needs it and how to install it."""
    install = f"pip install 'tellapart[{extra}]'"
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        problem = f"{needed_by} needs {module}, and there is no module {error.name!r}"
        raise TellapartError(problem, hint=install) from error
    except Exception as error:  # a library built for another version of a second one raises nearly anything
        raise TellapartError(
            f"{needed_by} needs {module}, which fails to import: {in_short(error)}",
            hint=f"install versions that belong together: {install}",
        ) from error


def in_short(error: Exception) -> str:
    """What a foreign library says, on one line and not for pages."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"
