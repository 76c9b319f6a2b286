"""Training: resumed equals uninterrupted to the last bit, nothing is lost, and trouble is named."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tellapart.captioner_learner import CaptionerLearner, Step, cider_of, greedy_captions
from tellapart.captioners.folder import load_captioner
from tellapart.errors import TellapartError
from tellapart.recipe import Recipe, load_recipe
from tellapart.recipe_sections import OptimiserConfig
from tellapart.run import Run, resume_run, start_run
from tellapart.stepping import Moment, build_optimiser, learning_rate, take_step
from tellapart.training import Report, begin, interruptible, prepare_learner, train, train_steps
from tellapart.types import AnyCaptioner, Batch, Context, Loss

SMALL = (
    "data.scenes=60",
    "captioner.embedding_one=8",
    "captioner.embedding_two=8",
    "captioner.multimodal=8",
    "captioner.dropout=0.3",
    "optimiser.learning_rate=0.005",
    "training.epochs=4",
    "training.images_per_batch=8",
    "training.evaluate_every=5",
    "training.log_every=1",
    "training.patience=0",
)

SMALL_DISK = """
import os, resource, signal, sys

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
os.execv(sys.argv[2], sys.argv[2:])
"""


def recipe(*changes: str) -> Recipe:
    return load_recipe("mrnn-shapes", changes=[*SMALL, *changes])


def ready(some: Recipe) -> CaptionerLearner:
    learner = prepare_learner(some, watch=lambda done, total: None)
    assert isinstance(learner, CaptionerLearner)
    return learner


def state_of(path: Path) -> dict[str, Any]:
    state: dict[str, Any] = torch.load(path, weights_only=True)
    del state["progress"]["core_seconds"]  # how long it took is no part of what came out
    return state


def assert_same(left: object, right: object) -> None:
    """Equal to the last bit, whatever the nesting."""
    if isinstance(left, torch.Tensor):
        assert isinstance(right, torch.Tensor)
        assert torch.equal(left, right)
    elif isinstance(left, dict):
        assert isinstance(right, dict)
        assert left.keys() == right.keys()
        for key in left:
            assert_same(left[key], right[key])
    elif isinstance(left, list):
        assert isinstance(right, list)
        for one, other in zip(left, right, strict=True):
            assert_same(one, other)
    else:
        assert left == right


def log_of(run: Run) -> list[dict[str, Any]]:
    entries = run.entries()
    for entry in entries:
        del entry["tokens_per_second"]
    return entries


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Run:
    some = recipe()
    run = start_run(tmp_path_factory.mktemp("runs") / "whole", some.to_toml())
    for _ in train_steps(some, run, ready(some)):
        pass
    return run


def test_the_loss_falls_and_the_best_captioner_is_kept(uninterrupted: Run) -> None:
    losses = [entry["loss"] for entry in uninterrupted.entries()]
    assert sum(losses[-5:]) < 0.95 * sum(losses[:5])
    validations = [entry for entry in uninterrupted.entries() if "validation" in entry]
    assert [entry["step"] for entry in validations] == [5, 10, 15, 20, 24]
    assert validations[-1]["is_best"]
    load_captioner(uninterrupted.captioner)


@pytest.mark.parametrize("stop_after", [3, 5, 13])
def test_resumed_equals_uninterrupted_to_the_last_bit(
    stop_after: int, uninterrupted: Run, tmp_path: Path
) -> None:
    some = recipe()
    run = start_run(tmp_path / "run", some.to_toml())
    steps = train_steps(some, run, ready(some))
    for report in steps:
        if report.step == stop_after:
            os.kill(os.getpid(), signal.SIGINT)  # handled as Ctrl-C: the next step is finished and saved
    assert report.interrupted
    assert run.latest_checkpoint() == run.checkpoint(stop_after + 1)
    resumed = resume_run(tmp_path / "run", some.to_toml())
    reports = list(train_steps(some, resumed, ready(some)))
    assert reports[0].step == stop_after + 2
    last = uninterrupted.latest_checkpoint()
    assert last is not None
    assert_same(state_of(resumed.checkpoint(24)), state_of(last))
    assert log_of(resumed) == log_of(uninterrupted)
    best, expected = (run.captioner / "model.safetensors" for run in (resumed, uninterrupted))
    assert best.read_bytes() == expected.read_bytes()


def test_a_killed_run_goes_on_from_its_last_checkpoint(uninterrupted: Run, tmp_path: Path) -> None:
    changes = [word for change in SMALL for word in ("--set", change)]
    command = [
        sys.executable,
        "-m",
        "tellapart",
        "train",
        "mrnn-shapes",
        "--out",
        str(tmp_path / "run"),
        *changes,
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    run = Run(tmp_path / "run")
    deadline = time.monotonic() + 120
    while run.latest_checkpoint() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert run.latest_checkpoint() is not None
    subprocess.run([*command, "--resume"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    last = uninterrupted.latest_checkpoint()
    assert last is not None
    assert_same(state_of(run.checkpoint(24)), state_of(last))
    assert log_of(run) == log_of(uninterrupted)


@pytest.mark.parametrize(
    ("room", "what"), [(100_000, "model.safetensors"), (500_000, "this checkpoint cannot be written")]
)
@pytest.mark.usefixtures(
    "uninterrupted"
)  # so that what it looks at is known, and not what the disk is full of
def test_a_full_disk_is_told_in_a_line(tmp_path: Path, room: int, what: str) -> None:
    changes = [word for change in SMALL for word in ("--set", change)]
    command = [sys.executable, "-m", "tellapart", "train", "mrnn-shapes", "--out", str(tmp_path / "run")]
    limited = [sys.executable, "-c", SMALL_DISK, str(room), *command, *changes]
    done = subprocess.run(limited, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert what in done.stderr.replace("\n", " ")
    assert "Traceback" not in done.stderr
    assert Run(tmp_path / "run").latest_checkpoint() is None


def test_training_stops_when_validation_no_longer_improves(tmp_path: Path) -> None:
    some = recipe("optimiser.learning_rate=1e-30", "training.patience=2", "training.stop_metric=accuracy")
    run = start_run(tmp_path / "run", some.to_toml())
    reports = list(train_steps(some, run, ready(some)))
    assert reports[-1].step == 15  # best at 5, worse at 10 and 15
    assert [report.step for report in reports if report.is_best] == [5]


def test_training_can_stop_by_the_captions_it_writes(tmp_path: Path) -> None:
    some = recipe("training.stop_metric=cider-d", "training.epochs=2")
    prepared = ready(some)
    run = start_run(tmp_path / "run", some.to_toml())
    reports = [report for report in train_steps(some, run, prepared) if report.validation]
    ciders = [report.validation.value("cider-d") for report in reports if report.validation]
    best = None
    for report, cider in zip(reports, ciders, strict=True):
        assert report.is_best == (best is None or cider > best)
        best = cider if report.is_best else best
    assert reports[-1].stopped_by == "epochs"
    assert run.entries()[-1]["validation"]["cider_d"] == ciders[-1]
    saved = load_captioner(run.captioner)
    kept = cider_of(greedy_captions(replace(prepared.ready, saved=saved)), prepared.ready)
    assert kept == pytest.approx(best, abs=0.02), "half precision may change a word"


def test_the_last_weights_are_kept_where_the_recipe_wants_them(tmp_path: Path) -> None:
    kept = {}
    for keep in ("best", "last"):
        wanted = recipe("optimiser.learning_rate=0.3", "training.epochs=2", f"training.keep={keep}")
        prepared = ready(wanted)
        run = start_run(tmp_path / keep, wanted.to_toml())
        reports = list(train_steps(wanted, run, prepared))
        assert not reports[-1].is_best, "or the test would show nothing"
        saved = load_captioner(run.captioner).captioner.state_dict()
        kept[keep] = all(
            torch.equal(saved[name].float(), tensor.half().float())
            for name, tensor in prepared.network.state_dict().items()
            if tensor.is_floating_point()
        )
    assert kept == {"best": False, "last": True}


def test_training_stops_when_its_processor_time_is_spent(tmp_path: Path) -> None:
    some = recipe("training.core_minutes=0.001", "training.epochs=50")
    run, prepared = begin(some, tmp_path / "run", resume=False, watch=lambda done, total: None)
    last = list(train_steps(some, run, prepared))[-1]
    assert last.stopped_by == "core_minutes"
    assert last.validation is not None, "what was trained is measured, or it would be lost"
    assert last.step < last.steps
    assert run.captioner.is_dir()
    assert list(train_steps(some, resume_run(tmp_path / "run", some.to_toml()), prepared)) == []


def test_a_loss_that_is_not_a_number_names_step_and_images(tmp_path: Path) -> None:
    some = recipe()
    prepared = ready(some)
    with torch.no_grad():
        prepared.network.get_parameter("output.bias")[0] = torch.nan
    run = start_run(tmp_path / "run", some.to_toml())
    with pytest.raises(TellapartError) as caught:
        list(train_steps(some, run, prepared))
    assert caught.value.problem.startswith("step 1: the loss is nan")
    first = prepared.batch(0)
    assert all(image_id in caught.value.problem for image_id in first.image_ids)


def test_a_gradient_without_end_stops_training_too(monkeypatch: pytest.MonkeyPatch) -> None:
    some = recipe("optimiser.clip_norm=0")
    prepared = ready(some)
    weight = prepared.network.get_parameter("output.weight")
    weight.register_hook(lambda gradient: gradient * torch.inf)  # type: ignore[no-untyped-call]
    optimiser = build_optimiser(some.optimiser, prepared.network)
    before = weight.detach().clone()
    with pytest.raises(TellapartError, match=r"gradient's norm (inf|nan)"):
        take_step(prepared.step, optimiser, [prepared.batch(0)], some, Moment(0, 1))
    assert torch.equal(weight, before)


def one_step_by_hand(name: str, weight: float, gradient: float) -> float:
    """The first step of each optimiser, learning rate 0.1, decay 0.01, as its paper writes it."""
    if name == "sgd":
        return weight - 0.1 * (gradient + 0.01 * weight)
    if name == "adamw":  # Loshchilov & Hutter: the decay does not pass through the moments
        return weight * (1 - 0.1 * 0.01) - 0.1 * gradient / (abs(gradient) + 1e-8)
    decayed = gradient + 0.01 * weight
    return weight - 0.1 * decayed / (abs(decayed) + 1e-8)


@pytest.mark.parametrize("name", ["adam", "adamw", "sgd"])
def test_optimisers_step_as_their_papers_say(name: str) -> None:
    captioner = ready(recipe()).network
    config = OptimiserConfig(name=name, learning_rate=0.1, weight_decay=0.01)  # type: ignore[arg-type]
    optimiser = build_optimiser(config, captioner)
    weight = captioner.get_parameter("output.bias")
    before = weight.detach().clone()
    weight.grad = torch.linspace(-0.02, 0.03, len(weight))
    optimiser.step()
    expected = [
        one_step_by_hand(name, *pair) for pair in zip(before.tolist(), weight.grad.tolist(), strict=True)
    ]
    torch.testing.assert_close(weight.detach(), torch.tensor(expected), rtol=1e-4, atol=1e-6)


def test_momentum_and_betas_are_passed_on() -> None:
    captioner = ready(recipe()).network
    sgd = build_optimiser(OptimiserConfig(name="sgd", momentum=0.7), captioner)
    assert sgd.param_groups[0]["momentum"] == 0.7
    adam = build_optimiser(OptimiserConfig(momentum=0.8, beta2=0.95), captioner)
    assert adam.param_groups[0]["betas"] == (0.8, 0.95)


@pytest.mark.parametrize("rate", ["1e3", "1e30"])
def test_a_validation_that_is_not_finite_stops_and_is_not_kept(rate: str, tmp_path: Path) -> None:
    some = recipe(
        f"optimiser.learning_rate={rate}",
        "optimiser.name=sgd",
        "optimiser.clip_norm=0",
        "optimiser.warmup_steps=0",
        "training.evaluate_every=1",
    )
    run = start_run(tmp_path / "run", some.to_toml())
    with pytest.raises(TellapartError, match=r"step \d+: the loss"):
        list(train_steps(some, run, ready(some)))
    if run.captioner.exists():  # saved while it was still sound
        load_captioner(run.captioner)


def test_what_fails_before_training_leaves_no_folder(tmp_path: Path) -> None:
    lines = [f'{{"image": "{name}.jpg", "captions": ["one"]}}\n' for name in ["aa", "b"]]
    (tmp_path / "captions.jsonl").write_text("".join(lines))
    some = recipe("data.format=jsonl", f"data.path='{tmp_path}/captions.jsonl'")
    with pytest.raises(TellapartError, match=r"(aa|b)\.jpg does not exist"):
        begin(some, tmp_path / "run", resume=False, watch=lambda done, total: None)
    assert not (tmp_path / "run").exists()


def test_train_runs_to_the_end(tmp_path: Path) -> None:
    run = train(recipe("training.epochs=1"), tmp_path / "run")
    assert run.captioner.is_dir()


def test_training_leaves_torch_as_it_was(tmp_path: Path) -> None:
    some = recipe("training.epochs=1")
    steps = train_steps(some, start_run(tmp_path / "run", some.to_toml()), ready(some))
    next(steps)
    assert torch.are_deterministic_algorithms_enabled()
    steps.close()
    assert not torch.are_deterministic_algorithms_enabled()


def test_a_second_ctrl_c_does_not_wait() -> None:
    with interruptible() as asked:
        os.kill(os.getpid(), signal.SIGINT)
        assert asked.is_set()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_dropout_and_objectives_draw_from_different_streams() -> None:
    some = recipe()
    prepared = ready(some)
    drawn: list[torch.Tensor] = []

    def spy(captioner: AnyCaptioner, batch: Batch, context: Context) -> Loss:
        drawn.extend((torch.rand(4), torch.rand(4, generator=context.generator)))
        total = captioner.get_parameter("output.bias").sum()
        return Loss(total, {})

    optimiser = build_optimiser(some.optimiser, prepared.network)
    batch = prepared.batch(0)
    for number in (0, 1, 0):
        take_step(Step(prepared.network, spy), optimiser, [batch], some, Moment(number, 2))
    assert not torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])
    assert torch.equal(drawn[0], drawn[4])
    assert torch.equal(drawn[1], drawn[5])


def test_clipping_bounds_the_step(tmp_path: Path) -> None:
    some = recipe(
        "optimiser.name=sgd",
        "optimiser.momentum=0.0",
        "optimiser.learning_rate=1.0",
        "optimiser.warmup_steps=0",
        "optimiser.clip_norm=0.01",
    )
    prepared = ready(some)
    before = [weight.detach().clone() for weight in prepared.network.parameters()]
    next(iter(train_steps(some, start_run(tmp_path / "run", some.to_toml()), prepared)))
    moved = sum(
        float(((new.detach() - old) ** 2).sum())
        for new, old in zip(prepared.network.parameters(), before, strict=True)
    )
    assert math.sqrt(moved) == pytest.approx(0.01, rel=1e-3)


def test_learning_rate_by_hand() -> None:
    config = OptimiserConfig(learning_rate=1.0, warmup_steps=4, decay="cosine")
    rates = [learning_rate(config, number, 12) for number in range(12)]
    assert rates[:5] == pytest.approx([0.25, 0.5, 0.75, 1.0, 1.0])
    assert rates[8] == pytest.approx(0.5)
    assert rates[11] == pytest.approx(0.5 * (1 + math.cos(math.pi * 7 / 8)))
    constant = OptimiserConfig(learning_rate=0.3)
    assert {learning_rate(constant, number, 12) for number in range(12)} == {0.3}


def test_a_full_folder_is_not_written_into(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(TellapartError, match="something in this folder"):
        start_run(tmp_path, "seed = 1\n")
    assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]


def test_resuming_with_another_recipe_is_refused_by_the_line(uninterrupted: Run) -> None:
    with pytest.raises(TellapartError, match="seed = 7"):
        resume_run(uninterrupted.folder, recipe("seed=7").to_toml())
    with pytest.raises(TellapartError, match="no run to resume"):
        resume_run(uninterrupted.folder / "nowhere", recipe().to_toml())


def damaged_copy(uninterrupted: Run, tmp_path: Path, content: bytes) -> Run:
    some = recipe()
    run = start_run(tmp_path / "run", some.to_toml())
    target = run.checkpoint(24)
    target.parent.mkdir()
    target.write_bytes(content)
    return run


def test_a_damaged_checkpoint_is_named(uninterrupted: Run, tmp_path: Path) -> None:
    last = uninterrupted.latest_checkpoint()
    assert last is not None
    run = damaged_copy(uninterrupted, tmp_path, last.read_bytes()[:1000])
    with pytest.raises(TellapartError, match="damaged checkpoint"):
        list(train_steps(recipe(), run, ready(recipe())))


def test_a_checkpoint_of_another_vocabulary_is_refused(uninterrupted: Run, tmp_path: Path) -> None:
    last = uninterrupted.latest_checkpoint()
    assert last is not None
    run = damaged_copy(uninterrupted, tmp_path, last.read_bytes())
    other = recipe("data.min_count=40")
    with pytest.raises(TellapartError, match="another vocabulary"):
        list(train_steps(other, run, ready(other)))


def test_a_log_line_cut_by_a_kill_is_dropped(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.metrics.write_text('{"step": 1}\n{"step": 2}\n{"ste')
    run.forget_after(1)
    assert run.metrics.read_text() == '{"step": 1}\n'


def test_the_run_folder_says_what_ran(uninterrupted: Run) -> None:
    environment = json.loads((uninterrupted.folder / "environment.json").read_text())
    assert environment["torch"].startswith("2.")
    assert load_recipe(str(uninterrupted.recipe)) == recipe()


def test_reports_carry_the_parts_of_the_loss(tmp_path: Path) -> None:
    some = recipe("objective.name=mrnn-cost", "training.epochs=1")
    first: Report = next(iter(train_steps(some, start_run(tmp_path / "run", some.to_toml()), ready(some))))
    taken = first.taken
    assert set(taken.parts) == {"bits", "l2"}
    assert taken.loss == pytest.approx(taken.parts["bits"] + taken.parts["l2"])
