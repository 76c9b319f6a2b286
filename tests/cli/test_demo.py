"""The demo and the captioner that ships."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tellapart as package
from tellapart.captioning import find_captioner
from tellapart.cli.demo import photographs
from tellapart.corpus import build_corpus
from tellapart.data.readers import read_dataset
from tellapart.data.text import PRESETS
from tellapart.fit import measure_fit
from tellapart.sources import split_of
from tellapart.vision.features import in_order
from tellapart.vision.tuned import find_tuned

if TYPE_CHECKING:
    from tests.conftest import Outcome


def test_the_demo_captions_real_photographs(
    tellapart: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = tellapart("demo")
    assert outcome.code == 0, outcome.err
    lines = outcome.out.splitlines()
    assert {line.split(": ")[0] for line in lines} == {f"demo/photos/{photo.name}" for photo in photographs()}
    assert all(3 <= len(line.split(": ")[1].split()) <= 20 for line in lines)
    assert (tmp_path / "demo" / "index.html").read_text(encoding="utf-8").count("<figure>") == len(lines) == 7


def test_the_default_captioner_and_its_encoder_are_small_and_have_cards() -> None:
    folders = find_captioner("default"), find_tuned("eyes")
    assert sum(file.stat().st_size for folder in folders for file in folder.iterdir()) < 14_000_000
    for folder in folders:
        card = (folder / "card.md").read_text(encoding="utf-8")
        for heading in ("## Data", "## Licence", "## Recipe", "## Figures", "## Failures"):
            assert heading in card


def test_two_lines_of_python_are_enough() -> None:
    photos = {photo.stem: photo for photo in photographs()}
    assert "motorcycle" in package.load().caption(photos["motorcycle_left"])
    assert "cat" in package.load().caption(photos["chelsea"])


def test_the_default_captioner_expects_what_people_say(real_data: Path) -> None:
    describer = package.load()
    examples = split_of(read_dataset(real_data / "flickr8k" / "captions.txt").strict(), "val")[:60]
    corpus = build_corpus(
        examples,
        text=describer.saved.captioner.text,
        rules=PRESETS["mrnn"],
        encoder=describer.encoder,
        parts=in_order(describer.saved.captioner.needs),
        watch=lambda done, total: None,
    )
    assert measure_fit(describer.saved.captioner, corpus, images_per_batch=20).perplexity < 20
