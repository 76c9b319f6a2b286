"""SMILE: its laws, the paper's own pseudocode, what it costs, and the objective that is made of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.captioners.test_tokenizer_text import TEXTS
from tests.objectives.material import context, doubled, learner
from torch.nn.functional import cross_entropy, pad
from torch.utils._python_dispatch import TorchDispatchMode

import tellapart
from tellapart.captioner_learner import CaptionerLearner
from tellapart.errors import TellapartError
from tellapart.objectives.semipermeable import build_smile, draw_words, random_smile, reverse_smile, smile
from tellapart.objectives.settings.semipermeable import SMILEConfig
from tellapart.objectives.shifting import find_alternatives, shift_first
from tellapart.objectives.tokens import mle
from tellapart.types import Batch, Context

SIZE, PAD, END = 9, 0, 2
SEEDS = st.integers(0, 10_000)
Material = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
Loss = Callable[..., torch.Tensor]


def material(seed: int, *, scale: float = 3.0, captions: tuple[int, ...] = (2, 3)) -> Material:
    """Logits, labels and mask of captions that end, of one sign to six; some are not there at all."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(*captions, 6, SIZE, generator=generator, dtype=torch.float64) * scale
    labels = torch.randint(3, SIZE, (*captions, 6), generator=generator)
    lengths = torch.randint(7, (*captions, 1), generator=generator)
    mask = torch.arange(6) < lengths
    labels = labels.masked_fill(torch.arange(6) == lengths - 1, END).masked_fill(~mask, PAD)
    return logits.requires_grad_(), labels, mask


def gradient(losses: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    return torch.autograd.grad(losses.sum(), logits, retain_graph=True)[0]


def held(labels: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Which words a caption holds, by place: (..., t, v)."""
    words = torch.zeros(*labels.shape[:-1], SIZE + 1, dtype=torch.bool)
    words.scatter_(-1, labels.masked_fill(~mask, SIZE), True)  # what is not there goes into a row of its own
    return words[..., :-1].unsqueeze(-2).expand(*labels.shape, SIZE)


@given(SEEDS)
@settings(max_examples=30)
def test_it_never_exceeds_likelihood_and_equals_it_at_the_first_token(seed: int) -> None:
    logits, labels, mask = material(seed)
    found, full = smile(logits, labels, mask), mle(logits, labels, mask)
    assert (found <= full + 1e-12).all()
    assert (found >= 0).all()
    assert torch.equal(found[..., 0], full[..., 0])
    free = smile(logits, labels, mask, first="none")
    assert (free[..., 0] <= full[..., 0]).all()
    torch.testing.assert_close(free[..., 1:], found[..., 1:])
    assert (found[~mask] == 0).all()


@given(SEEDS)
@settings(max_examples=30)
def test_no_gradient_leaves_the_subset_and_padding_is_in_none(seed: int) -> None:
    logits, labels, mask = material(seed)
    inside = held(labels, mask)
    assert not inside[..., PAD].any()
    found = gradient(smile(logits, labels, mask), logits)
    assert (found[..., 1:, :][~inside[..., 1:, :]] == 0).all()
    assert (gradient(smile(logits, labels, mask, first="none"), logits)[~inside] == 0).all()
    several = (inside & mask.unsqueeze(-1)).sum(-1) > 1
    several[..., 0] = False
    assert (found[inside & several.unsqueeze(-1)] != 0).all(), "every word of the caption competes"
    assert (found[~mask] == 0).all()


@given(SEEDS, st.sampled_from(["mle", "none"]))
@settings(max_examples=30)
def test_it_is_the_papers_algorithm_1(seed: int, first: str) -> None:
    logits, labels, mask = material(seed)
    allowed = held(labels, mask).clone()
    if first == "mle":
        allowed[..., 0, :] = True
    if mask.any():
        masked = logits.masked_fill(~allowed, -torch.inf)[mask]
        expected = cross_entropy(masked, labels[mask])
        found = smile(logits, labels, mask, first=first).sum() / mask.sum()  # type: ignore[arg-type]
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(gradient(found, logits), gradient(expected, logits))


@given(SEEDS)
@settings(max_examples=30)
def test_subset_and_reverse_share_the_label_and_together_cover_all_words(seed: int) -> None:
    logits, labels, mask = material(seed)
    own = gradient(smile(logits, labels, mask, first="none"), logits) != 0
    reverse = gradient(reverse_smile(logits, labels, mask, first="none", padding=PAD), logits) != 0
    alone = (held(labels, mask).sum(-1) == 1) & mask  # a label without rivals has no gradient: it is certain
    label = torch.zeros_like(own).scatter_(-1, labels.unsqueeze(-1), True)
    counts = mask & ~alone
    assert torch.equal((own & reverse)[counts], label[counts])
    covered = (own | reverse)[counts]
    assert covered[:, 1:].all()
    assert not covered[:, PAD].any()
    # The three sums of probabilities are those of the whole vocabulary without padding.
    p = logits.detach().masked_fill(torch.arange(SIZE) == PAD, -torch.inf).softmax(-1)
    chosen = p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    mass_own = chosen / (-smile(logits, labels, mask, first="none")).exp()
    mass_reverse = chosen / (-reverse_smile(logits, labels, mask, first="none", padding=PAD)).exp()
    torch.testing.assert_close((mass_own + mass_reverse - chosen)[mask], torch.ones_like(chosen)[mask])


def test_a_caption_that_was_cut_still_competes_with_the_end() -> None:
    logits, labels, mask = material(1, captions=(1,))
    labels[:], mask[:] = torch.tensor([3, 4, 5, 6, 7, 8]), True
    cut = gradient(smile(logits, labels, mask, ends=(END,)), logits)
    assert (cut[0, 1:, END] != 0).all()
    assert (gradient(smile(logits, labels, mask), logits)[0, 1:, END] == 0).all()
    labels[0, -1] = END
    torch.testing.assert_close(smile(logits, labels, mask, ends=(END,)), smile(logits, labels, mask))
    nothing = torch.zeros_like(mask)
    assert (smile(logits, labels, nothing, ends=(END,)) == 0).all()


def test_the_first_label_behind_a_prompt_is_the_one_that_competes_with_all() -> None:
    logits, labels, _ = material(2, captions=(1,))
    mask = torch.tensor([[False, False, True, True, True, False]])
    found, full = smile(logits, labels, mask), mle(logits, labels, mask)
    assert torch.equal(found[0, 2], full[0, 2])
    assert (found[0, 3:5] < full[0, 3:5]).all()
    torch.testing.assert_close(found[:, 2:5], smile(logits[:, 2:5], labels[:, 2:5], mask[:, 2:5]))


@pytest.mark.parametrize("scale", [1e4, -1e4])
@pytest.mark.parametrize("loss", [smile, reverse_smile])
@pytest.mark.parametrize("length", [1, 2, 6])
def test_it_is_finite_for_extreme_logits_and_one_word(loss: Loss, scale: float, length: int) -> None:
    for word in range(SIZE):
        logits = torch.zeros(1, 1, length, SIZE)
        logits[..., word] = scale
        logits.requires_grad_()
        labels = torch.arange(3, 3 + length).view(1, 1, length).clamp(max=SIZE - 1)
        for first in ("mle", "none"):
            found = loss(logits, labels, torch.ones_like(labels, dtype=torch.bool), first=first)
            assert found.isfinite().all()
            assert gradient(found, logits).isfinite().all()


@pytest.mark.parametrize("loss", [mle, smile, reverse_smile])
@pytest.mark.parametrize("autocast", [False, True])
def test_half_precision_loses_nothing_but_the_digits_of_the_logits(loss: Loss, autocast: bool) -> None:
    logits, labels, mask = material(8)
    rounded = logits.detach().bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        found = loss(rounded, labels, mask)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, loss(rounded.float(), labels, mask))


def test_a_caption_of_all_words_there_are_leaves_nothing_to_reverse() -> None:
    logits = torch.randn(1, SIZE, SIZE, requires_grad=True)
    labels, mask = torch.arange(SIZE).unsqueeze(0), torch.ones(1, SIZE, dtype=torch.bool)
    found = reverse_smile(logits, labels, mask, first="none")
    torch.testing.assert_close(found, torch.zeros_like(found))
    assert gradient(found, logits).isfinite().all()


def test_random_words_are_as_many_as_the_captions_own_and_never_padding() -> None:
    _, labels, mask = material(5, captions=(4, 3))
    sources = [context().of_image(row) for row in range(4)]
    words, counted = draw_words(labels, mask, sources, size=SIZE, padding=PAD)
    for drawn, flags, own, there in zip(
        words.flatten(0, 1), counted.flatten(0, 1), labels.flatten(0, 1), mask.flatten(0, 1), strict=True
    ):
        assert len(set(drawn[flags].tolist())) == int(flags.sum()) == len(set(own[there].tolist()))
    assert (words[counted] != PAD).all()
    assert set(words[counted].tolist()) == set(range(SIZE)) - {PAD}
    turned = draw_words(
        pad(labels.flip(0), (0, 2, 0, 1)),
        pad(mask.flip(0), (0, 2, 0, 1)),
        [context().of_image(row) for row in (3, 2, 1, 0)],
        size=SIZE,
        padding=PAD,
    )
    assert torch.equal(turned[0][:, :3, :6].flip(0), words)
    assert torch.equal(turned[1][:, :3, :6].flip(0), counted)
    other = [context(step=1).of_image(row) for row in range(4)]
    assert not torch.equal(draw_words(labels, mask, other, size=SIZE, padding=PAD)[0], words)


def test_random_words_and_the_label_are_all_that_competes() -> None:
    logits, labels, mask = material(6)
    sources = [context().of_image(row) for row in range(2)]
    words, counted = draw_words(labels, mask, sources, size=SIZE, padding=PAD)
    found = random_smile(logits, labels, mask, words=words, counted=counted, first="none")
    touched = gradient(found, logits) != 0
    for image, caption, place in mask.nonzero().tolist():
        subset = set(words[image, caption][counted[image, caption]].tolist()) | {
            int(labels[image, caption, place])
        }
        expected = subset if len(subset) > 1 else set()
        assert set(touched[image, caption, place].nonzero().flatten().tolist()) == expected
    assert (found[~mask] == 0).all()
    full = random_smile(logits, labels, mask, words=words, counted=counted)
    assert torch.equal(full[..., 0], mle(logits, labels, mask)[..., 0])


class Counting(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """How many numbers operations write."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.written = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        found = func(*args, **(kwargs or {}))
        inputs = {arg.untyped_storage().data_ptr() for arg in args if isinstance(arg, torch.Tensor)}
        for tensor in found if isinstance(found, tuple | list) else [found]:
            if isinstance(tensor, torch.Tensor) and tensor.untyped_storage().data_ptr() not in inputs:
                self.written += tensor.untyped_storage().nbytes() // tensor.element_size()
        return found


def written_and_kept(loss: Loss, logits: torch.Tensor, labels: torch.Tensor) -> tuple[int, int]:
    """Numbers written forwards, and numbers kept for the way back besides the logits themselves."""
    mask = torch.ones_like(labels, dtype=torch.bool)
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes() // tensor.element_size()
        return tensor

    with Counting() as count, torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        total = loss(logits, labels, mask).sum()
    kept.pop(logits.untyped_storage().data_ptr(), None)
    assert total.requires_grad
    return count.written, sum(kept.values())


def test_thirty_thousand_words_cost_less_than_likelihood() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 2, 12, 30_000, generator=generator, requires_grad=True)
    labels = torch.randint(30_000, (2, 2, 12), generator=generator)
    written, kept = written_and_kept(smile, logits, labels)
    full_written, full_kept = written_and_kept(mle, logits, labels)
    assert full_kept >= logits.numel()
    assert written < full_written / 2
    assert kept < full_kept / 4, "only first places hold all words"
    none = written_and_kept(lambda *some: smile(*some, first="none"), logits, labels)
    assert max(none) < logits.numel() / 50
    reverse_written, reverse_kept = written_and_kept(reverse_smile, logits, labels)
    assert reverse_kept < 1.2 * full_kept
    assert reverse_written < 2.5 * full_written


def test_it_is_found_from_the_package_and_costs_no_torch_before() -> None:
    logits, labels, mask = material(7)
    torch.testing.assert_close(tellapart.objectives.smile(logits, labels, mask), smile(logits, labels, mask))
    torch.testing.assert_close(smile(logits[0], labels[0], mask[0]), smile(logits, labels, mask)[0])
    code = (
        "import sys, tellapart; names = dir(tellapart.objectives); before = 'torch' in sys.modules; "
        "print(names, before, callable(tellapart.objectives.smile))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['mle', 'smile', 'smile_loss'] False True\n"
    with pytest.raises(AttributeError, match="no attribute 'smirk'"):
        _ = tellapart.objectives.smirk


@cache
def made() -> CaptionerLearner:
    some = learner("captioner.dropout=0.0")
    some.network.double().eval()
    return some


def pieces_of(batch: Batch) -> Material:
    logits = made().network.predict(batch.vision, batch.tokens[:, :, :-1]).logits
    return logits, batch.tokens[:, :, 1:], batch.mask[:, :, 1:]


def mean(losses: torch.Tensor, mask: torch.Tensor) -> float:
    return losses.sum().item() / int(mask.sum())


def loss_of(context: Context = context(), **chosen: object) -> dict[str, float]:  # noqa: B008 - frozen
    objective = build_smile(SMILEConfig.model_validate(chosen), made().supplies)
    loss = objective(made().network, doubled(made().batch(0)), context)
    assert loss.total.item() == pytest.approx(sum(loss.parts.values()))
    return dict(loss.parts)


def test_the_objective_is_a_mean_over_tokens_and_mixes_by_equation_4() -> None:
    logits, labels, mask = pieces_of(doubled(made().batch(0)))
    own, full = mean(smile(logits, labels, mask), mask), mean(mle(logits, labels, mask), mask)
    assert loss_of() == pytest.approx({"smile": own})
    assert loss_of(mle_share=0.25) == pytest.approx({"mle": 0.25 * full, "smile": 0.75 * own})
    assert loss_of(mle_share=1.0) == pytest.approx({"mle": full})
    smoothed = mean(mle(logits, labels, mask, label_smoothing=0.1), mask)
    mixed = loss_of(mle_share=0.25, compat="authors")
    assert mixed == pytest.approx({"mle": 0.25 * smoothed, "smile": 0.75 * own})
    assert loss_of(first="none")["smile"] == pytest.approx(
        mean(smile(logits, labels, mask, first="none"), mask)
    )
    for share in (-0.1, 1.1):
        with pytest.raises(ValidationError):
            SMILEConfig(mle_share=share)


def test_the_objective_takes_the_subset_that_is_asked_for() -> None:
    logits, labels, mask = pieces_of(doubled(made().batch(0)))
    text = made().network.text
    reverse = mean(reverse_smile(logits, labels, mask, padding=text.pad), mask)
    assert loss_of(subset="reverse")["smile"] == pytest.approx(reverse)
    sources = [context().of_image(row) for row in made().batch(0).rows]
    words, counted = draw_words(labels, mask, sources, size=len(text), padding=text.pad)
    drawn = mean(random_smile(logits, labels, mask, words=words, counted=counted), mask)
    assert loss_of(subset="random")["smile"] == pytest.approx(drawn)
    assert loss_of(context(step=1), subset="random")["smile"] != pytest.approx(drawn)


def test_a_vocabulary_of_words_shifts_the_first_label_to_the_unknown_word() -> None:
    text = made().network.text
    batch = doubled(made().batch(0))
    logits, labels, mask = pieces_of(batch)
    shifted = labels.clone()
    shifted[:, :, 0] = torch.where(mask[:, :, 0], text.vocabulary.unknown, labels[:, :, 0])  # type: ignore[attr-defined]
    assert loss_of(first="shift")["smile"] == pytest.approx(
        mean(smile(logits, shifted, mask, first="none"), mask)
    )
    empty = torch.tensor([[[text.end]]])
    alternatives = find_alternatives(text, "paper")
    there = torch.ones(1, 1, 1, dtype=torch.bool)
    assert shift_first(torch.tensor([[[text.start]]]), empty, there, alternatives)[1].item() == text.end


@pytest.mark.parametrize("compat", ["paper", "authors"])
def test_word_pieces_shift_where_they_are_read_and_where_they_are_expected(compat: Any) -> None:
    text = TEXTS["bert"]
    spelled = text.tokenizer.get_vocab()
    alternatives = find_alternatives(text, compat)
    caption = text.encode("a dog")
    tokens = torch.tensor([[caption, [text.pad] * len(caption)]])
    mask = torch.tensor([[[True] * (len(caption) - 1), [False] * (len(caption) - 1)]])
    given, labels = shift_first(tokens[:, :, :-1], tokens[:, :, 1:], mask, alternatives)
    assert caption[1] == spelled["a"]
    assert labels[0, 0].tolist() == [spelled["##a"], *caption[2:]]
    assert given[0, 0].tolist() == [text.start, spelled["##a"], *caption[2:-1]]
    assert torch.equal(labels[0, 1], tokens[0, 1, 1:])
    assert text.decode([*given[0, 0].tolist(), text.end]) == "a dog", "it is read as the word it stands for"
    without = next(word for word in spelled if f"##{word}" not in spelled and word.isalpha())
    expected = spelled[without] if compat == "paper" else spelled["[UNK]"]
    assert alternatives.tokens[spelled[without]] == expected
    assert alternatives.tokens[text.end] == text.end


def test_shifting_is_refused_where_no_piece_continues_a_word() -> None:
    with pytest.raises(TellapartError, match="no pieces that continue a word") as caught:
        find_alternatives(TEXTS["gpt2"], "paper")
    assert 'objective.first to "mle"' in caught.value.hint


@pytest.mark.parametrize("subset", ["own", "reverse", "random"])
@pytest.mark.parametrize("first", ["mle", "shift", "none"])
def test_padding_shares_and_missing_captions_change_nothing(subset: str, first: str) -> None:
    config = SMILEConfig.model_validate({"subset": subset, "first": first, "mle_share": 0.3})
    objective = build_smile(config, made().supplies)
    batch = doubled(made().batch(0))
    whole = objective(made().network, batch, context())
    longer = replace(
        batch,
        tokens=pad(batch.tokens, (0, 2, 0, 1), value=made().network.text.pad),
        mask=pad(batch.mask, (0, 2, 0, 1)),
    )
    assert objective(made().network, longer, context()).parts == pytest.approx(whole.parts, rel=1e-9)
    added: dict[str, float] = {}
    for rows in ([0], [1, 2, 3]):
        share = Batch(
            tuple(batch.image_ids[row] for row in rows),
            batch.vision.select(torch.tensor(rows)),
            batch.tokens[rows],
            batch.mask[rows],
            tuple(batch.rows[row] for row in rows),
            tuple(batch.places[row] for row in rows),
            batch.totals(),
        )
        for name, value in objective(made().network, share, context()).parts.items():
            added[name] = added.get(name, 0) + value
    assert added == pytest.approx(whole.parts, rel=1e-9)
