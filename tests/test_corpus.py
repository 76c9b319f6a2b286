"""A data set made ready: splits where there are none, words that are cut, batches of the right images."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from PIL import Image, ImageEnhance

from tellapart.corpus import build_corpus, with_views
from tellapart.data.text import PRESETS
from tellapart.data.word_text import WordText
from tellapart.errors import TellapartError
from tellapart.recipe_sections import DataConfig
from tellapart.sources import read_examples, split_of
from tellapart.vision.patches import Patches


@pytest.fixture
def unsplit(tmp_path: Path) -> DataConfig:
    """Thirty pictures of one colour each, with two captions each and no splits."""
    lines = []
    for number in range(30):
        Image.new("RGB", (8, 8), (number * 8, 0, 0)).save(tmp_path / f"{number}.png")
        captions = [f"picture number {number}", "a red square of some size"]
        lines.append(json.dumps({"image": f"{number}.png", "captions": captions}))
    (tmp_path / "captions.jsonl").write_text("\n".join(lines))
    return DataConfig(root=str(tmp_path), path="captions.jsonl", val_share=0.2)


def test_a_set_without_splits_gets_them_and_always_the_same(unsplit: DataConfig) -> None:
    examples = read_examples(unsplit, seed=1)
    val = [example.image_id for example in split_of(examples, "val")]
    assert (len(val), len(split_of(examples, "train"))) == (6, 24)
    assert val == [example.image_id for example in split_of(read_examples(unsplit, seed=2), "val")]
    with pytest.raises(TellapartError, match="no split 'test'"):
        split_of(examples, "test")


def test_a_set_with_splits_keeps_them(scenes: Path) -> None:
    examples = read_examples(DataConfig(root=str(scenes), path="captions.jsonl", images=""), seed=1)
    assert [len(split_of(examples, split)) for split in ("train", "val", "test")] == [48, 6, 6]


def test_a_batch_holds_its_own_pictures_and_captions(unsplit: DataConfig) -> None:
    examples = read_examples(unsplit, seed=1)
    rules = PRESETS["mrnn"].model_copy(update={"min_count": 1, "max_words": 4})
    text = WordText.build((caption for example in examples for caption in example.captions), rules)
    encoder = Patches()
    corpus = build_corpus(
        examples,
        text=text,
        rules=rules,
        encoder=encoder,
        parts=["pooled"],
        watch=lambda done, total: None,
    )
    batch = corpus.batch([7, 3], captions_per_image=2, seed=1, epoch=0)
    assert batch.image_ids == ("7", "3")
    said = [[text.decode(ids) for ids in group] for group in batch.tokens.tolist()]
    assert said == [["picture number 7", "a red square of"], ["picture number 3", "a red square of"]]
    red = (batch.vision.pooled.view(2, -1, 3)[:, :, 0] + 1) * 127.5
    torch.testing.assert_close(red.mean(1), torch.tensor([56.0, 24.0]), atol=0.2, rtol=0)
    assert batch.vision.grid.numel() == 0
    assert corpus.rows(5, 7).batch([1], captions_per_image=1, seed=1, epoch=0).image_ids == ("6",)


def test_of_several_views_each_epoch_draws_one_and_measuring_sees_the_whole(tmp_path: Path) -> None:
    across = Image.linear_gradient("L").rotate(90).resize((54, 54)).convert("RGB")
    lines = []
    for number in range(12):
        ImageEnhance.Brightness(across).enhance(1 - number / 20).save(tmp_path / f"{number}.png")
        lines.append(json.dumps({"image": f"{number}.png", "captions": ["a picture"]}))
    (tmp_path / "captions.jsonl").write_text("\n".join(lines))
    examples = read_examples(DataConfig(root=str(tmp_path), path="captions.jsonl"), seed=1)

    def nothing(done: int, total: int) -> None: ...

    encoder, rules = Patches(), PRESETS["mrnn"]
    text = WordText.build(["a picture"] * 5, rules)
    whole = build_corpus(examples, text=text, rules=rules, encoder=encoder, parts=["pooled"], watch=nothing)
    corpus = with_views(whole, encoder, count=2, watch=nothing)
    rows = range(12)
    plain = whole.vision(rows).pooled
    assert torch.equal(corpus.vision(rows).pooled, plain)
    seen = [
        corpus.batch(rows, captions_per_image=1, seed=1, epoch=epoch).vision.pooled for epoch in range(40)
    ]
    is_whole = torch.stack([(pooled == plain).all(1) for pooled in seen])
    assert 0.35 < is_whole.float().mean() < 0.65
    assert is_whole.any(0).all()
    assert (~is_whole).any(0).all()
    assert len({pooled.numpy().tobytes() for row in rows for pooled in [each[row] for each in seen]}) == 24
    part = corpus.rows(3, 9)
    drawn = part.batch([0], captions_per_image=1, seed=1, epoch=0).vision.pooled
    assert any(torch.equal(drawn[0], each[3]) for each in seen)
    one = with_views(whole, encoder, count=1, watch=nothing)
    assert torch.equal(one.batch(rows, captions_per_image=1, seed=1, epoch=5).vision.pooled, plain)


def test_a_missing_picture_is_named_with_its_line(unsplit: DataConfig, tmp_path: Path) -> None:
    (tmp_path / "4.png").unlink()
    examples = read_examples(unsplit, seed=1)
    with pytest.raises(TellapartError, match=r"captions\.jsonl:5: .*4\.png does not exist"):
        build_corpus(
            examples,
            text=WordText.build(["a picture"], PRESETS["mrnn"]),
            rules=PRESETS["mrnn"],
            encoder=Patches(),
            parts=["pooled"],
            watch=lambda done, total: None,
        )
