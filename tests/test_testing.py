"""The published contract bites: a captioner with one flaw is told which laws it breaks."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from tellapart.captioners.parts import CAPTIONERS
from tellapart.captioners.settings.kinds import CaptionerPart
from tellapart.errors import TellapartError
from tellapart.registry import Config
from tellapart.testing import LAWS, check_built, check_captioner, check_law, prepare, prepare_built
from tellapart.testing.subject import TEXT
from tellapart.types import Captioner, Prediction, Text, Vision


@dataclass(frozen=True)
class Remembered:
    words: Tensor  # (r, d)
    grid: Tensor  # (r, n, d)

    def select(self, rows: Tensor) -> Remembered:
        return replace(self, words=self.words[rows], grid=self.grid[rows])


class Sound(Captioner[Remembered]):
    """A small recurrent captioner with attention that keeps every law; the others each have one flaw."""

    text: Text
    needs = frozenset({"grid"})

    def __init__(self) -> None:
        super().__init__()
        self.text = TEXT
        self.embed = nn.Embedding(len(TEXT), 6)
        self.recur = nn.Linear(6, 6)
        self.from_grid = nn.Linear(5, 6)
        self.output = nn.Linear(6, len(TEXT))

    def predict(self, vision: Vision, tokens: Tensor) -> Prediction:
        images, captions, _ = tokens.shape
        first, rows = self.begin(vision), torch.arange(images).repeat_interleave(captions)
        state = Remembered(first.words[rows], first.grid[rows])
        logits, hidden, attention = [], [], []
        for token in tokens.flatten(0, 1).unbind(1):
            state = self.hear(token, state)
            found, weights = self.look(state)
            logits.append(found)
            hidden.append(state.words)
            attention.append(weights)
        by_image = [
            torch.stack(each, 1).view(images, captions, len(each), -1) for each in (logits, hidden, attention)
        ]
        return Prediction(by_image[0], (by_image[1],), (by_image[2].unsqueeze(2),))

    def begin(self, vision: Vision) -> Remembered:
        return Remembered(vision.grid.new_zeros(len(vision), 6), self.from_grid(vision.grid))

    def step(self, token: Tensor, state: Remembered) -> tuple[Tensor, Remembered]:
        state = self.hear(token, state)
        return self.look(state)[0], state

    def hear(self, token: Tensor, state: Remembered) -> Remembered:
        return replace(state, words=torch.tanh(self.recur(state.words) + self.embed(token)))

    def look(self, state: Remembered) -> tuple[Tensor, Tensor]:
        weights = (state.grid @ state.words.unsqueeze(2)).squeeze(2).softmax(-1)
        seen = (weights.unsqueeze(1) @ state.grid).squeeze(1)
        return self.output(state.words + seen), weights


class DropoutInEvaluation(Sound):
    def look(self, state: Remembered) -> tuple[Tensor, Tensor]:
        logits, weights = super().look(state)
        return dropout(logits, 0.5, training=True), weights


class AttentionNotNormalised(Sound):
    def predict(self, vision: Vision, tokens: Tensor) -> Prediction:
        right = super().predict(vision, tokens)
        return replace(right, attention=(right.attention[0] * 1.001,))


class AttentionBelowZero(Sound):
    def predict(self, vision: Vision, tokens: Tensor) -> Prediction:
        right = super().predict(vision, tokens)
        shift = torch.tensor([1.0, -1.0] + [0.0] * 7, dtype=torch.float64)
        return replace(right, attention=(right.attention[0] + shift,))


class AttentionWithoutHeads(Sound):
    def predict(self, vision: Vision, tokens: Tensor) -> Prediction:
        right = super().predict(vision, tokens)
        return replace(right, attention=(right.attention[0].squeeze(2),))


class HiddenOfOneCaption(Sound):
    def predict(self, vision: Vision, tokens: Tensor) -> Prediction:
        right = super().predict(vision, tokens)
        return replace(right, hidden=(right.hidden[0][:, :1],))


class LogitsOfOtherWords(Sound):
    def step(self, token: Tensor, state: Remembered) -> tuple[Tensor, Remembered]:
        logits, state = super().step(token, state)
        return logits[:, 1:], state


class StepsOnItsOwn(Sound):
    def step(self, token: Tensor, state: Remembered) -> tuple[Tensor, Remembered]:
        logits, state = super().step(token, state)
        return logits * 1.001, state


class PaddingCounts(Sound):
    def predict(self, vision: Vision, tokens: Tensor) -> Prediction:
        right = super().predict(vision, tokens)
        pads = (tokens == TEXT.pad).sum(2)[:, :, None, None]
        return replace(right, logits=right.logits * (1 + 0.1 * pads))


class LengthCounts(Sound):
    def predict(self, vision: Vision, tokens: Tensor) -> Prediction:
        right = super().predict(vision, tokens)
        return replace(right, logits=right.logits * (1 + 0.01 * (tokens.size(2) == 3)))


class BatchStatistics(Sound):
    def begin(self, vision: Vision) -> Remembered:
        grid = self.from_grid(vision.grid)
        return replace(super().begin(vision), grid=grid - grid.mean(0))


class SecondImageIsSpecial(Sound):
    def predict(self, vision: Vision, tokens: Tensor) -> Prediction:
        right = super().predict(vision, tokens)
        scale = torch.where(torch.arange(len(vision)) == 1, 1.001, 1)
        return replace(right, logits=right.logits * scale[:, None, None, None])


class CaptionsMix(Sound):
    def predict(self, vision: Vision, tokens: Tensor) -> Prediction:
        right = super().predict(vision, tokens)
        return replace(right, logits=right.logits + 0.01 * right.logits.mean(1, keepdim=True))


class Stubborn(Remembered):
    def select(self, rows: Tensor) -> Remembered:
        return self


class SelectDoesNothing(Sound):
    def begin(self, vision: Vision) -> Remembered:
        right = super().begin(vision)
        return Stubborn(right.words, right.grid)


class KeepsGridOrder(Remembered):
    def select(self, rows: Tensor) -> Remembered:
        if len(rows) == len(self.words):
            return replace(self, words=self.words[rows])
        return super().select(rows)


class SelectForgetsTheImage(Sound):
    def begin(self, vision: Vision) -> Remembered:
        right = super().begin(vision)
        return KeepsGridOrder(right.words, right.grid)


class Fading(Remembered):
    def select(self, rows: Tensor) -> Remembered:
        return replace(self, words=self.words[rows] * 0.9, grid=self.grid[rows])


class SelectFades(Sound):
    def begin(self, vision: Vision) -> Remembered:
        right = super().begin(vision)
        return Fading(right.words, right.grid)


class StateLeaks(Sound):
    def step(self, token: Tensor, state: Remembered) -> tuple[Tensor, Remembered]:
        state.words.copy_(self.hear(token, state).words)
        return self.look(state)[0], state


class LogitsChangeLater(Sound):
    """Writes the logits of every step of as many rows into the same place."""

    place: Tensor | None = None

    def step(self, token: Tensor, state: Remembered) -> tuple[Tensor, Remembered]:
        logits, state = super().step(token, state)
        if self.place is None or self.place.shape != logits.shape:
            self.place = torch.empty_like(logits)
        return self.place.copy_(logits), state


class ImageIgnored(Sound):
    def begin(self, vision: Vision) -> Remembered:
        right = super().begin(vision)
        return replace(right, grid=torch.ones_like(right.grid))


class ReadsMoreThanItSays(Sound):
    def begin(self, vision: Vision) -> Remembered:
        right = super().begin(vision)
        return replace(right, grid=right.grid + vision.pooled.sum(1)[:, None, None])


class NeedsWhatIsNotThere(Sound):
    needs = frozenset({"grid", "regions"})


class UnreachableParameter(Sound):
    def __init__(self) -> None:
        super().__init__()
        self.unused = nn.Parameter(torch.ones(3))


class GradientOutOfBounds(Sound):
    def look(self, state: Remembered) -> tuple[Tensor, Tensor]:
        logits, weights = super().look(state)
        return logits + (self.recur.bias * 0).sum().sqrt(), weights


class StartsAtZero(Sound):
    """As adapters of low rank do: the second factor is 0, so the first has no gradient at the very start."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = nn.Linear(6, 2, bias=False), nn.Linear(2, 6, bias=False)
        nn.init.zeros_(self.up.weight)

    def hear(self, token: Tensor, state: Remembered) -> Remembered:
        right = super().hear(token, state)
        return replace(right, words=right.words + self.up(self.down(right.words)))


class GroupsMix(Sound):
    def predict_each(self, vision: Vision, parts: Sequence[Tensor]) -> list[Prediction]:
        first, *others = super().predict_each(vision, parts)
        return [first, *(replace(other, logits=other.logits + first.logits.mean()) for other in others)]


class NothingToTrain(Sound):
    def __init__(self) -> None:
        super().__init__()
        self.requires_grad_(False)


# Short for the names of the laws, in their order.
SHAPES, ANSWERS, STEPS, PADDING, ORDER, GROUPING, GROUPS, CONTINUATIONS, SELECT, READS = list(LAWS)[:10]
IMAGE, GRADIENTS, GREEDY, PROBABILITY, SAMPLING, SAVING = list(LAWS)[10:]


@pytest.fixture(scope="module")
def vision() -> Vision:
    return prepare("mrnn").vision


def build(kind: type[Sound]) -> Sound:
    with torch.random.fork_rng():
        torch.manual_seed(4)
        return kind()


def broken(captioner: Sound, vision: Vision) -> list[str]:
    subject = prepare_built(captioner, vision)
    found = []
    for law in LAWS:
        try:
            check_law(law, subject)
        except AssertionError as error:
            found.append(str(error).partition(": ")[0])
    return found


@pytest.mark.parametrize("kind", [Sound, StartsAtZero])
def test_a_sound_captioner_breaks_no_law(kind: type[Sound], vision: Vision) -> None:
    assert broken(build(kind), vision) == []
    check_built(build(kind), vision)


# A wrong shape of Prediction is noticed even earlier where shapes are checked at run time, as in these tests.
@pytest.mark.parametrize(
    ("kind", "first", "others", "said"),
    [
        (DropoutInEvaluation, ANSWERS, {STEPS, ORDER, PROBABILITY}, "is dropout on in eval mode?"),
        (AttentionNotNormalised, SHAPES, set(), r"rows of attention\[0\] do not sum to 1.* is 1.0e-03"),
        (AttentionBelowZero, SHAPES, set(), r"attention\[0\] has weights below 0"),
        (AttentionWithoutHeads, SHAPES, set(), r"(attention\[0\] is not \(b, k, h, t, n\)|TypeCheckError)"),
        (HiddenOfOneCaption, SHAPES, set(), r"(hidden\[0\].*: shape \(4, 1, 6, 6\) instead|TypeCheckError)"),
        (LogitsOfOtherWords, SHAPES, {STEPS}, "the logits of step: shape"),
        (StepsOnItsOwn, STEPS, {PROBABILITY, SAMPLING}, "other logits than predict"),
        (PaddingCounts, PADDING, {SAMPLING}, "what stands behind a word changes the logits before it"),
        (LengthCounts, PADDING, set(), "the length to which captions are padded"),
        (BatchStatistics, ORDER, {SAMPLING}, "an image alone has other logits than in a batch"),
        (SecondImageIsSpecial, STEPS, {ORDER}, "other logits than predict"),
        (CaptionsMix, STEPS, {PADDING, GROUPING}, "other logits than predict"),
        (GroupsMix, GROUPS, set(), "captions have other logits where further groups"),
        (SelectDoesNothing, STEPS, {SELECT}, "Error: "),
        (SelectForgetsTheImage, SELECT, set(), "before the first token, select of rows reversed"),
        (SelectFades, SELECT, {GREEDY, PROBABILITY}, "after one token, select of every row"),
        (StateLeaks, CONTINUATIONS, {SELECT}, "two continuations of one state disturb each other"),
        (LogitsChangeLater, STEPS, set(), "other logits than predict"),
        (ImageIgnored, IMAGE, {GRADIENTS}, "it needs 'grid', but another image's changes nothing"),
        (ReadsMoreThanItSays, READS, set(), "that it says it does not need changes the logits"),
        (NeedsWhatIsNotThere, READS, set(), "Vision has no part called 'regions'"),
        (UnreachableParameter, GRADIENTS, set(), "unused gets no gradient"),
        (GradientOutOfBounds, GRADIENTS, set(), "the gradient of recur.bias is not finite"),
        (NothingToTrain, GRADIENTS, set(), "nothing in it can be trained"),
    ],
)
def test_a_flaw_is_named(kind: type[Sound], first: str, others: set[str], said: str, vision: Vision) -> None:
    captioner = build(kind)
    found = broken(captioner, vision)
    assert found[0] == first
    assert others <= set(found)
    with pytest.raises(AssertionError, match=f"^{first}: .*{said}"):
        check_built(captioner, vision)


def test_every_law_is_broken_by_someone(vision: Vision) -> None:
    kinds: list[type[Sound]] = [
        DropoutInEvaluation,
        AttentionNotNormalised,
        ImageIgnored,
        StateLeaks,
        SelectFades,
    ]
    caught = set().union(*(broken(build(kind), vision) for kind in kinds))
    assert caught == set(LAWS) - {SAVING}


def test_what_is_not_kept_is_found_out() -> None:
    subject = prepare("mrnn")
    check_law(SAVING, subject)
    output = subject.captioner.get_submodule("output")
    # What a hook does is in no folder.
    output.register_forward_hook(lambda _module, _given, logits: logits * 3)
    with pytest.raises(AssertionError, match=f"^{SAVING}: the captioner read"):
        check_law(SAVING, subject)
    assert subject.settings is not None
    other = replace(subject, settings=subject.settings.model_copy(update={"fingerprint": "another"}))
    with pytest.raises(AssertionError, match=f"^{SAVING}: TellapartError: .*not the vocabulary"):
        check_law(SAVING, other)


def test_the_captioner_at_hand_stays_as_it_is(vision: Vision) -> None:
    captioner = build(Sound).train()
    before, drawn = copy.deepcopy(captioner.state_dict()), torch.random.get_rng_state()
    check_built(captioner, vision)
    check_captioner("mrnn")
    assert captioner.training
    assert all(torch.equal(before[name], weight) for name, weight in captioner.state_dict().items())
    assert all(weight.dtype == torch.float32 and weight.grad is None for weight in captioner.parameters())
    assert torch.equal(drawn, torch.random.get_rng_state())


def test_a_tolerance_can_be_given(vision: Vision) -> None:
    with pytest.raises(AssertionError, match=STEPS):
        check_built(build(StepsOnItsOwn), vision)
    check_built(build(StepsOnItsOwn), vision, tolerance=0.1)


def test_what_cannot_be_checked_is_said(vision: Vision, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TellapartError, match="at least 3 pictures, here are 2"):
        check_built(build(Sound), vision.select(torch.arange(2)))
    with pytest.raises(TellapartError, match="'mrnn' has no preset called 'teeny'"):
        check_captioner("mrnn", preset="teeny")
    with pytest.raises(TellapartError, match="no captioner is called 'mrn'"):
        check_captioner("mrn")
    part = CaptionerPart("looker", "", Config, "nowhere:build", own_encoder=lambda _config: "its-own")
    monkeypatch.setitem(vars(CAPTIONERS).setdefault("_all", dict(CAPTIONERS._all)), "looker", part)
    with pytest.raises(TellapartError, match="'looker' brings its own encoder") as caught:
        check_captioner("looker")
    assert "check_built" in caught.value.hint
    large = CaptionerPart("large", "", Config, "nowhere:build")
    monkeypatch.setitem(vars(CAPTIONERS)["_all"], "large", large)
    with pytest.raises(TellapartError, match="'large' has no preset called 'tiny'") as caught:
        check_captioner("large")
    assert 'preset=""' in caught.value.hint


def test_no_test_framework_is_needed() -> None:
    code = "import sys, tellapart.testing; print({'pytest', 'hypothesis'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
