"""What is run for a paper and what it says came out there. Data alone: nothing here imports torch.

A `Method` is something that is trained, or written to train on. A `Way` is how captions, or ranks, come out
of it. What a method came to in a way is a `Cell`, such as `mrnn/beam5`; rows of tables and parts of claims
speak of cells. A method's name is its own over all papers, which share what they have in common.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tellapart.errors import TellapartError, UnknownName
from tellapart.registry import suggest

MethodKind = Literal["train", "entropy", "simplest", "simpler", "single", "people"]
WayKind = Literal[
    "beam", "sample", "consensus", "oracle", "margin", "retrieval", "likelihood", "penalties", "people"
]
Direction = Literal["above", "below", "slightly below", "alike", "not above"]

# In changes, {teacher} is the retriever that teaches, and {judge} the other one, by which a run's learning is
# watched and nothing is chosen.
TEACHER, JUDGE = "teacher", "judge"
PLACE = re.compile(r"\{([\w.+~-]+)\}")  # tables of TOML have blanks inside their braces


@dataclass(frozen=True, slots=True)
class Method:
    """Something that is trained, from a recipe and what is changed in it.

    kind   train     by the recipe.
           entropy   caption files: the training captions divided by retrieval entropy.
           simplest  caption files: the subjects of the training captions alone.
           simpler   caption files: their subjects, verbs and objects.
           single    caption files: one caption of each picture, the others left out.
           people    nothing is trained: one of the captions that people wrote of each picture.
    """

    name: str
    says: str  # what it is, in a few words
    recipe: str = ""  # its captioner's, without the ending that names the data
    changes: tuple[str, ...] = ()  # {other} stands for the folder of another method, of the same seed
    start: str = ""  # the method whose captioner it goes on from
    seeds: int = 1
    minutes: float = 0.0  # of training one seed on Flickr8k, with 2 cores
    priority: int = 2  # 0: a base, 1: a full method, 2: what is left out first when time is short
    kind: MethodKind = "train"
    needs_photographs: bool = False  # that drawn scenes have no like of
    share: float = 1.0  # of the recipe's epochs; what is smaller has a name that says so

    @property
    def others(self) -> tuple[str, ...]:
        """The methods that have to be there first."""
        named = (name for change in self.changes for name in PLACE.findall(change))
        return tuple(dict.fromkeys(name for name in (self.start, *named) if name not in ("", TEACHER, JUDGE)))


@dataclass(frozen=True, slots=True)
class Way:
    """How captions come out: searched, drawn, or chosen from those of another way; or ranks.

    kind   beam        all captions of a beam; of width 1, the greedy one.
           sample      drawn at temperature 1.
           consensus   those of another way by their agreement with captions of similar training pictures.
           oracle      those of another way by their agreement with the references: an upper bound.
           margin      those of another way by how much better they fit their picture than its neighbours.
           retrieval   ranks of pictures and people's sentences by likelihood, both ways, plain and by m-RNN's
           Eq. 7.
           likelihood  ranks of the own picture by the likelihood of the captions of another way.
           penalties   what each word that people wrote costs the captioner, by MLE and by SMILE.
           people      what people wrote.
    """

    name: str
    kind: WayKind
    size: int = 1  # of the beam, or captions drawn
    keep: int = 1  # captions that are kept
    of: str = ""  # the way whose captions it orders or ranks
    by: str = ""  # consensus: bleu or cider; oracle: a score
    sight: str = "pooled"  # consensus: the feature that neighbours are found by, pooled or refined
    fluency: bool = False  # whether a language model says how fluent the captions of the first seed are
    sets: bool = False  # whether the first few captions are measured as a set
    seeds: int = 3  # of a method, so many at the most: some ways take longer than training
    minutes: float = 0.5


@dataclass(frozen=True, order=True, slots=True)
class Cell:
    """What a method came to in a way."""

    method: str
    way: str

    def __str__(self) -> str:
        return f"{self.method}/{self.way}"


def cell(text: str) -> Cell:
    """A cell as it is written: method/way."""
    method, _, way = text.rpartition("/")
    return Cell(method, way)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a paper's table, and the measure of ours that it is held against."""

    label: str
    measure: str  # "" where we measure nothing like it
    scale: float = 1.0  # ours is multiplied by this: papers print percentages, and words in thousands
    digits: int = 3
    way: str = ""  # where the row's method is measured in another way than the row names


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a paper's table, in its own words and numbers, and our cell."""

    label: str
    ours: str = ""  # "" where the row is of a system that is not ours to run
    paper: tuple[str, ...] = ()  # as printed, a cell each; "": not printed, "?": not to be read in our copy


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a paper beside ours."""

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    note: str = ""  # what differs between theirs and ours
    is_curve: bool = False  # whether its rows are drawn as lines, column by column


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a paper that shows how methods learn, and the figure of ours that is held against it."""

    name: str
    title: str
    measure: str  # of those on the validation split that a run's log holds
    methods: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """One comparison that a claim consists of: a measure of one cell against that of another.

    `alike` says that the first lies within `margin` of the second, as a share of the second's value; `not
    above`, that it lies above it by less than that; `slightly below`, that it lies below it, and by less.
    With `after`, two gains are compared: the first's over the second, and the second's over this third.
    """

    measure: str
    one: str
    direction: Direction
    other: str
    margin: float = 0.05
    than: str = ""  # the other's measure, where it is another one
    after: str = ""  # the cell that the other has gained over

    @property
    def said(self) -> str:
        """In words."""
        words = {
            "above": "above",
            "below": "below",
            "slightly below": f"below, by less than {self.margin:.0%},",
            "alike": f"within {self.margin:.0%} of",
            "not above": f"no more than {self.margin:.0%} above",
        }
        if self.after:
            gains = (
                f"gain in {self.measure} of {self.one} over {self.other}",
                f"of the latter over {self.after}",
            )
            return f"{gains[0]} {words[self.direction]} that {gains[1]}"
        return f"{self.measure} of {self.one} {words[self.direction]} {self.than or 'that'} of {self.other}"

    @property
    def cells(self) -> tuple[str, ...]:
        """All that it speaks of."""
        return (self.one, self.other, *([self.after] if self.after else ()))


@dataclass(frozen=True, slots=True)
class Claim:
    """What a paper says, in its own words or, in parentheses, in ours; and what would have to be so."""

    name: str
    words: str
    where: str
    parts: tuple[Part, ...]

    @property
    def quoted(self) -> str:
        """Its words as a report has them; what is in parentheses is ours, and no quotation."""
        return self.words if self.words.startswith("(") else f"“{self.words}”"


@dataclass(frozen=True, slots=True)
class Showing:
    """Which cells stand side by side under pictures, the plain one first; and those of penalties."""

    cells: tuple[str, ...]
    penalties: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Paper:
    """All that is run for a paper."""

    name: str
    title: str
    methods: tuple[Method, ...]
    ways: Mapping[str, tuple[str, ...]]  # by method
    tables: tuple[Table, ...]
    claims: tuple[Claim, ...]
    gallery: Showing
    figures: tuple[Figure, ...] = ()
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()  # what the paper has and we do not run, and why
    plot: str = ""  # the table whose rows are drawn by accuracy and by how often they find their picture

    @property
    def cells(self) -> list[Cell]:
        """Everything that comes out, methods in their order."""
        return [Cell(method.name, way) for method in self.methods for way in self.ways.get(method.name, ())]


@dataclass(frozen=True, slots=True)
class Job:
    """A method with one of its seeds, and the ways it is wanted in."""

    method: Method
    seed: int
    ways: tuple[Way, ...]

    @property
    def name(self) -> str:
        """Of its folder and its files."""
        return f"{self.method.name}-{self.seed}"

    @property
    def minutes(self) -> float:
        """Of training and writing, on Flickr8k with 2 cores."""
        return self.method.minutes + sum(way.minutes for way in self.ways)


@dataclass(frozen=True, slots=True)
class Plan:
    """Methods in an order in which each comes after those it needs, and the ways each is wanted in."""

    methods: Mapping[str, Method]
    ways: Mapping[str, tuple[Way, ...]]
    seeds: frozenset[int] = frozenset()  # those alone are wanted; none named: all

    @property
    def jobs(self) -> list[Job]:
        """All runs, the first seed of every method first: a plan that is cut short has something of all."""
        every = [
            Job(method, seed, tuple(way for way in self.ways.get(name, ()) if seed <= way.seeds))
            for seed in range(1, 1 + max((method.seeds for method in self.methods.values()), default=0))
            for name, method in self.methods.items()
            if seed <= method.seeds
        ]
        return self._of_seeds(every) if self.seeds else every

    def _of_seeds(self, jobs: Sequence[Job]) -> list[Job]:
        """Those of the seeds that are wanted and, wanted in no way, what they go on from."""
        called_for = {other for method in self.methods.values() for other in method.others}
        kept: set[str] = set()
        for job in reversed(jobs):
            stands_alone = job.method.name not in {*called_for, *self.ways}  # a judge, or a teacher
            if job.seed in self.seeds or job.name in kept or stands_alone:
                kept |= {job.name, *self.needs(job)}
        return [job if job.seed in self.seeds else replace(job, ways=()) for job in jobs if job.name in kept]

    @property
    def minutes(self) -> float:
        """Of all runs, on Flickr8k with 2 cores."""
        return sum(job.minutes for job in self.jobs)

    def needs(self, job: Job) -> dict[str, str]:
        """The names of the jobs that have to be there first, each with its method's."""
        seeds = {other: min(job.seed, self.methods[other].seeds) for other in job.method.others}
        return {f"{other}-{seed}": other for other, seed in seeds.items()}

    def seeds_of(self, one: Cell) -> int:
        """How many seeds are wanted of a cell; 0 where it is not in the plan."""
        way = next((way for way in self.ways.get(one.method, ()) if way.name == one.way), None)
        return 0 if way is None else min(self.methods[one.method].seeds, way.seeds)

    def is_seedless(self, one: Cell) -> bool:
        """Whether a cell is the same for all seeds."""
        return one.method in self.methods and self.methods[one.method].kind == "people"

    def without(self, names: Iterable[str]) -> Plan:
        """The same without some methods and without all that hangs on them."""
        left = set(names)
        methods = {}
        for name, method in self.methods.items():
            if name in left or left & set(method.others):
                left.add(name)
            else:
                methods[name] = method
        ways = {name: ways for name, ways in self.ways.items() if name in methods}
        return replace(self, methods=methods, ways=ways)

    def only(self, names: Iterable[str]) -> Plan:
        """Some methods alone, with all that they need, which is then wanted in no way."""
        wanted = list(names)
        for name in wanted:
            if name not in self.methods:
                raise UnknownName(
                    f"no method of this plan is called {name!r}", hint=suggest(name, list(self.methods))
                )
        needed = set(wanted)
        for name in reversed(list(self.methods)):
            if name in needed:
                needed |= set(self.methods[name].others)
        methods = {name: method for name, method in self.methods.items() if name in needed}
        ways = {name: self.ways[name] for name in wanted if name in self.ways}
        return replace(self, methods=methods, ways=ways)

    def only_seeds(self, seeds: Iterable[int]) -> Plan:
        """Some seeds alone of every method that has them, with all that they need."""
        named, most = frozenset(seeds), max((method.seeds for method in self.methods.values()), default=0)
        for seed in sorted(named):
            if not 1 <= seed <= most:
                raise TellapartError(
                    f"no method of this plan has a seed {seed}", hint=f"name one from 1 to {most}"
                )
        return replace(self, seeds=named)

    def with_seeds(self, most: int) -> Plan:
        """No method with more seeds than that."""
        methods = {name: replace(one, seeds=min(one.seeds, most)) for name, one in self.methods.items()}
        return replace(self, methods=methods)


def join(papers: Iterable[Paper], ways: Mapping[str, Way]) -> Plan:
    """The plan of several papers: each method once, in all ways that any of them wants."""
    methods: dict[str, Method] = {}
    wanted: dict[str, dict[str, Way]] = {}
    for paper in papers:
        for method in paper.methods:
            known = methods.setdefault(method.name, method)
            assert known == method, f"two methods are called {method.name}"
        for name, some in paper.ways.items():
            for way in some:
                for each in (*_chosen_from(ways[way], ways), ways[way]):
                    wanted.setdefault(name, {})[each.name] = each
    return Plan(_in_order(methods), {name: tuple(some.values()) for name, some in wanted.items()})


def _chosen_from(way: Way, ways: Mapping[str, Way]) -> Iterator[Way]:
    """The ways whose captions it takes, the first one first."""
    if way.of:
        yield from _chosen_from(ways[way.of], ways)
        yield ways[way.of]


def _in_order(methods: Mapping[str, Method]) -> dict[str, Method]:
    """Each after those it needs; else as they stand."""
    ordered: dict[str, Method] = {}

    def add(method: Method) -> None:
        for other in method.others:
            if other not in ordered:
                add(methods[other])
        ordered.setdefault(method.name, method)

    for method in methods.values():
        add(method)
    return ordered
