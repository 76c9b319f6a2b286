"""A journal of captions: predictions JSONL with where each came from, to which a run can be gone on with.

Every line is one picture's:

    {"journal": 1, "image": "photos/a.jpg", "image_id": "a", "key": "…", "caption": "…", "model": "default",
     "seed": 0, "apart": "margin", "candidates": […], "neighbours": […], "attempts": […]}

A line holds as long as its key, a fingerprint of all that the caption depends on, and the settings are what
they were. Another caption of the same picture is another line, further down; at the end the file is put in
order, in one step: one line a picture.

What is promised: a line that was added is there after a kill at any moment. After a loss of power those of
the last seconds may be missing; the file is whole up to some line.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tellapart.errors import TellapartError
from tellapart.outputs.journal_file import FORMAT, MARK, JournalFile

SYNC_SECONDS = 5.0  # the most that a loss of power may cost
_OWN = frozenset({MARK, "image", "image_id", "key", "caption"})


@dataclass(frozen=True, slots=True)
class Record:
    """A caption of a picture.

    Attributes:
        image: the picture's file.
        image_id: what it is called; no other picture is.
        key: fingerprint of what the caption depends on.
        caption: the caption proper.
        about: anything else that is to stand in its line: candidates, scores, neighbours, attempts.
    """

    image: Path
    image_id: str
    key: str
    caption: str
    about: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Place:
    """The last line of a picture."""

    start: int
    length: int
    key: str
    holds: bool  # whether it was written with the settings of today


class Journal:
    """The captions in a file, and the way to add to them. Lines stay on disk: memory holds their places."""

    def __init__(self, file: JournalFile, settings: Mapping[str, object]) -> None:
        if taken := _OWN & settings.keys():
            raise ValueError(f"settings may not be called {sorted(taken)}")
        self._file = file
        self._settings: dict[str, Any] = json.loads(json.dumps(settings))
        self._places: dict[str, _Place] = {}
        self._earlier: dict[str, tuple[str, ...]] = {}
        self._images: dict[str, str] = {}  # of the records added here
        self._count = 0
        self._synced = time.monotonic()
        for line in file.lines():
            self._count += 1
            self._note(line.fields, line.start, line.length)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, image_id: str) -> bool:
        return image_id in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def holds(self, image_id: str, key: str) -> bool:
        """Whether the picture's caption is still good."""
        place = self._places.get(image_id)
        return place is not None and place.holds and place.key == key

    def fields(self, image_id: str) -> dict[str, Any] | None:
        """The picture's last line, whether it holds or not."""
        place = self._places.get(image_id)
        return None if place is None else self._file.read(place.start, place.length)

    def current(self, image_id: str) -> dict[str, Any] | None:
        """The picture's last line, if it was written with the settings of today."""
        place = self._places.get(image_id)
        return None if place is None or not place.holds else self._file.read(place.start, place.length)

    def earlier(self, image_id: str) -> tuple[str, ...]:
        """Captions that the picture had before its last one, until the journal is put in order."""
        return self._earlier.get(image_id, ())

    def refuse_other_settings(self) -> None:
        """An error if captions in the file were made with other settings, for they would be replaced."""
        for image_id, place in self._places.items():
            if place.holds:
                continue
            fields = self.fields(image_id) or {}
            name = next(name for name, value in self._settings.items() if fields.get(name) != value)
            raise TellapartError(
                f"{self._file.path}: the caption of {image_id!r} was made with {name} "
                f"{_shown(fields.get(name))}, not {_shown(self._settings[name])}",
                hint="write to another file, or remove this one",
            )

    def add(self, record: Record) -> None:
        """Write a caption down; once this returns, a kill does not undo it."""
        image = str(record.image)
        if self._images.setdefault(record.image_id, image) != image:
            raise TellapartError(
                f"{image} and {self._images[record.image_id]} are both called {record.image_id!r}",
                hint="rename one of the two",
            )
        own = {"image": image, "image_id": record.image_id, "key": record.key, "caption": record.caption}
        if taken := (_OWN | self._settings.keys()) & record.about.keys():
            raise ValueError(f"what stands beside a caption may not be called {sorted(taken)}")
        fields = {MARK: FORMAT, **own, **self._settings, **record.about}
        data = _encoded(fields)
        start = self._file.add(data)
        self._count += 1
        self._note(fields, start, len(data))
        if time.monotonic() - self._synced > SYNC_SECONDS:
            self._sync()

    def finish(self, order: Iterable[str], *, gone: Collection[str] = ()) -> None:
        """Put the file in order: one line a picture.

        Args:
            order: ids of the pictures; those that have no caption are passed over. Lines of others come
                last, as they came.
            gone: ids whose lines are to go, as their pictures have gone.
        """
        ids = dict.fromkeys(image_id for image_id in (*order, *self._places) if image_id in self._places)
        for image_id in gone:
            ids.pop(image_id, None)
        places = [self._places[image_id] for image_id in ids]
        starts = [place.start for place in places]
        if len(places) == self._count and starts == sorted(starts):
            self._sync()
            return
        starts = self._file.rewrite([(place.start, place.length) for place in places])
        self._places = {
            image_id: _Place(start, place.length, place.key, place.holds)
            for image_id, start, place in zip(ids, starts, places, strict=True)
        }
        self._count = len(places)
        self._earlier.clear()

    def _note(self, fields: Mapping[str, Any], start: int, length: int) -> None:
        image_id = fields["image_id"]
        before = self.fields(image_id)
        if before is not None:
            captions = (before["caption"], *self.earlier(image_id))
            self._earlier[image_id] = tuple(dict.fromkeys(captions))
        holds = all(fields.get(name) == value for name, value in self._settings.items())
        self._places[image_id] = _Place(start, length, fields["key"], holds)

    def _sync(self) -> None:
        self._file.sync()
        self._synced = time.monotonic()


@contextmanager
def open_journal(path: Path, settings: Mapping[str, object]) -> Iterator[Journal]:
    """The journal in a file, for this process alone; the file is made if there is none.

    A file that holds anything else is left as it is, with an error.

    Args:
        path: the file, whose name should end in .jsonl.
        settings: what all captions of this run have in common, such as model and seed; it stands in every
            line. A line with other values does not hold.
    """
    file = JournalFile(path)
    try:
        yield Journal(file, settings)
    finally:
        file.close()


def fingerprint(parts: Mapping[str, object]) -> str:
    """A key of what a caption depends on, whatever the order of its parts: anything that JSON can tell."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:32]


def _encoded(fields: Mapping[str, object]) -> bytes:
    try:
        return (json.dumps(fields, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8")
    except UnicodeEncodeError:  # the name of a file need not be text
        return (json.dumps(fields, allow_nan=False) + "\n").encode("ascii")


def _shown(value: object) -> str:
    return "unknown" if value is None else json.dumps(value, ensure_ascii=False)
