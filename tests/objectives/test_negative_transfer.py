"""UNKT: its equations by hand, its laws, and what it refuses."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.objectives.material import SMALL, context, doubled, learner, saved_copy
from torch import Tensor

from tellapart.captioner_learner import CaptionerLearner, Step
from tellapart.errors import TellapartError
from tellapart.objectives.negative_transfer import (
    NegativeTransfer,
    attended,
    build_unkt,
    nearness,
    soft_unlikelihood,
    softened,
    unlikelihood,
)
from tellapart.objectives.settings.negative_transfer import UNKTConfig
from tellapart.preparation import prepare
from tellapart.recipe import load_recipe
from tellapart.types import Batch, Loss, Totals
from tellapart.world import ALONE

TERMS = ("predictions", "hidden", "attention")
few = settings(max_examples=40)
seeds = st.integers(0, 10_000)


def logits_of(seed: int, *, scale: float = 3.0) -> tuple[Tensor, Tensor]:
    """Those of a student, and the probabilities of a teacher."""
    generator = torch.Generator().manual_seed(seed)
    student = scale * torch.randn(5, 7, generator=generator, dtype=torch.float64)
    return student, (2 * torch.randn(5, 7, generator=generator, dtype=torch.float64)).softmax(-1)


# The soft unlikelihood of Eq. 5


@few
@given(seeds)
def test_soft_unlikelihood_is_equation_5_and_never_negative(seed: int) -> None:
    student, teacher = logits_of(seed)
    found = soft_unlikelihood(student, teacher)
    by_hand = [
        -sum(p * math.log(1 - s) for p, s in zip(ps, ss, strict=True))
        for ps, ss in zip(teacher.tolist(), student.softmax(-1).tolist(), strict=True)
    ]
    assert found.tolist() == pytest.approx(by_hand, rel=1e-6)
    assert (found >= 0).all()


@settings(max_examples=10)
@given(seeds)
def test_its_gradient_is_that_of_the_equation(seed: int) -> None:
    student, teacher = logits_of(seed)
    assert torch.autograd.gradcheck(
        lambda logits: soft_unlikelihood(logits, teacher), student.requires_grad_()
    )


@few
@given(seeds, st.floats(0, 1), st.floats(0, 1))
def test_it_falls_as_the_student_moves_away_from_the_teacher(seed: int, one: float, other: float) -> None:
    # From the teacher's own probabilities to those with its likeliest and its least likely word exchanged.
    _, teacher = logits_of(seed)
    (best, top), (worst, bottom) = teacher.max(-1, keepdim=True), teacher.min(-1, keepdim=True)

    def moved(amount: float) -> Tensor:
        shift = amount * (best - worst)
        return soft_unlikelihood(
            teacher.scatter_add(-1, top, -shift).scatter_add(-1, bottom, shift).log(), teacher
        )

    near, far = sorted((one, other))
    assert (moved(far) <= moved(near) + 1e-9).all()
    if far - near > 1e-3:
        assert (moved(far) < moved(near)).all()


@few
@given(seeds)
def test_a_sure_teacher_gives_the_unlikelihood_of_its_word(seed: int) -> None:
    student, teacher = logits_of(seed)
    words = teacher.argmax(-1)
    sure = torch.nn.functional.one_hot(words, 7).double()
    torch.testing.assert_close(unlikelihood(student, words), soft_unlikelihood(student, sure))


@pytest.mark.parametrize("scale", [1e4, -1e4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_both_are_finite_for_extreme_logits(scale: float, dtype: torch.dtype) -> None:
    for place in range(3):
        logits = torch.zeros(2, 3, dtype=dtype)
        logits[:, place] = scale
        logits[1, (place + 1) % 3] = -scale
        logits.requires_grad_()
        teacher = torch.eye(3, dtype=dtype)[[place, (place + 1) % 3]]
        for values in (soft_unlikelihood(logits, teacher), unlikelihood(logits, teacher.argmax(-1))):
            (gradient,) = torch.autograd.grad(values.sum(), logits)
            assert values.isfinite().all()
            assert gradient.isfinite().all()
            assert gradient.abs().max() <= 1 + 1e-6


def test_a_student_that_is_as_sure_as_its_teacher_is_still_pushed_away() -> None:
    logits = torch.tensor([[50.0, 0.0, 0.0]], requires_grad=True)  # in single precision p is 1
    soft_unlikelihood(logits, torch.tensor([[1.0, 0.0, 0.0]])).sum().backward()  # type: ignore[no-untyped-call]
    assert logits.grad is not None
    assert logits.grad.tolist() == [pytest.approx([1.0, -0.5, -0.5])]


# The measure of Eq. 6


@few
@given(seeds)
def test_nearness_is_between_0_and_1_and_that_of_the_equation(seed: int) -> None:
    student, teacher = logits_of(seed)
    found = nearness(teacher.log(), student.log_softmax(-1))
    for value, ps, qs in zip(found.tolist(), teacher.tolist(), student.softmax(-1).tolist(), strict=True):
        assert value == pytest.approx(
            math.exp(-sum(p * math.log(p / q) for p, q in zip(ps, qs, strict=True)))
        )
        assert 0 <= value < 1
    assert nearness(teacher.log(), teacher.log()).tolist() == pytest.approx([1.0] * 5, abs=1e-12)


@few
@given(seeds, st.floats(1e-3, 5), st.integers(0, 6))
def test_nearness_is_1_only_of_equals(seed: int, difference: float, place: int) -> None:
    _, teacher = logits_of(seed)
    other = teacher.log()
    other[:, place] += difference
    assert (nearness(teacher.log(), other.log_softmax(-1)) < 1).all()


def test_hidden_states_and_attention_may_be_extreme() -> None:
    hidden = torch.tensor([[1e4, -1e4, 0.0], [0.0, 0.0, 0.0]], requires_grad=True)
    one = nearness(softened(hidden.detach().flip(1)), softened(hidden))
    attention = torch.tensor([1.0, 0.0, 0.0]).view(1, 1, 1, 1, 3).requires_grad_()
    mask = torch.ones(1, 1, 1, dtype=torch.bool)
    elsewhere = attended(attention.detach().flip(-1), mask)
    two = nearness(elsewhere, attended(attention, mask))
    assert one.tolist() == pytest.approx([0, 1])
    assert two.item() == pytest.approx(0)
    (one.sum() + two.sum()).backward()  # type: ignore[no-untyped-call]
    assert hidden.grad is not None
    assert attention.grad is not None
    assert hidden.grad.isfinite().all()
    assert attention.grad.isfinite().all()
    assert nearness(elsewhere, elsewhere).item() == pytest.approx(1)


# The objective


@pytest.fixture(scope="module")
def made() -> CaptionerLearner:
    """A student without dropout, in double precision."""
    found = learner(captioner="transformer")
    found.network.double().eval()
    return found


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of another captioner of the same words and sizes."""
    other = learner(captioner="transformer")
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for weight in other.network.parameters():
            weight.add_(0.3 * torch.randn(weight.shape, generator=generator))
    return str(saved_copy(other, tmp_path_factory.mktemp("teachers") / "other"))


def built(made: CaptionerLearner, teacher: str, **changes: object) -> NegativeTransfer:
    config = UNKTConfig.model_validate({"teacher": teacher, "weight": 1.0, **changes})
    made.network.float()  # as it is when objectives are built
    objective = build_unkt(config, made.supplies)
    made.network.double()
    assert isinstance(objective, NegativeTransfer)
    objective.teacher[0].double()
    return objective


def gradients(loss: Loss, made: CaptionerLearner) -> list[Tensor]:
    """Of all weights that have one."""
    made.network.zero_grad()
    loss.total.backward()  # type: ignore[no-untyped-call]
    found = [weight.grad for weight in made.network.parameters() if weight.grad is not None]
    made.network.zero_grad()
    return found


def only(term: str) -> dict[str, object]:
    return {other: other == term for other in TERMS}


def by_hand(objective: NegativeTransfer, made: CaptionerLearner, batch: Batch) -> dict[str, float]:
    """The terms of Eq. 9, a token at a time."""
    given_tokens = batch.tokens[:, :, :-1]
    student = made.network.predict(batch.vision, given_tokens)
    taught = objective.teacher[0].predict(batch.vision, given_tokens)
    places = batch.mask[:, :, 1:].nonzero().tolist()
    sums = dict.fromkeys(("mle", *TERMS), 0.0)
    for image, caption, place in places:
        at = (image, caption, place)
        p_s, p_n = student.logits[at].softmax(-1), taught.logits[at].softmax(-1)
        sums["mle"] -= p_s[batch.tokens[image, caption, place + 1]].log().item()
        sums["predictions"] -= (p_n * (1 - p_s).log()).sum().item()
        for one, other in zip(taught.hidden, student.hidden, strict=True):
            sums["hidden"] += _near(one[at].softmax(-1), other[at].softmax(-1))
        for one, other in zip(taught.attention, student.attention, strict=True):
            heads = range(one.size(2))
            each = [_near(one[image, caption, h, place], other[image, caption, h, place]) for h in heads]
            sums["attention"] += sum(each) / len(each)
    return {name: value / len(places) for name, value in sums.items()}


def _near(p: Tensor, q: Tensor) -> float:
    return math.exp(-(p * (p / q).log()).sum().item())


def test_the_loss_is_equation_9(made: CaptionerLearner, teacher: str) -> None:
    batch = doubled(made.batch(0))
    objective = built(made, teacher, weight=0.3)
    loss = objective(made.network, batch, context())
    expected = by_hand(objective, made, batch)
    assert loss.parts == pytest.approx({**expected, "weight": 0.3}, rel=1e-6)
    total = 0.7 * expected["mle"] + 0.3 * sum(expected[name] for name in TERMS)
    assert loss.total.item() == pytest.approx(total, rel=1e-6)
    assert sum(term.item() for term in loss.terms.values()) == pytest.approx(total, rel=1e-6)
    assert 0 < expected["hidden"] < 2  # two layers, each between 0 and 1
    assert 0 < expected["attention"] < 2


@pytest.mark.parametrize("term", TERMS)
def test_each_term_on_its_own(term: str, made: CaptionerLearner, teacher: str) -> None:
    batch = doubled(made.batch(0))
    objective = built(made, teacher, **only(term))
    loss = objective(made.network, batch, context())
    assert set(loss.parts) == {term, "weight"}
    assert loss.total.item() == pytest.approx(by_hand(objective, made, batch)[term], rel=1e-6)
    assert any(gradient.abs().max() > 0 for gradient in gradients(loss, made))


def test_a_student_like_its_teacher_has_the_greatest_nearness(made: CaptionerLearner) -> None:
    batch = doubled(made.batch(0))
    loss = built(made, "")(made.network, batch, context())
    assert loss.parts["hidden"] == pytest.approx(2, abs=1e-9)
    assert loss.parts["attention"] == pytest.approx(2, abs=1e-9)


def test_the_temperature_softens_both(made: CaptionerLearner, teacher: str) -> None:
    batch = doubled(made.batch(0))
    objective = built(made, teacher, temperature=2.0, **only("predictions"))
    given_tokens, mask = batch.tokens[:, :, :-1], batch.mask[:, :, 1:]
    student = (made.network.predict(batch.vision, given_tokens).logits[mask] / 2).softmax(-1)
    taught = (objective.teacher[0].predict(batch.vision, given_tokens).logits[mask] / 2).softmax(-1)
    expected = -(taught * (1 - student).log()).sum(-1).mean()
    torch.testing.assert_close(objective(made.network, batch, context()).total, expected)


def test_hard_targets_are_the_teachers_likeliest_words(made: CaptionerLearner, teacher: str) -> None:
    batch = doubled(made.batch(0))
    objective = built(made, teacher, targets="hard", **only("predictions"))
    given_tokens, mask = batch.tokens[:, :, :-1], batch.mask[:, :, 1:]
    words = objective.teacher[0].predict(batch.vision, given_tokens).logits[mask].argmax(-1)
    student = made.network.predict(batch.vision, given_tokens).logits[mask].softmax(-1)
    expected = -(1 - student.gather(-1, words[:, None])).log().mean()
    torch.testing.assert_close(objective(made.network, batch, context()).total, expected)


def test_random_targets_are_words_of_the_captions_and_an_images_own(
    made: CaptionerLearner, teacher: str
) -> None:
    batch = made.batch(0)
    draw = built(made, teacher, targets="random", **only("predictions")).draw
    assert draw is not None
    words, mask = draw(batch, context()), batch.mask[:, :, 1:]
    text = made.network.text
    assert len(words) == mask.sum()
    assert not {text.pad, text.start, text.end} & set(words.tolist())
    assert not torch.equal(words, draw(batch, context(1))), "each step draws anew"
    last = part_of(batch, [-1])
    assert torch.equal(draw(padded(last), context()), words[-len(draw(last, context())) :])


def part_of(batch: Batch, images: list[int]) -> Batch:
    """A batch of some of the images."""
    rows = torch.tensor(images) % len(batch.rows)
    return Batch(
        tuple(batch.image_ids[row] for row in rows),
        batch.vision.select(rows),
        batch.tokens[rows],
        batch.mask[rows],
        tuple(batch.rows[row] for row in rows),
    )


def padded(batch: Batch) -> Batch:
    """The same with three more places, and a caption more that is not there."""
    pad = torch.nn.functional.pad
    return replace(
        batch,
        tokens=pad(batch.tokens, (0, 3, 0, 1), value=0),
        mask=pad(batch.mask, (0, 3, 0, 1), value=False),
    )


@pytest.mark.parametrize("targets", ["soft", "hard", "random"])
def test_padding_counts_nowhere(targets: str, made: CaptionerLearner, teacher: str) -> None:
    batch = doubled(made.batch(1))
    objective = built(made, teacher, weight=0.4, targets=targets)
    before = objective(made.network, batch, context())
    after = objective(made.network, padded(batch), context())
    assert after.parts == pytest.approx(before.parts, rel=1e-9)
    torch.testing.assert_close(after.total, before.total)


@pytest.mark.parametrize("targets", ["soft", "hard", "random"])
def test_shares_of_a_batch_add_up(targets: str, made: CaptionerLearner, teacher: str) -> None:
    objective = built(made, teacher, weight=0.4, targets=targets)
    split = learner("training.portions=3", captioner="transformer")
    (batch,), shares = made.shares(0, ALONE), split.shares(0, ALONE)
    assert len(shares) > 1
    whole = objective(made.network, doubled(batch), context())
    apart = [objective(made.network, doubled(share), context()) for share in shares]
    for name, value in whole.parts.items():
        assert sum(loss.parts[name] for loss in apart) == pytest.approx(value, rel=1e-9), name


def test_the_teacher_learns_nothing_and_is_kept_nowhere(made: CaptionerLearner, teacher: str) -> None:
    objective = built(made, teacher, weight=0.5)
    frozen = objective.teacher[0]
    before = {name: value.clone() for name, value in frozen.state_dict().items()}
    step = Step(made.network, objective)
    assert step.state_dict().keys() == {f"captioner.{name}" for name in made.network.state_dict()}
    assert not frozen.training
    step.train()
    assert not frozen.training, "it never drops anything out"
    step.eval()
    loss = step(doubled(made.batch(0)), context())
    loss.total.backward()
    assert all(weight.grad is None for weight in frozen.parameters())
    assert all(torch.equal(value, before[name]) for name, value in frozen.state_dict().items())
    made.network.zero_grad()


def test_what_has_weight_0_is_not_computed(made: CaptionerLearner, teacher: str) -> None:
    batch = doubled(made.batch(0))
    paper = {"kind": "progressive", "epochs": 1.0}
    rising = built(made, teacher, weight=paper)
    peak = made.supplies.pace.steps_per_epoch
    assert set(rising(made.network, batch, context(0)).parts) == {"mle", "weight"}
    assert set(rising(made.network, batch, context(1)).parts) == {"mle", *TERMS, "weight"}
    assert set(rising(made.network, batch, context(peak)).parts) == {*TERMS, "weight"}
    assert rising(made.network, batch, context(peak)).parts["weight"] == 1


@pytest.mark.parametrize("targets", ["soft", "hard", "random"])
def test_odd_batches_are_finite(targets: str, made: CaptionerLearner, teacher: str) -> None:
    batch = doubled(made.batch(0))
    alone = part_of(batch, [0])
    text = made.network.text
    one_word = torch.tensor([[[text.start, int(batch.tokens[0, 0, 1]), text.end]]])
    wordless = replace(
        alone, tokens=torch.full((1, 1, 2), text.pad), mask=torch.zeros(1, 1, 2, dtype=torch.bool)
    )
    silent = replace(wordless, whole=Totals(1, 0, 0))
    objective = built(made, teacher, weight=0.5, targets=targets)
    for odd in (
        alone,
        replace(alone, tokens=one_word, mask=torch.ones(1, 1, 3, dtype=torch.bool)),
        wordless,
        silent,
    ):
        loss = objective(made.network, odd, context())
        assert loss.total.isfinite()
        assert all(gradient.isfinite().all() for gradient in gradients(loss, made))


@pytest.mark.parametrize("captioner", ["meshed", "adaptive", "topdown"])
def test_it_works_with_whatever_attends(captioner: str) -> None:
    other = learner("objective.name=unkt", "objective.weight=0.5", captioner=captioner)
    loss = other.step(other.batch(0), context())
    assert set(loss.parts) == {"mle", *TERMS, "weight"}
    loss.total.backward()
    assert all(w.grad is None or w.grad.isfinite().all() for w in other.network.parameters())


# What is refused


def refusal(made: CaptionerLearner, **changes: object) -> TellapartError:
    with pytest.raises(TellapartError) as caught:
        build_unkt(UNKTConfig.model_validate(changes), made.supplies)
    return caught.value


def test_a_captioner_without_attention_is_refused_by_name() -> None:
    error = refusal(learner())
    said = "the objective 'unkt' compares the attention of every layer, and the captioner has none"
    assert error.problem == said
    assert "objective.attention=false" in error.hint
    assert "transformer" in error.hint


def test_without_that_term_it_may_have_none() -> None:
    changes = ("objective.name=unkt", "objective.attention=false", "objective.weight=0.5")
    other = learner(*changes)
    assert set(other.step(other.batch(0), context()).parts) == {"mle", "predictions", "hidden", "weight"}


@pytest.mark.parametrize(
    ("change", "left_out", "compared", "sizes"),
    [
        ("captioner.width=16", (), "hidden", "[(8,), (8,)], its teacher's of [(16,), (16,)]"),
        ("captioner.decoder_layers=1", (), "hidden", "[(8,), (8,)], its teacher's of [(8,)]"),
        (
            "captioner.heads=1",
            ("hidden",),
            "attention",
            "[(2, 81), (2, 81)], its teacher's of [(1, 81), (1, 81)]",
        ),
    ],
)
def test_a_teacher_of_other_sizes_is_refused_with_both_sizes(
    change: str, left_out: tuple[str, ...], compared: str, sizes: str, tmp_path: Path
) -> None:
    folder = saved_copy(learner(change, captioner="transformer"), tmp_path / "teacher")
    student = learner(captioner="transformer")
    error = refusal(student, teacher=str(folder), **dict.fromkeys(left_out, False))
    assert sizes in error.problem
    assert f"objective.{compared}=false" in error.hint


def test_a_teacher_without_what_is_compared_is_refused(tmp_path: Path) -> None:
    folder = saved_copy(learner(), tmp_path / "mrnn")
    changes = ["captioner.name=transformer", *SMALL, "objective.name=unkt", f"objective.teacher={folder}"]
    recipe = load_recipe("mrnn-shapes", changes=[*changes, "objective.hidden=false"])
    both_look = CaptionerLearner(recipe, prepare(recipe, watch=lambda done, total: None))
    with pytest.raises(TellapartError, match="the attention of every layer, and its teacher has none"):
        both_look.step.train()


def test_a_teacher_of_other_words_is_refused(tmp_path: Path) -> None:
    folder = saved_copy(learner("data.min_count=20", captioner="transformer"), tmp_path / "other")
    error = refusal(learner(captioner="transformer"), teacher=str(folder))
    assert "another vocabulary" in error.problem


def test_nothing_to_transfer_is_refused() -> None:
    with pytest.raises(TellapartError, match="that is likelihood alone"):
        learner("objective.name=unkt", *(f"objective.{term}=false" for term in TERMS))
