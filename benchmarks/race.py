"""What a benchmark finds: the cost of a thing by us and by others, as a line to read and a row of a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from math import floor, log10
from statistics import median

DIGITS = 3  # that a measurement is worth
BAR = "&#124;"  # within a cell: a backslash before it would depend on the one before that
COLUMNS = ("what", "ours", "theirs", "ratio", "aim")


class Told(Enum):
    """How the ratio of two costs is told."""

    FAST = "times as fast"  # theirs through ours: more is better
    LONG = "times as long"  # ours through theirs: less is better
    MUCH = "times as much"  # the same, of memory


@dataclass(frozen=True)
class Race:
    """What one thing costs us and others who took turns with us, round by round; less is better.

    Where nobody else took part there is no ratio, and only a ceiling can be aimed at.
    """

    what: str
    ours: Sequence[float]
    unit: str
    against: str = ""  # who they are
    theirs: Sequence[float] = ()  # of the same rounds
    told: Told = Told.FAST
    aim: float | None = None  # of the ratio: at least so many times as fast, or at most so many times as long
    ceiling: float | None = None  # that ours should stay below
    note: str = ""  # for those who read the line

    def __post_init__(self) -> None:
        assert self.ours, "a race has rounds"
        assert not self.against or len(self.theirs) == len(self.ours), "ratios are of the same round"

    @property
    def ratios(self) -> list[float]:
        """Of each round."""
        pairs = zip(self.ours, self.theirs, strict=True) if self.against else ()
        return [theirs / ours if self.told is Told.FAST else ours / theirs for ours, theirs in pairs]

    @property
    def met(self) -> bool:
        """Whether all that was aimed at holds at the median."""
        below = self.ceiling is None or median(self.ours) < self.ceiling
        if self.aim is None:
            return below
        ratio = median(self.ratios)
        return below and (ratio >= self.aim if self.told is Told.FAST else ratio <= self.aim)

    def cells(self) -> tuple[str, ...]:
        """What stands under each of the columns."""
        theirs = f"{self._cost(self.theirs)}, {self.against}" if self.against else ""
        return self.what, self._cost(self.ours), theirs, self.ratio(), self.verdict()

    def ratio(self) -> str:
        """The median and the range of the rounds."""
        return f"{spread(self.ratios)} {self.told.value}" if self.against else ""

    def verdict(self) -> str:
        """What was aimed at, and whether it is met."""
        aims = []
        if self.aim is not None:
            aims.append(f"at {'least' if self.told is Told.FAST else 'most'} {self.aim:g}")
        if self.ceiling is not None:
            aims.append(f"below {self.ceiling:,g} {self.unit}")
        return f"{' and '.join(aims)}: {'met' if self.met else 'missed'}" if aims else ""

    def __str__(self) -> str:
        theirs = f"{self.against} {self._cost(self.theirs)}, " if self.against else ""
        found = f"{self.what}: {theirs}ours {self._cost(self.ours)}"
        return "; ".join(part for part in (found, self.ratio(), self.verdict(), self.note) if part)

    def _cost(self, rounds: Sequence[float]) -> str:
        return f"{figure(median(rounds))} {self.unit}"


@dataclass(frozen=True)
class NotRun:
    """In the place of races that could not be held."""

    what: str
    why: str

    def cells(self) -> tuple[str, ...]:
        """What stands under each of the columns."""
        return self.what, "", "", f"not run: {self.why}", ""

    def __str__(self) -> str:
        return f"{self.what}: not run: {self.why}"


def figure(value: float) -> str:
    """A number with as many digits as a measurement is worth, or all that stand before its point."""
    decimals = DIGITS - 1 - floor(log10(abs(value))) if value else 0
    return f"{value:,.{max(0, decimals)}f}"


def spread(values: Iterable[float]) -> str:
    """The median and, of more than one, the range."""
    some = sorted(values)
    told = figure(median(some))
    return f"{told} ({figure(some[0])}–{figure(some[-1])})" if len(some) > 1 else told


def table(rows: Iterable[Race | NotRun]) -> str:
    """All of them in Markdown."""
    lines = [COLUMNS, ("---", "--:", "---", "---", "---"), *(row.cells() for row in rows)]
    return "\n".join(markdown_row(cells) for cells in lines)


def markdown_row(cells: Iterable[str]) -> str:
    """One line of a table, whatever its cells hold."""
    return f"| {' | '.join(' '.join(cell.split()).replace('|', BAR) for cell in cells)} |"
