"""Which pictures a collection has, what each is called, and which captions of a journal are not of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tellapart.data.picture_files import find_pictures
from tellapart.errors import TellapartError
from tellapart.outputs.journal import Journal
from tellapart.outputs.naming import picture_ids


@dataclass(frozen=True, slots=True)
class Listing:
    """All pictures that were found, each once, and what could not be searched.

    They are named all together: what one is called must not hang on how many of them are taken.
    """

    names: Mapping[Path, str]  # of the pictures, in order
    errors: Sequence[TellapartError]
    root: Path | None  # the folder inside which they are named, where there is one

    def expect_same(self, journal: Journal) -> None:
        """An error if the journal has another picture's caption under the name of one of these.

        It would be replaced: as when the pictures of two folders are captioned into one file.
        """
        for path, name in self.names.items():
            fields = journal.fields(name)
            if fields is not None and _is_another(Path(fields["image"]), path):
                raise TellapartError(
                    f"the file of captions has {fields['image']} under the name {name!r}, "
                    f"which {path} has now",
                    hint="write to another file, or caption the folder that holds both",
                )

    def gone(self, journal: Journal) -> set[str]:
        """Names in the journal whose pictures were in the folder and are there no more, or not so called.

        None where a part of the folder could not be searched, or where there is no folder.
        """
        if self.errors or self.root is None:
            return set()
        others = set(journal) - set(self.names.values())
        return {name for name in others if self._has_left(Path((journal.fields(name) or {})["image"]))}

    def _has_left(self, picture: Path) -> bool:
        assert self.root is not None
        inside = picture.absolute().is_relative_to(self.root.absolute())
        return inside and (picture in self.names or not (picture.is_symlink() or picture.exists()))


def list_pictures(paths: Sequence[Path]) -> Listing:
    """The pictures among files and folders."""
    root = paths[0] if len(paths) == 1 and paths[0].is_dir() else None
    found = list(find_pictures(paths))
    pictures = list(dict.fromkeys(path for path in found if isinstance(path, Path)))
    return Listing(
        dict(zip(pictures, picture_ids(pictures, root), strict=True)),
        [path for path in found if isinstance(path, TellapartError)],
        root,
    )


def _is_another(before: Path, now: Path) -> bool:
    try:
        return before != now and not before.samefile(now)
    except OSError:  # one of them is not there: the collection was moved, or is named from elsewhere
        return False
