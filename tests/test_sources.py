"""Several sources of captions: who is trained on, who is kept for measuring, and that the two never meet."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tellapart.data.examples import Example
from tellapart.errors import TellapartError
from tellapart.recipe_sections import DataConfig, SourceConfig
from tellapart.sources import HELD_OUT, LEFT_OUT, photo_key, read_examples, read_sources


def write(path: Path, ids: Sequence[str], split: str = "") -> str:
    entries = [{"image": f"{name}.jpg", "captions": [f"caption of {name}"]} for name in ids]
    lines = [json.dumps(entry | ({"split": split} if split else {})) for entry in entries]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path.name


def splits(examples: Sequence[Example]) -> Counter[str]:
    return Counter(example.split for example in examples)


@pytest.fixture
def main(tmp_path: Path) -> Path:
    """Forty photographs with splits; Flickr8k's way of naming."""
    lines = []
    for number in range(40):
        split = {0: "val", 1: "test"}.get(number % 4, "train")
        image = f"{1_000_000 + number}_ab12cd.jpg"
        lines.append(json.dumps({"image": image, "captions": ["a dog"], "split": split}))
    (tmp_path / "main.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path


def data(folder: Path, *extra: SourceConfig) -> DataConfig:
    return DataConfig(root=str(folder), path="main.jsonl", extra=list(extra))


def test_an_extra_source_is_trained_on_but_for_what_is_held_out(main: Path) -> None:
    more = SourceConfig(path=write(main / "more.jsonl", [f"{number}" for number in range(30)]), held_out=7)
    first, extra = read_sources(data(main, more), seed=1)
    assert splits(first.examples) == {"train": 20, "val": 10, "test": 10}
    assert splits(extra.examples) == {"train": 23, HELD_OUT: 7}
    again = read_sources(data(main, more), seed=2)[1]
    assert extra == again, "whatever the seed, the same are held out"
    assert len(read_examples(data(main, more), seed=1)) == 70


def test_captions_of_photographs_that_are_measured_on_are_left_out(main: Path) -> None:
    ids = [f"{1_000_000 + number}" for number in range(40)]  # the same photographs, as Flickr30k names them
    text = SourceConfig(path=write(main / "text.jsonl", ids), pictures=False, per_epoch=5)
    _, extra = read_sources(data(main, text), seed=1)
    assert splits(extra.examples) == {"train": 20, LEFT_OUT: 20}
    assert not any(example.pictured for example in extra.examples)
    assert extra.per_epoch == 5
    kept = {example.image_id for example in extra.split("train").examples}
    assert all((int(name) - 1_000_000) % 4 > 1 for name in kept)


def test_what_one_extra_source_holds_out_no_other_trains_on(main: Path) -> None:
    ids = [f"{number:012d}" for number in range(500_000, 500_020)]
    photos = SourceConfig(path=write(main / "photos.jsonl", ids), held_out=6)
    plain = [name.lstrip("0") for name in ids]
    text = SourceConfig(path=write(main / "text.jsonl", plain), pictures=False)
    _, first, second = read_sources(data(main, photos, text), seed=1)
    held_out = {int(example.image_id) for example in first.split(HELD_OUT).examples}
    assert len(held_out) == 6
    assert {int(example.image_id) for example in second.split(LEFT_OUT).examples} == held_out


def test_an_extra_sources_own_test_split_stays_out(main: Path) -> None:
    text = SourceConfig(path=write(main / "text.jsonl", ["a", "b"], split="test"))
    _, extra = read_sources(data(main, text), seed=1)
    assert splits(extra.examples) == {LEFT_OUT: 2}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1000268201_693b08cb0e", "1000268201"),
        ("255741044_1102982213", "255741044"),
        ("COCO_val2014_000000397133", "397133"),
        ("000000397133", "397133"),
    ],
)
def test_one_photograph_under_two_names(one: str, other: str) -> None:
    assert photo_key(one) == photo_key(other)


@given(st.integers(10_000, 10**10), st.integers(10_000, 10**10))
def test_different_numbers_are_different_photographs(one: int, other: int) -> None:
    assert (photo_key(str(one)) == photo_key(str(other))) == (one == other)


def test_names_without_numbers_are_their_own_keys() -> None:
    assert photo_key("holiday/beach-12") == "holiday/beach-12"


def test_flickr30k_says_nothing_of_flickr8ks_dev_and_test(real_data: Path) -> None:
    text = SourceConfig(path="text/flickr30k_captions.jsonl.gz", pictures=False)
    config = DataConfig(
        root=str(real_data),
        path="flickr8k/captions.txt",
        images="flickr8k/images",
        format="flickr",
        extra=[text],
    )
    first, extra = read_sources(config, seed=1)
    measured = {
        caption
        for example in first.examples
        if example.split in ("val", "test")
        for caption in example.captions
    }
    spoken = {caption for example in extra.split("train").examples for caption in example.captions}
    # A few sentences are written of many photographs ("A dog runs."); whole sets of five are not.
    assert len(measured & spoken) < 0.02 * len(measured)
    named = {
        example.image_id.partition("_")[0] for example in first.examples if example.split in ("val", "test")
    }
    assert not named & {example.image_id for example in extra.split("train").examples}
    assert len(extra.split(LEFT_OUT).examples) > 1500


def test_what_the_main_set_trains_on_is_not_held_out(main: Path) -> None:
    ids = [f"{1_000_000 + number}" for number in range(60)]  # 20 of them are trained on in main
    more = SourceConfig(path=write(main / "more.jsonl", ids), held_out=15)
    first, extra = read_sources(data(main, more), seed=1)
    trained_on = {photo_key(example.image_id) for example in first.split("train").examples}
    held_out = {photo_key(example.image_id) for example in extra.split(HELD_OUT).examples}
    assert len(held_out) == 15
    assert not held_out & trained_on


def test_not_everything_can_be_held_out(main: Path) -> None:
    more = SourceConfig(path=write(main / "more.jsonl", ["a", "b", "c"]), held_out=3)
    with pytest.raises(TellapartError, match=r"3 images are to be held out of more\.jsonl, which has 3"):
        read_sources(data(main, more), seed=1)


def test_a_line_for_each_caption_is_still_one_image(main: Path) -> None:
    lines = [
        {"image": f"{number % 4}.jpg", "caption": f"caption {number}", "split": ("train", "val")[number % 2]}
        for number in range(12)
    ]
    (main / "lines.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    found = read_examples(DataConfig(root=str(main), path="lines.jsonl", format="jsonl"), seed=1)
    assert [example.image_id for example in found] == ["0", "1", "2", "3"]
    assert found[1].captions == ("caption 1", "caption 5", "caption 9")
    assert splits(found) == {"train": 2, "val": 2}
