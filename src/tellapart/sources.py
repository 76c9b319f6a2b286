"""Which captioned images a recipe trains, validates and tests on, gathered from all its sources."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tellapart.data.examples import Example
from tellapart.data.picture_files import find_pictures
from tellapart.data.readers import read_dataset
from tellapart.data.shapes.dataset import VERSION, write_shapes
from tellapart.errors import TellapartError
from tellapart.recipe_sections import DataConfig, SourceConfig
from tellapart.storage import cache_folder

HELD_OUT = "held-out"  # pictures of an extra source that are kept for measuring
LEFT_OUT = "left-out"  # of an extra source: evaluated on elsewhere, so not to be trained on


@dataclass(frozen=True, slots=True)
class Source:
    """Examples of one source, and how many of those to train on an epoch draws (0: all)."""

    examples: Sequence[Example]
    per_epoch: int = 0

    def split(self, name: str) -> Source:
        """Its examples of one split."""
        return replace(self, examples=[example for example in self.examples if example.split == name])


def read_sources(data: DataConfig, *, seed: int) -> Sequence[Source]:
    """The recipe's own data set first, then its extra sources, cleared of pictures that are measured on."""
    main = Source(_read_main(data, seed=seed))
    trained_on = {photo_key(example.image_id) for example in main.split("train").examples}
    extras = [Source(_read_extra(data, extra, trained_on), extra.per_epoch) for extra in data.extra]
    captioned = [example for source in (main, *extras) for example in source.examples if example.captions]
    measured = {
        photo_key(example.image_id) for example in captioned if example.split in ("val", "test", HELD_OUT)
    }
    files = {example.path.resolve() for example in captioned if example.pictured}
    return [main, *(replace(extra, examples=_cleared(extra.examples, measured, files)) for extra in extras)]


def read_examples(data: DataConfig, *, seed: int) -> Sequence[Example]:
    """All examples of all sources."""
    return [example for source in read_sources(data, seed=seed) for example in source.examples]


def known_captions(data: DataConfig, sources: Sequence[Source]) -> Iterator[str]:
    """The captions that say which words are known: those to train on, or those of `data.words_from`."""
    named = (read_dataset(data.resolve(path)).strict() for path in data.words_from)
    groups = named if data.words_from else (source.examples for source in sources)
    for examples in groups:
        for example in examples:
            yield from example.captions if example.split in ("", "train") else ()


def photo_key(image_id: str) -> str:
    """What names the same photograph in files of different makers: its first long number, without zeros.

    Flickr8k's "1000268201_693b08cb0e" is Flickr30k's "1000268201"; COCO's ids come with and without zeros.
    """
    number = re.search(r"\d{5,}", image_id.rpartition("/")[2])
    return number[0].lstrip("0") if number else image_id


def _read_main(data: DataConfig, *, seed: int) -> Sequence[Example]:
    if data.format == "shapes":
        folder = cache_folder() / "shapes" / f"v{VERSION}-{data.scenes}-{data.look_alikes}-{seed}"
        write_shapes(folder, count=data.scenes, seed=seed, look_alikes=data.look_alikes)
        return read_dataset(folder / "captions.jsonl", format="jsonl", images=folder).strict()
    examples = together(_read(data, path=data.path, images=data.images, form=data.format))
    return examples if any(example.split for example in examples) else split_off(examples, data.val_share)


def _read_extra(data: DataConfig, extra: SourceConfig, trained_on: set[str]) -> Sequence[Example]:
    """All for training but what the source itself calls val or test, and what is held out.

    Photographs that the main data set trains on cannot be held out.
    """
    if not extra.captions:
        return _photographs(data.resolve(extra.path))
    examples = _read(data, path=extra.path, images=extra.images, form=extra.format)
    if extra.pictures:
        examples = together(examples)
    if any(example.split for example in examples):
        examples = [
            replace(example, split=example.split if example.split == "train" else LEFT_OUT)
            for example in examples
        ]
    strange = [example for example in by_hash(examples) if photo_key(example.image_id) not in trained_on]
    if extra.held_out and extra.held_out >= len(strange):
        raise TellapartError(
            f"data.extra: {extra.held_out} images are to be held out of {extra.path}, "
            f"which has {len(strange)} that are not trained on elsewhere",
            hint="lower held_out",
        )
    held_out = {example.image_id for example in strange[: extra.held_out]}
    return [
        replace(
            example,
            split=HELD_OUT if example.image_id in held_out else example.split or "train",
            pictured=extra.pictures,
        )
        for example in examples
    ]


def _photographs(folder: Path) -> Sequence[Example]:
    """The pictures of a folder and of those inside it, none of which has a caption."""
    if not folder.is_dir():
        raise TellapartError(
            f"data.extra: {folder} is to hold photographs without captions, and is no folder",
            hint="name the folder they are in, or leave out captions = false",
        )
    found = []
    for picture in find_pictures([folder]):
        if isinstance(picture, TellapartError):
            raise picture
        name = picture.relative_to(folder).with_suffix("").as_posix()
        found.append(Example(name, picture, (), "train", str(picture)))
    return found


def _read(data: DataConfig, *, path: str, images: str, form: str) -> Sequence[Example]:
    folder = data.resolve(images) if images else None
    return read_dataset(data.resolve(path), format=form, images=folder).strict()


def together(examples: Sequence[Example]) -> Sequence[Example]:
    """Each image once with all its captions, also where the file has a line for each caption.

    Twice in a batch, a picture would be its own wrong answer.
    """
    found: dict[tuple[str, str, str], Example] = {}
    for example in examples:
        key = example.image_id, str(example.path), example.split
        first = found.get(key)
        found[key] = replace(first, captions=first.captions + example.captions) if first else example
    return list(found.values())


def _cleared(examples: Sequence[Example], measured: set[str], files: set[Path]) -> Sequence[Example]:
    """Without photographs that are measured on; and of those without captions, without any that has some."""
    return [
        replace(example, split=LEFT_OUT)
        if example.split == "train"
        and (
            photo_key(example.image_id) in measured
            or (not example.captions and example.path.resolve() in files)
        )
        else example
        for example in examples
    ]


def by_hash(examples: Sequence[Example]) -> list[Example]:
    """In an order that looks random but is the same each time: by the hash of the image's id."""
    return sorted(examples, key=lambda example: hashlib.sha256(example.image_id.encode()).digest())


def split_off(examples: Sequence[Example], share: float) -> Sequence[Example]:
    """Images of a set without splits, a share of them to validate on."""
    wanted = max(1, round(share * len(examples)))
    chosen = {example.image_id for example in by_hash(examples)[:wanted]}
    return [replace(example, split="val" if example.image_id in chosen else "train") for example in examples]


def split_of(examples: Sequence[Example], split: str) -> Sequence[Example]:
    """The examples of one split, which must not be empty."""
    chosen = [example for example in examples if example.split == split]
    if not chosen:
        there = sorted({example.split or "(none)" for example in examples})
        raise TellapartError(
            f"the data set has no split {split!r}",
            hint=f"its splits: {', '.join(there)}; training needs train and val",
        )
    return chosen


def refuse_unpaired(examples: Sequence[Example], *, learner: str) -> None:
    """Refuse captions without a picture, and pictures without a caption; `learner` is who cannot use them."""
    for example in examples:
        if not example.pictured:
            raise TellapartError(
                f"{example.where}: captions without pictures teach {learner} nothing",
                hint="leave such sources out",
            )
        if not example.captions:
            raise TellapartError(
                f"{example.where}: photographs without captions teach {learner} nothing",
                hint="write captions of it, or leave such sources out",
            )


def in_words(data: DataConfig, count: int) -> str:
    """What something was trained on, for cards and reports."""
    files = [data.path or data.format, *(extra.path for extra in data.extra)]
    return f"{count} images of {' and '.join(files)}"
