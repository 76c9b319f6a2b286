"""What the tests of METEOR share: its real resources, a tiny folder of such, and captions of many kinds."""

from __future__ import annotations

import gzip
import random
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tellapart.metrics.meteor.resources import ResourceFiles, Resources, find_resources, load_resources

TRIPLES = (
    ("is riding", "rides"),
    ("is riding", "on"),
    ("rides", "is riding"),
    ("a lot of", "many"),
    ("many", "a lot of"),
)


@pytest.fixture(scope="session")
def meteor_files() -> ResourceFiles:
    return find_resources()


@pytest.fixture(scope="session")
def resources(meteor_files: ResourceFiles) -> Resources:
    """The real resources."""
    return load_resources(meteor_files)


@pytest.fixture
def tiny_files(tmp_path: Path) -> ResourceFiles:
    """Resources of a few words, in a folder laid out as pycocoevalcap lays its own out."""
    return write_tiny_files(tmp_path / "tiny resources")


def write_tiny_files(folder: Path, triples: Sequence[tuple[str, str]] = TRIPLES) -> ResourceFiles:
    (folder / "data").mkdir(parents=True)
    files = ResourceFiles(folder / "meteor-1.5.jar", folder / "data" / "paraphrase-en.gz")
    with zipfile.ZipFile(files.jar, "w") as archive:
        archive.writestr("function/english.words", "a\nthe\non\nis\nof\n")
        archive.writestr("nonbreaking/english.prefixes", "# titles\nMr\nNo #NUMERIC_ONLY#\n")
        archive.writestr(
            "synonym/english.synsets", "dog\n00000001 00000007\nhound\n00000007\nmouse\n00000009\n"
        )
        archive.writestr("synonym/english.exceptions", "mouse\nmice\n")
    with gzip.open(files.paraphrases, "wt", encoding="utf-8") as table:
        table.writelines(f"0.5\n{phrase}\n{paraphrase}\n" for phrase, paraphrase in triples)
    return files


ODD = [
    *", . ... .. ! ? \" '' ' ` - -- – — ’ ‘ “ ” # % | || ||| & ..a _ a_b -lrb- 1/2 1,000 3,a a,b $5".split(),  # noqa: SIM905
    *"u.s. p.m. vs. i.e. no. end. No. pp. Mr. u.s.-based dog's 1990's rock'n'roll o'clock t-shirt".split(),  # noqa: SIM905
    *"DOTMULTI DOTDOTMULTI. éclair naïve кот ПРИВЕТ 日本 İstanbul ΣΑΣ 😀 ﬁ Straße Aa BB".split(),  # noqa: SIM905
    *("22\u00a03/4", "\u200b", "a\x0bb", "\x0c", "\x01", "\x85", "\u2028", "\ufffd", "x\r\ny", "\n"),
]


@dataclass(frozen=True)
class Writer:
    """Writes captions that give METEOR something to do."""

    words: Sequence[str]  # as captions have them, frequent ones more often
    rare: Sequence[str]
    paraphrases: Sequence[tuple[str, str]]

    def caption(self, chance: random.Random, length: int) -> list[str]:
        """Words, inflected words, phrases and oddities; some of them several times."""
        few = [chance.choice(self.words) for _ in range(3)]
        kinds: Sequence[Callable[[], str]] = (
            lambda: chance.choice(self.words),
            lambda: chance.choice(few),
            lambda: self.inflected(chance),
            lambda: chance.choice(self.rare),
            lambda: chance.choice(chance.choice(self.paraphrases)),
            lambda: chance.choice(ODD),
        )
        weights = chance.choice(
            ([6, 2, 1, 1, 1, 0], [1, 6, 0, 0, 0, 0], [2, 1, 1, 1, 4, 0], [3, 1, 1, 1, 1, 3])
        )
        return [kind() for kind in chance.choices(kinds, weights, k=length)]

    def inflected(self, chance: random.Random) -> str:
        ending = chance.choice(["s", "es", "ed", "ing", "er", "est", "'s", "ly", "ful", "men"])
        return chance.choice(self.words) + ending

    def varied(self, chance: random.Random, caption: Sequence[str]) -> list[str]:
        """Almost the same caption: some words changed, parts in another order."""
        swaps = {one: two for pair in self.paraphrases for one, two in (pair, pair[::-1])}
        words = [
            chance.choice(self.words) if chance.random() < 0.2 else swaps.get(word, word) for word in caption
        ]
        if words and chance.random() < 0.5:
            place = chance.randrange(len(words))
            words = words[place:] + words[:place]
        return words

    def image(self, chance: random.Random) -> tuple[str, list[str]]:
        """A candidate and its references."""
        length = chance.choice([0, 1, 2, 5, 8, 10, 12, 15, 25]) if chance.random() < 0.98 else 120
        caption = self.caption(chance, length)
        blank = chance.choice([" ", " ", " ", "  ", "\t", " \n "])
        group = [blank.join(self.varied(chance, caption)) for _ in range(chance.randrange(1, 5))]
        if chance.random() < 0.05:
            group.append(" ".join(caption))
        return blank.join(caption), group


@pytest.fixture(scope="session")
def writer(loo_500: Any, resources: Resources) -> Writer:
    captions = loo_500["candidates_tok"] + [text for group in loo_500["references_tok"] for text in group]
    words = [word for caption in captions for word in caption.split()]
    chance = random.Random(0)
    spelled = list(resources.numbers)
    tree = resources.phrases
    parents = np.concatenate([[0], np.repeat(np.arange(len(tree.words)), np.diff(tree.children))])

    def phrase(node: int) -> str:
        found: list[str] = []
        while node:
            found.append(spelled[tree.words[node]])
            node = int(parents[node])
        return " ".join(reversed(found))

    phrases = np.flatnonzero(np.diff(tree.table.starts))
    paraphrases = []
    for _ in range(1_000):
        node = int(chance.choice(phrases))
        paraphrases.append((phrase(node), phrase(chance.choice(tree.table.row(node)))))
    return Writer(words, chance.sample(spelled, 2_000), paraphrases)
