"""Nouns that Flickr8k hardly names, on photographs that show them: who says them, and is right?

    TELLAPART_DATA=DATA python -m benchmarks.new_nouns runs/table [--show zebra]

The photographs are the 500 of COCO that recipes hold out, captioned by `benchmarks.captioner_runs`. A noun is
new if the encoder's classes have it and Flickr8k's training captions have it fewer than five times, so that a
captioner trained on them cannot say it at all. It is shown where two or more of a photograph's five captions
name it. Recall: of the pairs of a photograph and a new noun it shows, those that the caption names.
Precision: of the new nouns in captions, those that at least one person named too.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from benchmarks.captioner_runs import EVERYTHING, WIDTH
from tellapart.data.examples import Example
from tellapart.data.imagined import singular
from tellapart.data.text import PRESETS, words
from tellapart.recipe import load_recipe
from tellapart.run import Run
from tellapart.sources import HELD_OUT, read_sources
from tellapart.vision.nouns import everyday_words

RARE = 5  # times in Flickr8k's training captions from which a noun is known
PEOPLE = 2  # who name a noun where a photograph shows it


def main() -> None:
    """A line a run, then how often each new noun is shown and said by the best."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--show", default="", help="print the captions of photographs that show this noun")
    arguments = parser.parse_args()
    sources = read_sources(load_recipe(EVERYTHING).data, seed=1)
    counts = count_nouns(sources[0].split("train").examples)
    new = new_nouns(counts)
    photographs = {
        example.image_id: example for source in sources for example in source.split(HELD_OUT).examples
    }
    describe(counts, photographs.values(), new)
    for folder in sorted(arguments.folder.iterdir()):
        path = Run(folder).predictions(HELD_OUT, width=WIDTH)
        if path.exists():
            lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
            captions = {line["image_id"]: line["caption"] for line in lines}
            report(folder.name, captions, photographs, new)
            if arguments.show:
                show(arguments.show, captions, photographs)


def count_nouns(examples: Sequence[Example]) -> Counter[str]:
    """In how many of their captions each word stands."""
    return Counter(noun for example in examples for caption in example.captions for noun in nouns_in(caption))


def new_nouns(counts: Counter[str]) -> set[str]:
    """Nouns of the encoder's classes that captions of these counts hardly have."""
    return {noun for noun in map(singular, everyday_words().values()) if counts[noun] < RARE}


def describe(counts: Counter[str], photographs: Collection[Example], new: set[str]) -> None:
    """How often photographs show new nouns, and of which of those Flickr8k's captions have none at all."""
    shown = Counter(
        noun for example in photographs for noun, people in named(example).items()
        if noun in new and people >= PEOPLE
    )  # fmt: skip
    never = {noun: count for noun, count in shown.items() if not counts[noun]}
    print(
        f"{len(photographs)} photographs show a new noun {shown.total()} times, {len(shown)} different; "
        f"{sum(never.values())} times one that Flickr8k's captions do not have at all: "
        f"{', '.join(f'{noun} {count}' for noun, count in sorted(never.items(), key=lambda one: -one[1]))}",
        flush=True,
    )


def nouns_in(caption: str) -> set[str]:
    """The words of a caption, singular."""
    return {singular(word) for word in words(caption, PRESETS["mrnn"])}


def named(example: Example) -> Counter[str]:
    """How many of a photograph's captions have each word."""
    return Counter(noun for caption in example.captions for noun in nouns_in(caption))


def report(name: str, captions: Mapping[str, str], photographs: Mapping[str, Example], new: set[str]) -> None:
    """Recall and precision of one captioner, and the nouns it got right."""
    shown, said, right, hit = 0, 0, 0, Counter[str]()
    for image_id, caption in captions.items():
        people, ours = named(photographs[image_id]), nouns_in(caption) & new
        there = {noun for noun in new if people[noun] >= PEOPLE}
        shown += len(there)
        hit.update(there & ours)
        said += len(ours)
        right += sum(people[noun] > 0 for noun in ours)
    recall, precision = hit.total() / max(1, shown), right / max(1, said)
    often = ", ".join(f"{noun} {count}" for noun, count in hit.most_common(12))
    print(
        f"{name}: recall {recall:.3f} ({hit.total()} of {shown}), "
        f"precision {precision:.3f} ({right} of {said}); {len(hit)} different: {often}",
        flush=True,
    )


def show(noun: str, captions: Mapping[str, str], photographs: Mapping[str, Example]) -> None:
    """Captions of the photographs that show a noun."""
    for image_id, caption in captions.items():
        if named(photographs[image_id])[singular(noun)] >= PEOPLE:
            print(f"    {image_id}: {caption}")


if __name__ == "__main__":
    main()
