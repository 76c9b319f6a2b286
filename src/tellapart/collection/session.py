"""A run over pictures, with the files in which it is remembered.

With a journal, a run that was broken off goes on where it was, and a run over a collection that has grown
captions anew only what has new rivals. Without one, candidates are written down in a temporary file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from tellapart.captioning import Captioned, Describer, Wish, image_id
from tellapart.collection.gathering import Listed
from tellapart.collection.listing import Listing, list_pictures
from tellapart.collection.speaker import Speaker, content_of
from tellapart.collection.telling import (
    Told,
    Watch,
    generation_settings,
    kept_caption,
    settings_of,
    tell_apart,
)
from tellapart.data.picture_files import find_pictures
from tellapart.errors import TellapartError
from tellapart.outputs.journal import Journal, Record, fingerprint, open_journal
from tellapart.vision.looking import Seen

TOGETHER = 8  # pictures decoded in one go where captions are waited for


@dataclass(frozen=True, slots=True)
class Request:
    """Which pictures are to be captioned, and where that is remembered."""

    paths: Sequence[Path]  # files and folders
    out: Path | None = None  # the journal
    limit: int | None = None  # so many pictures at the most, the first ones
    is_done: Callable[[Path], bool] = lambda path: False  # whether a picture has its caption elsewhere

    @property
    def root(self) -> Path | None:
        """The folder inside which pictures are named, where there is one."""
        return self.paths[0] if len(self.paths) == 1 and self.paths[0].is_dir() else None


def caption_collection(
    request: Request, speaker: Speaker, *, watch: Watch
) -> Iterator[Told | TellapartError]:
    """Captions of all pictures, each told from its rivals if it has any; written down before they are given.

    They come in order; what cannot be found or seen is told first.
    """
    listing = list_pictures(request.paths)
    yield from listing.errors
    with ExitStack() as stack:
        journal = stack.enter_context(_journal(request.out, settings_of(speaker)))
        listed = _listed(request, listing, journal)
        beside = request.out or Path(stack.enter_context(TemporaryDirectory()), "captions.jsonl")
        notes_path = beside.with_name(f".{beside.name}.candidates")
        plan = speaker.plan
        drawn = {"agree": plan.agree, "seed": plan.seed if plan.agree else None}
        settings = generation_settings(speaker.describer, speaker.wish) | drawn
        notes = stack.enter_context(open_journal(notes_path, settings))
        for result in tell_apart(listed, speaker, notes, journal=journal, watch=watch):
            yield _written_down(result, journal)
        if journal is not None:
            journal.finish(listing.names.values(), gone=listing.gone(journal))
        notes_path.unlink(missing_ok=True)  # all is in the journal now


def caption_one_by_one(request: Request, describer: Describer, wish: Wish) -> Iterator[Told | TellapartError]:
    """Captions of all pictures, each by itself, as they come; written down before they are given.

    With a journal they come once all pictures are listed, for each needs a name that no other has.
    """
    if request.out is None:
        found = _first(find_pictures(request.paths), request.limit)
        wanted = (path for path in found if isinstance(path, TellapartError) or not request.is_done(path))
        yield from _Alone(describer, wish).tell(wanted, partial(image_id, root=request.root))
        return
    listing = list_pictures(request.paths)
    yield from listing.errors
    with _opened(request.out, generation_settings(describer, wish) | {"apart": "off"}) as journal:
        listed = [some for some in _listed(request, listing, journal) if some.is_wanted]
        alone = _Alone(describer, wish, journal)
        for result in alone.tell((some.path for some in listed), listing.names.__getitem__):
            yield _written_down(result, journal)
        journal.finish(listing.names.values(), gone=listing.gone(journal))


@dataclass(frozen=True, slots=True)
class _Alone:
    """Captions pictures that are told from no others."""

    describer: Describer
    wish: Wish
    journal: Journal | None = None

    def tell(
        self, paths: Iterable[Path | TellapartError], name: Callable[[Path], str]
    ) -> Iterator[Told | TellapartError]:
        """Captions as they come; those are kept that were made of the same pictures."""
        results = self.describer.look(paths)
        while group := list(islice(results, TOGETHER)):
            keys: dict[Path, str] = {}
            for seen in group:
                if isinstance(seen, TellapartError):
                    yield seen
                    continue
                try:
                    keys[seen.path] = self._key(seen)
                except TellapartError as error:  # gone or changed since it was seen
                    yield error
            yield from self._tell(
                [seen for seen in group if isinstance(seen, Seen) and seen.path in keys], keys, name
            )

    def _tell(
        self, group: Sequence[Seen], keys: Mapping[Path, str], name: Callable[[Path], str]
    ) -> Iterator[Told]:
        kept = {seen.path: self._kept(seen.path, name(seen.path), keys[seen.path]) for seen in group}
        fresh = [seen for seen in group if kept[seen.path] is None]
        found = iter(self.describer.describe_seen(fresh, self.wish))
        for seen in group:
            known = kept[seen.path]
            captioned = known or Captioned(seen.path, name(seen.path), next(found))
            yield Told(captioned, keys[seen.path], known is not None, has_faded=False)

    def _key(self, seen: Seen) -> str:
        """Without a journal nobody asks for it."""
        return fingerprint({"content": content_of(seen)}) if self.journal is not None else ""

    def _kept(self, path: Path, name: str, key: str) -> Captioned | None:
        if self.journal is None or not self.journal.holds(name, key):
            return None
        fields = self.journal.fields(name)
        assert fields is not None
        return kept_caption(path, fields)


def _listed(request: Request, listing: Listing, journal: Journal | None) -> list[Listed]:
    """The pictures that are taken, and whether each is to have a caption."""
    if journal is not None:
        listing.expect_same(journal)
    return [
        Listed(path, name, is_wanted=_is_known(journal, name) or not request.is_done(path))
        for path, name in islice(listing.names.items(), request.limit)
    ]


def _first(found: Iterable[Path | TellapartError], limit: int | None) -> Iterator[Path | TellapartError]:
    """So many pictures; what is none does not count."""
    taken = 0
    for path in found:
        if isinstance(path, Path) and limit is not None and taken == limit:
            return
        taken += isinstance(path, Path)
        yield path


def _journal(out: Path | None, settings: dict[str, object]) -> AbstractContextManager[Journal | None]:
    return nullcontext() if out is None else _opened(out, settings)


@contextmanager
def _opened(out: Path, settings: dict[str, object]) -> Iterator[Journal]:
    with open_journal(out, settings) as journal:
        journal.refuse_other_settings()
        yield journal


def _is_known(journal: Journal | None, name: str) -> bool:
    return journal is not None and name in journal


def _written_down(result: Told | TellapartError, journal: Journal | None) -> Told | TellapartError:
    """The same, once its line is in the journal; with the captions that it replaces."""
    if journal is None or isinstance(result, TellapartError):
        return result
    captioned = result.captioned
    if not result.is_kept:
        about = {"candidates": [one.to_json() for one in captioned.candidates], **captioned.about}
        journal.add(Record(captioned.image, captioned.image_id, result.key, captioned.caption, about))
    return replace(result, earlier=journal.earlier(captioned.image_id))
