"""Tuning an encoder: the loop is the captioners'; here stands what is its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from tellapart.captioning import load
from tellapart.cli.demo import photographs
from tellapart.data.examples import Example
from tellapart.data.images import read_picture
from tellapart.data.shapes.dataset import write_shapes
from tellapart.data.text import PRESETS
from tellapart.encoder_learner import (
    EncoderLearner,
    Foretold,
    mean_precision,
    prepare_encoder,
    tuned_words,
    word_shares,
)
from tellapart.errors import TellapartError
from tellapart.learner import Learner
from tellapart.recipe import EncoderRecipe, find_recipe, load_experiment, load_recipe
from tellapart.run import Run, resume_run, start_run
from tellapart.training import train, train_steps
from tellapart.vision.parts import load_encoder
from tellapart.vision.traits import are_related
from tellapart.world import World

SMALL = (
    "data.scenes=120",
    "encoder.views=2",
    "tuning.first_block=15",
    "tuning.rank=4",
    "tuning.min_images=5",
    "training.epochs=6",
    "optimiser.learning_rate=5e-3",
    "optimiser.warmup_steps=5",
    "training.images_per_batch=16",
    "training.log_every=1",
    "training.keep=last",
)


def recipe(*changes: str) -> EncoderRecipe:
    some = load_experiment("eyes-shapes", changes=[*SMALL, *changes])
    assert isinstance(some, EncoderRecipe)
    return some


def learner(*changes: str) -> EncoderLearner:
    return prepare_encoder(recipe(*changes), watch=lambda done, total: None)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(recipe(), tmp_path_factory.mktemp("runs") / "whole")


def test_the_loss_falls_and_words_are_foretold_better(trained: Run) -> None:
    assert isinstance(learner(), Learner)
    entries = trained.entries()
    assert sum(entry["words"] for entry in entries[-4:]) < 0.8 * sum(entry["words"] for entry in entries[:4])
    validations = [entry["validation"] for entry in entries if "validation" in entry]
    assert validations[-1]["precision"] > validations[0]["precision"]


def test_the_kept_encoder_sees_what_the_tuned_blocks_saw(trained: Run) -> None:
    checkpoint = trained.latest_checkpoint()
    assert checkpoint is not None
    some = learner()
    state: dict[str, Any] = torch.load(checkpoint, weights_only=True)
    some.step.load_state_dict(state["step"])
    encoder = load_encoder(f"tuned:{trained.folder}")
    example = some.val_set.examples[0]
    seen = encoder.encode(encoder.prepare(read_picture(example.path))[None])
    with torch.inference_mode():
        expected = some.step.eval().late(some.val_set.glimpses([0], [0]).early).numpy()
    np.testing.assert_allclose(seen.grid, expected, atol=0.05, rtol=0.02)
    untuned = load_encoder("efficientnet-lite0")
    before = untuned.encode(untuned.prepare(read_picture(example.path))[None])
    assert np.abs(seen.grid - before.grid).max() > 0.1
    assert encoder.shapes == untuned.shapes
    assert encoder.class_names == untuned.class_names
    assert encoder.identity != untuned.identity


def test_a_captioner_learns_by_it_and_remembers_it(trained: Run, tmp_path: Path) -> None:
    changes = (
        "data.scenes=120",
        "training.epochs=1",
        f"encoder.name=tuned:{trained.folder}",
        "encoder.views=2",
    )
    run = train(load_recipe("mrnn-shapes", changes=changes), tmp_path / "run")
    assert load(run.folder, cached=False).encoder.name == f"tuned:{trained.folder}"


def test_resumed_equals_uninterrupted_to_the_last_bit(trained: Run, tmp_path: Path) -> None:
    some = recipe()
    run = start_run(tmp_path / "run", some.to_toml())
    for report in train_steps(some, run, learner()):
        if report.step == 5:
            os.kill(os.getpid(), signal.SIGINT)
    assert report.interrupted
    list(train_steps(some, resume_run(run.folder, some.to_toml()), learner()))
    last, expected = run.latest_checkpoint(), trained.latest_checkpoint()
    assert last is not None
    assert expected is not None
    states: list[dict[str, Any]] = [torch.load(path, weights_only=True) for path in (last, expected)]
    for name, tensor in states[0]["step"].items():
        assert torch.equal(tensor, states[1]["step"][name]), name
    weights = [(one.encoder / "model.safetensors").read_bytes() for one in (run, trained)]
    assert weights[0] == weights[1]


def test_classes_are_kept_by_so_much_as_is_asked(tmp_path: Path) -> None:
    kept, free = (
        train(recipe(f"tuning.keep_classes={weight}"), tmp_path / weight).entries() for weight in ("30", "0")
    )
    assert kept[-1]["classes"] < 0.7 * free[-1]["classes"]


def test_an_epoch_sees_every_picture_once_in_views_drawn_afresh() -> None:
    some = learner()
    epochs: list[dict[str, bytes]] = []
    for epoch in range(4):
        seen: dict[str, bytes] = {}
        for step in range(some.steps_per_epoch):
            (batch,) = some.shares(epoch * some.steps_per_epoch + step, World())
            for name, early in zip(batch.image_ids, batch.early, strict=True):
                seen[name] = early.numpy().tobytes()
        assert len(seen) == len(some.train_set.examples)
        epochs.append(seen)
    of_each = [len({seen[name] for seen in epochs}) for name in epochs[0]]
    assert set(of_each) == {1, 2}
    (again,) = some.shares(0, World())
    assert all(
        early.numpy().tobytes() == epochs[0][name]
        for name, early in zip(again.image_ids, again.early, strict=True)
    )


def test_validation_is_without_chance_and_of_whole_pictures() -> None:
    some = learner()
    some.step.train()
    assert some.validate() == some.validate()
    assert len(some.val_set.digests) == 1


def test_words_and_their_shares_by_hand() -> None:
    def example(*captions: str) -> Example:
        return Example("1", Path("1.png"), captions, "train", "here:1")

    examples = [
        example("A red dog runs.", "a dog"),
        example("the red car", "a car, a car"),
        example("two dogs in the snow", "a dog"),
    ]
    rules = PRESETS["mrnn"]
    assert tuned_words(examples, rules, min_images=2) == ["dog", "red"]
    assert tuned_words(examples, rules, min_images=1) == ["car", "dog", "dogs", "red", "runs", "snow"]
    shares = word_shares(examples, ["dog", "red", "car"], rules)
    assert shares.tolist() == [[1, 0.5, 0], [0, 0.5, 1], [0.5, 0, 0]]
    with pytest.raises(TellapartError, match="no word stands in the captions of 4 pictures"):
        tuned_words(examples, rules, min_images=4)


def test_average_precision_by_hand() -> None:
    logits = np.array([[3, 1, 0], [2, 2, 0], [1, 3, 0]], np.float32)
    right = np.array([[1, 1, 0], [0, 0, 0], [1, 0, 0]], bool)
    # First word: right at places 1 and 3; second: at place 3; the third is right nowhere.
    assert mean_precision(logits, right) == pytest.approx(((1 + 2 / 3) / 2 + 1 / 3) / 2)
    assert mean_precision(logits, np.zeros_like(right)) == 0


@given(
    st.lists(
        st.tuples(st.integers(-50, 50), st.booleans()),
        min_size=1,
        max_size=30,
        unique_by=lambda pair: pair[0],
    )
)
def test_average_precision_is_one_only_for_the_best_order(pairs: list[tuple[int, bool]]) -> None:
    logits = np.array([[pair[0]] for pair in pairs], np.float32)
    right = np.array([[pair[1]] for pair in pairs])
    found = mean_precision(logits, right)
    best = mean_precision(right.astype(np.float32), right)
    assert 0 <= found <= best
    assert best == (1 if right.any() else 0)


def test_what_is_measured_by_hand() -> None:
    found = Foretold(2.0, 0.25)
    assert found.better("precision", 0.2)
    assert not found.better("precision", 0.3)
    assert found.better("loss", 2.5)
    assert found.better("loss", None)
    assert str(found) == "loss 2.000, average precision of words 25.0%"


def test_where_a_captioner_is_meant_an_encoder_is_refused() -> None:
    with pytest.raises(TellapartError, match="trains an encoder, not a captioner"):
        load_recipe("eyes-shapes")


def test_captions_without_pictures_are_refused(tmp_path: Path) -> None:
    (tmp_path / "more.jsonl").write_text('{"image": "a.jpg", "captions": ["one"]}\n')
    with pytest.raises(TellapartError, match="teach an encoder nothing"):
        learner(f'data.extra=[{{ path = "{tmp_path}/more.jsonl", pictures = false }}]')


def test_several_processes_are_refused_before_anything_is_looked_at() -> None:
    looked: list[int] = []
    with pytest.raises(TellapartError, match="tuned by one process, and here are 2"):
        prepare_encoder(recipe(), watch=lambda done, total: looked.append(done), world=World(size=2))
    assert not looked


def test_pictures_of_an_extra_source_are_drawn_afresh_each_epoch(tmp_path: Path) -> None:
    write_shapes(tmp_path, count=12, seed=77)
    extra = f'data.extra=[{{ path = "{tmp_path}/captions.jsonl", images = "{tmp_path}", per_epoch = 5 }}]'
    some, alone = learner(extra), learner()
    drawn = []
    for epoch in range(2):
        steps = range(epoch * some.steps_per_epoch, (epoch + 1) * some.steps_per_epoch)
        rows = [row for step in steps for row in some._plans.find(step)[1]]
        assert len(rows) == len(set(rows)) == len(alone.train_set.examples) + 5
        drawn.append({row for row in rows if row >= len(alone.train_set.examples)})
    assert drawn[0] != drawn[1]


def test_a_checkpoint_of_other_words_is_not_gone_on_with() -> None:
    assert learner().fingerprint == learner().fingerprint
    assert learner().fingerprint != learner("tuning.min_images=30").fingerprint


def test_a_stage_cannot_tune(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    text = find_recipe("mrnn-shapes").read_text()
    path.write_text(f'{text}\n[stages.eyes]\nbased_on = "eyes-shapes"\n')
    with pytest.raises(TellapartError, match="a stage tunes no encoder"):
        load_experiment(str(path), changes=["encoder.name=efficientnet-lite0"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("encoder.name=patches", "the encoder patches cannot be tuned"),
        ("tuning.rank=0", "greater than or equal to 1|greater than 0"),
        ("tuning.ranks=4", "unknown key 'ranks'"),
        ("tuning.left_out=1.0", "less than 1"),
        ("training.stop_metric=cider-d", "'loss' or 'precision'"),
        ("training.start_from=x", "unknown key"),
    ],
)
def test_wrong_settings_are_named(change: str, said: str) -> None:
    with pytest.raises(TellapartError, match=said):
        load_experiment("eyes-shapes", changes=[change])


def test_a_block_that_is_not_there_is_named() -> None:
    with pytest.raises(TellapartError, match=r"tuning\.first_block is 99, and the encoder has 16 blocks"):
        learner("tuning.first_block=99")


def test_two_tunings_are_two_encoders_and_what_leaves_no_trace_changes_no_name(
    trained: Run, tmp_path: Path
) -> None:
    identity = load_encoder(f"tuned:{trained.folder}").identity
    other = copied(trained, tmp_path / "other")
    weights = load_file(other / "model.safetensors")
    save_file({**weights, "head.shift": weights["head.shift"] + 1}, other / "model.safetensors")
    assert load_encoder(f"tuned:{other}").identity != identity
    same = copied(trained, tmp_path / "same")
    settings = json.loads((same / "config.json").read_text())
    settings["tuning"]["dropout"] = 0.7
    settings["tuning"]["keep_classes"] = 7.0
    (same / "config.json").write_text(json.dumps(settings))
    assert load_encoder(f"tuned:{same}").identity == identity


def test_the_one_that_ships_keeps_its_name_and_tells_classes_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "eyes").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load_recipe("mrnn-shapes", changes=["encoder.name=tuned:eyes"]).encoder.name == "tuned:eyes"
    tuned, before = load_encoder("tuned:eyes"), load_encoder("efficientnet-lite2")
    assert are_related(tuned.identity, before.identity)
    for path in (photo for photo in photographs() if photo.stem in ("chelsea", "coffee")):
        pixels = before.prepare(read_picture(path))[None]
        one, other = tuned.encode(pixels), before.encode(pixels)
        assert one.classes[0].argmax() == other.classes[0].argmax()
        assert np.abs(one.pooled - other.pooled).max() > 0.1


def test_a_captioner_whose_encoder_is_gone_or_another_says_where_it_is_named(
    trained: Run, tmp_path: Path
) -> None:
    eyes = copied(trained, tmp_path / "eyes")
    changes = ("data.scenes=120", "training.epochs=1", f"encoder.name=tuned:{eyes}")
    captioner = train(load_recipe("mrnn-shapes", changes=changes), tmp_path / "run").captioner
    weights = load_file(eyes / "model.safetensors")
    save_file({**weights, "head.shift": weights["head.shift"] + 1}, eyes / "model.safetensors")
    with pytest.raises(TellapartError, match=f"but tuned:{eyes} is efficientnet-lite0-tuned-") as refused:
        load(captioner)
    assert refused.value.hint.startswith(f"let encoder.name in {captioner}/config.json name the folder")
    shutil.rmtree(eyes)
    with pytest.raises(TellapartError, match=f"{captioner} looks through tuned:{eyes}: .*no encoder folder"):
        load(captioner)


def copied(trained: Run, folder: Path) -> Path:
    shutil.copytree(trained.encoder, folder)
    return folder


def test_a_folder_that_holds_none_is_named(tmp_path: Path, tiny_captioner: Path) -> None:
    with pytest.raises(TellapartError, match="no encoder folder here"):
        load_encoder(f"tuned:{tmp_path / 'nowhere'}")
    with pytest.raises(TellapartError, match="a captioner stands there, no encoder"):
        load_encoder(f"tuned:{tiny_captioner}")


def test_damaged_and_foreign_weights_are_named(trained: Run, tmp_path: Path) -> None:
    cut = copied(trained, tmp_path / "cut")
    weights = cut / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(TellapartError, match="half-written or damaged"):
        load_encoder(f"tuned:{cut}")
    other = copied(trained, tmp_path / "other")
    settings = json.loads((other / "config.json").read_text())
    settings["tuning"]["rank"] = 5
    (other / "config.json").write_text(json.dumps(settings))
    with pytest.raises(TellapartError, match="these weights are not of this encoder"):
        load_encoder(f"tuned:{other}")
    (other / "model.safetensors").unlink()
    with pytest.raises(TellapartError, match="missing, unreadable"):
        load_encoder(f"tuned:{other}")
    settings["content"] = "0" * 16
    (other / "config.json").write_text(json.dumps(settings))
    with pytest.raises(TellapartError, match="tuned with other weights of efficientnet-lite0"):
        load_encoder(f"tuned:{other}")
