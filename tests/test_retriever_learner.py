"""Training a retriever: the loop is the captioners'; here stands what is its own."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tellapart.data.examples import SPLITS
from tellapart.data.shapes.dataset import write_shapes
from tellapart.errors import TellapartError
from tellapart.foreign import glove
from tellapart.recipe import RetrieverRecipe, load_experiment, load_recipe
from tellapart.retriever_learner import Recalls, RetrieverLearner, prepare_retriever
from tellapart.retrievers.loading import load_retriever
from tellapart.run import Run, resume_run, start_run
from tellapart.training import train, train_steps

SMALL = (
    "data.scenes=300",
    "retriever.width=16",
    "retriever.hidden=12",
    "training.epochs=10",
    "training.images_per_batch=20",
    "training.log_every=1",
    "training.patience=0",
    "optimiser.learning_rate=0.01",
)


def recipe(*changes: str) -> RetrieverRecipe:
    some = load_experiment("retriever-shapes", changes=[*SMALL, *changes])
    assert isinstance(some, RetrieverRecipe)
    return some


def learner(*changes: str) -> RetrieverLearner:
    return prepare_retriever(recipe(*changes), watch=lambda done, total: None)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(recipe(), tmp_path_factory.mktemp("runs") / "whole")


def test_the_loss_falls_and_the_best_retriever_answers(trained: Run) -> None:
    entries = trained.entries()
    losses = [entry["loss"] for entry in entries]
    assert sum(losses[-5:]) < 0.8 * sum(losses[:5])
    validations = [entry["validation"] for entry in entries if "validation" in entry]
    assert validations[-1]["pictures_r10"] > validations[0]["pictures_r10"]
    assert load_retriever(trained.folder).embed_texts(["a red circle"]).shape == (1, 16)


def test_what_was_measured_on_the_way_is_what_the_kept_one_does(trained: Run) -> None:
    best = [entry["validation"] for entry in trained.entries() if entry.get("is_best")][-1]
    data = learner()
    kept = load_retriever(trained.folder)
    examples = data.val_set.examples
    pictures = kept.embed_images([example.path for example in examples])
    sentences = kept.embed_texts([example.captions[0] for example in examples])
    own = (sentences * pictures).sum(1)
    assert own.mean() > np.median(sentences @ pictures.T), (
        "a caption is nearer to its own picture than to most"
    )
    found = []
    for number, example in enumerate(examples):
        scores = kept.embed_texts(list(example.captions)) @ pictures.T
        found += [int((row >= row[number]).sum()) - 1 for row in scores]
    # Weights are kept in half precision, which may change a rank or two.
    assert np.mean(np.array(found) < 5) == pytest.approx(best["pictures_r5"], abs=0.05)


def test_resumed_equals_uninterrupted_to_the_last_bit(trained: Run, tmp_path: Path) -> None:
    some = recipe()
    run = start_run(tmp_path / "run", some.to_toml())
    for report in train_steps(some, run, learner()):
        if report.step == 7:
            os.kill(os.getpid(), signal.SIGINT)
    assert report.interrupted
    list(train_steps(some, resume_run(run.folder, some.to_toml()), learner()))
    last, expected = run.latest_checkpoint(), trained.latest_checkpoint()
    assert last is not None
    assert expected is not None
    states: list[dict[str, Any]] = [torch.load(path, weights_only=True) for path in (last, expected)]
    for name, tensor in states[0]["step"].items():
        assert torch.equal(tensor, states[1]["step"][name]), name
    assert (run.retriever / "model.safetensors").read_bytes() == (
        trained.retriever / "model.safetensors"
    ).read_bytes()


@pytest.mark.parametrize("ranking", ["pairwise", "hardest", "info-nce"])
def test_every_ranking_loss_trains(ranking: str, tmp_path: Path) -> None:
    run = train(recipe(f"ranking.name={ranking}", "training.epochs=3"), tmp_path / "run")
    losses = [entry["loss"] for entry in run.entries()]
    assert sum(losses[-5:]) < sum(losses[:5])


def test_an_epoch_sees_every_picture_once_a_pass_with_captions_drawn_afresh() -> None:
    some = learner("training.passes=2")
    count = len(some.train_set.examples)
    batches = [some.batch(step) for step in range(some.steps_per_epoch)]
    names = [name for batch in batches for name in batch.image_ids]
    assert sorted(names) == sorted(2 * [example.image_id for example in some.train_set.examples])
    assert sorted(names[:count]) == sorted(names[count:])
    again = some.batch(0)
    assert again.image_ids == batches[0].image_ids
    assert all(np.array_equal(*pair) for pair in zip(again.read, batches[0].read, strict=True))
    later = some.batch(some.steps_per_epoch)
    assert later.image_ids != batches[0].image_ids


def test_of_several_views_each_batch_draws_one_and_validation_sees_the_whole() -> None:
    plain, some = learner(), learner("encoder.views=3")
    assert some.validate() == plain.validate()
    count = len(some.train_set.examples)
    rows = list(range(count))
    views = [some.train_set.pairs(rows, [0] * count, [view] * count).vision.pooled for view in range(3)]
    assert torch.equal(views[0], plain.train_set.pairs(rows, [0] * count).vision.pooled)
    names = [example.image_id for example in some.train_set.examples]
    drawn = [0, 0, 0]
    for step in range(some.steps_per_epoch):
        batch = some.batch(step)
        for name, pooled in zip(batch.image_ids, batch.vision.pooled, strict=True):
            fitting = [view for view in range(3) if torch.equal(pooled, views[view][names.index(name)])]
            assert fitting
            drawn[fitting[0]] += 1
    assert min(drawn) > count / 5


def test_two_halves_share_no_picture_and_leave_none_out() -> None:
    whole, first, second = (
        {example.image_id for example in learner(f"training.half={half}").train_set.examples}
        for half in ("", "first", "second")
    )
    assert first | second == whole
    assert not first & second
    assert abs(len(first) - len(second)) <= 1


def test_what_is_measured_on_is_not_learnt_from(tmp_path: Path) -> None:
    folder = write_shapes(tmp_path / "scenes", count=60, seed=1)
    lines = [json.loads(line) for line in (folder / "captions.jsonl").read_text().splitlines()]
    for line in lines:
        line["captions"] = [f"{caption} in {line['split']}" for caption in line["captions"]]
    (folder / "captions.jsonl").write_text("\n".join(map(json.dumps, lines)))
    ids = {split: {line["image"] for line in lines if line["split"] == split} for split in SPLITS}
    assert all(ids.values())
    changes = (f"data.path={folder / 'captions.jsonl'}", f"data.images={folder}", "data.format=jsonl")
    some = learner(*changes, "data.min_count=1")
    for data, split in ((some.train_set, "train"), (some.val_set, "val")):
        assert {f"images/{example.path.name}" for example in data.examples} == ids[split]
    assert some.text is not None
    assert "train" in some.text.vocabulary
    assert "val" not in some.text.vocabulary
    assert "test" not in some.text.vocabulary


def test_validation_is_without_dropout() -> None:
    some = learner("retriever.dropout=0.5")
    some.network.train()
    assert some.validate() == some.validate()


def test_learnt_word_vectors_need_no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glove, "_places", pytest.fail)
    assert learner("retriever.word_vectors=learned", "retriever.more_words=0").text is not None


def test_glove_brings_words_that_no_caption_has() -> None:
    some = learner("retriever.word_vectors=glove", "retriever.word_width=50", "retriever.more_words=500")
    assert some.text is not None
    assert "president" in some.text.vocabulary
    assert "," not in some.text.vocabulary, "what the rules never give is no word"


def test_recalls_by_hand() -> None:
    found = Recalls(0.5, (0.1, 0.2, 0.3), (0.2, 0.3, 0.4))
    assert found.value("recall") == pytest.approx(1.5)
    assert found.better("recall", 1.4)
    assert not found.better("recall", 1.6)
    assert found.better("loss", 0.6)
    assert found.better("recall", None)
    assert str(found) == "R@1, 5, 10 of sentences 10.0% 20.0% 30.0%, of pictures 20.0% 30.0% 40.0%"


def test_captions_without_pictures_are_refused(tmp_path: Path) -> None:
    (tmp_path / "more.jsonl").write_text('{"image": "a.jpg", "captions": ["one"]}\n')
    extra = f'data.extra=[{{ path = "{tmp_path}/more.jsonl", pictures = false }}]'
    with pytest.raises(TellapartError, match="teach a retriever nothing"):
        learner(extra)


def test_an_encoder_without_classes_is_refused_where_they_are_looked_at() -> None:
    with pytest.raises(TellapartError, match="names no classes"):
        learner("retriever.classes=true")


def test_where_a_captioner_is_meant_a_retriever_is_refused() -> None:
    with pytest.raises(TellapartError, match="trains a retriever"):
        load_recipe("retriever-shapes")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("retriever.word_width=300", "50 numbers"),
        ("training.images_per_batch=1", "greater than or equal to 2"),
        ("ranking.name=hard", "no ranking loss is called 'hard'"),
        ("retriever.preset=large", "no preset"),
        ("training.start_from=x", "unknown key"),
    ],
)
def test_wrong_settings_are_named(change: str, said: str) -> None:
    glove = ("retriever.word_vectors=glove",) if "word_width" in change else ()
    with pytest.raises(TellapartError, match=said):
        load_experiment("retriever-shapes", changes=[*glove, change])
