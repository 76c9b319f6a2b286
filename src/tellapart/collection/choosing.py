"""Which of its candidates a picture gets as its caption, and how hard is tried where none finds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tellapart.collection.attempts import LADDER, TARGETS, see_group
from tellapart.collection.cases import Case
from tellapart.collection.gathering import Picture
from tellapart.collection.speaker import Speaker
from tellapart.reranking.margin import Terms

FIRST, IN_VIEW = "candidates", "pragmatic"

Rivals = Mapping[int, Sequence[Picture]]
"""Each picture's rivals, by its row."""


@dataclass(frozen=True, slots=True)
class Chooser:
    """Chooses captions of pictures against their rivals."""

    speaker: Speaker
    terms: Terms

    def choose(self, cases: Sequence[Case], rivals: Rivals) -> None:
        """Choose for each picture, and try again for those that are not found, as far as the effort goes.

        What is chosen stands first among a picture's candidates afterwards, the next best behind it.
        """
        self._judge(cases, FIRST)
        steps = list(LADDER)[: self.speaker.plan.effort]
        if self.speaker.plan.apart == "pragmatic":
            self._try(IN_VIEW, [case for case in cases if case.has_rivals], rivals)
            steps = [step for step in steps if step != IN_VIEW]
        for step in steps:
            self._try(step, [case for case in cases if case.has_rivals and not case.is_found], rivals)

    def _try(self, step: str, cases: Sequence[Case], rivals: Rivals) -> None:
        """One way to further candidates, for some pictures at a time."""
        rung = LADDER[step]
        for first in range(0, len(cases), TARGETS):
            some = cases[first : first + TARGETS]
            group = see_group(self.speaker, some, rivals if rung.with_rivals else {})
            if group is not None:
                for case, found in zip(group.cases, rung.way(self.speaker, group), strict=True):
                    case.add(found, by=step)
                self._judge(group.cases, step)

    def _judge(self, cases: Sequence[Case], by: str) -> None:
        """Put the candidates of each picture in order."""
        unread = [case.unread for case in cases]
        vectors = self.speaker.read([caption for captions in unread for caption in captions])
        done = 0
        for case, captions in zip(cases, unread, strict=True):
            case.judge(vectors[done : done + len(captions)], self.terms, by=by)
            done += len(captions)
