"""Drawn scenes on disk as a captioned image set, with the truth beside it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tellapart.data.examples import SPLITS
from tellapart.data.shapes.drawing import draw
from tellapart.data.shapes.language import captions
from tellapart.data.shapes.scenes import Scene, Thing, draw_groups
from tellapart.errors import TellapartError

SETTINGS_FILE = "shapes.json"
CAPTIONS_FILE = "captions.jsonl"
SCENES_FILE = "scenes.jsonl"
IMAGES_FOLDER = "images"
_DAMAGED = "the file was changed or damaged: write the set anew into another folder"
VERSION = 1  # to be raised whenever the same settings would give another set


@dataclass(frozen=True, slots=True)
class _Settings:
    """All that decides what the set is; noted in the folder."""

    count: int
    seed: int
    captions_per_image: int
    look_alikes: int
    side: int
    version: int = VERSION

    def __post_init__(self) -> None:
        for name in ("count", "captions_per_image", "look_alikes"):
            if getattr(self, name) < 1:
                raise TellapartError(
                    f"{name} of a set of shapes is {getattr(self, name)}", hint="give 1 or more"
                )


@dataclass(frozen=True, slots=True)
class _Entry:
    """One picture of the set."""

    image_id: str
    split: str
    scene: Scene

    @property
    def image(self) -> str:
        return f"{IMAGES_FOLDER}/{self.image_id}.png"


def write_shapes(
    folder: Path,
    *,
    count: int,
    seed: int,
    captions_per_image: int = 5,
    look_alikes: int = 1,
    side: int = 128,
) -> Path:
    """Draw that many distinct scenes into a folder, in groups of `look_alikes`, and return the folder.

    A group never straddles two splits. The folder appears complete or not at all, whatever interrupts the
    writing; if it holds the same set already it is left as it is, if anything else it is refused.
    """
    settings = _Settings(count, seed, captions_per_image, look_alikes, side)
    target = folder.resolve()
    if not _is_written(target, settings):
        target.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as scratch:
            # One level down, for the scratch folder itself is closed to other users.
            draft = Path(scratch) / target.name
            _write_set(draft, settings)
            _move(draft, target, settings)
    return folder


def read_truth(folder: Path) -> dict[str, Scene]:
    """The scene of each picture of a written set, by image id."""
    path = folder / SCENES_FILE
    if not path.is_file():
        raise TellapartError(f"{path}: there is no such file", hint="name a folder that `write_shapes` made")
    # A broken byte becomes a strange letter, which is then reported with its line.
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return dict(_read_scene(line, f"{path}:{number}") for number, line in enumerate(lines, start=1))


def _is_written(folder: Path, settings: _Settings) -> bool:
    """Whether the folder holds this very set; an error if it holds anything else."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return False
    noted = _noted_settings(folder)
    wanted = asdict(settings)
    if noted == wanted:
        return True
    if isinstance(noted, dict):
        differing = [name for name in wanted if noted.get(name) != wanted[name]]
        what = f"another set of shapes, which differs in {', '.join(differing)}"
    else:
        what = "something other than a set of shapes"
    raise TellapartError(
        f"{folder}: holds {what}", hint="name another folder, or remove this one if nobody needs it"
    )


def _noted_settings(folder: Path) -> object:
    try:
        return json.loads((folder / SETTINGS_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _write_set(folder: Path, settings: _Settings) -> None:
    """Write every file of the set into a folder that is not there yet."""
    (folder / IMAGES_FOLDER).mkdir(parents=True)
    entries = list(_entries(settings))
    for entry in entries:
        draw(entry.scene, side=settings.side).save(folder / entry.image)
    _write_lines(folder / CAPTIONS_FILE, (_caption_record(entry, settings) for entry in entries))
    _write_lines(
        folder / SCENES_FILE, ({"image_id": entry.image_id, **asdict(entry.scene)} for entry in entries)
    )
    (folder / SETTINGS_FILE).write_text(json.dumps(asdict(settings), indent=2) + "\n", encoding="utf-8")


def _caption_record(entry: _Entry, settings: _Settings) -> Mapping[str, object]:
    return {
        "image": entry.image,
        "image_id": entry.image_id,
        "split": entry.split,
        "captions": captions(entry.scene, count=settings.captions_per_image, seed=settings.seed),
    }


def _entries(settings: _Settings) -> Iterator[_Entry]:
    """The pictures in order; the last group is cut short where the count does not divide by its size."""
    size = settings.look_alikes
    groups = draw_groups(math.ceil(settings.count / size), size, seed=settings.seed)
    for index in range(settings.count):
        group, member = divmod(index, size)
        yield _Entry(f"{index:06d}", _split_of(group, len(groups)), groups[group][member])


def _split_of(group: int, groups: int) -> str:
    """Train for eight groups in ten, then val, then test; from three groups on, none is empty."""
    held_out = max(round(groups / 10), 1) if groups >= len(SPLITS) else 0
    train, val, test = SPLITS
    if group < groups - 2 * held_out:
        return train
    return val if group < groups - held_out else test


def _write_lines(path: Path, records: Iterable[Mapping[str, object]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def _move(draft: Path, target: Path, settings: _Settings) -> None:
    """Put the finished set in its place, unless another process has just put the same one there."""
    try:
        draft.replace(target)  # onto an empty folder or none; onto a full one it fails
    except OSError:
        if not _is_written(target, settings):
            raise


def _read_scene(line: str, where: str) -> tuple[str, Scene]:
    try:
        record = json.loads(line)
        return record["image_id"], Scene(tuple(Thing(**thing) for thing in record["things"]))
    except (ValueError, TypeError, KeyError) as error:
        raise TellapartError(f"{where}: not a scene ({error!r})", hint=_DAMAGED) from error
    except TellapartError as error:
        raise TellapartError(f"{where}: {error.problem}", hint=_DAMAGED) from error
