"""What a user can fix, said in one sentence with a hint."""

from __future__ import annotations


class TellapartError(Exception):
    """A problem the user can mend: what is wrong and where, and what to do about it.

    The command line prints both and exits with 1; no traceback is shown.
    """

    def __init__(self, problem: str, *, hint: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.problem}\n  hint: {self.hint}"

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions pickle by their positional arguments, which would lose the hint between processes.
        return (_rebuild, (type(self), self.problem, self.hint))


def _rebuild(kind: type[TellapartError], problem: str, hint: str) -> TellapartError:
    return kind(problem, hint=hint)


class UnknownName(TellapartError):  # noqa: N818 - reads as a sentence where it is raised
    """A name that no part of that kind has."""
