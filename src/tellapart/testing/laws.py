"""The laws that every captioner keeps, by name; a broken one raises an AssertionError."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

import torch
from torch import Tensor

from tellapart.arrays import Float, Int
from tellapart.captioners.folder import SavedCaptioner, load_captioner, save_captioner
from tellapart.decoding.sampling import Sampling, sample
from tellapart.decoding.search import beam, greedy
from tellapart.testing.subject import LONGEST, Subject, cast
from tellapart.types import AnyCaptioner, Decoded, State, Vision

CAPTIONS, LENGTH = 2, 6  # of each image, and tokens of each


def _answers_repeat(subject: Subject) -> None:
    captioner, vision, tokens = subject.captioner, subject.vision, _captions(subject)
    once, again = (captioner.predict(vision, tokens).logits for _ in range(2))
    _require(torch.equal(once, again), "predict gives other logits each time: is dropout on in eval mode?")
    first, second = (_follow(captioner, captioner.begin(vision), tokens[:, 0])[0] for _ in range(2))
    _require(torch.equal(first, second), "step gives other logits each time: is dropout on in eval mode?")


def _shapes(subject: Subject) -> None:
    captioner, vision, tokens = subject.captioner, subject.vision, _captions(subject)
    prediction, places = captioner.predict(vision, tokens), tuple(tokens.shape)
    _require_shape("the logits of predict", prediction.logits, (*places, len(captioner.text)))
    _require(bool(prediction.logits.isfinite().all()), "some logits are not finite numbers")
    logits, state = captioner.step(tokens[:, 0, 0], captioner.begin(vision))
    _require_shape("the logits of step", logits, (len(vision), len(captioner.text)))
    _require(isinstance(state, State), "the state has no select")
    for layer, hidden in enumerate(prediction.hidden):
        _require_shape(f"hidden[{layer}], (b, k, t, d)", hidden, (*places, hidden.size(-1)))
    for layer, attention in enumerate(prediction.attention):
        _require(attention.dim() == 5, f"attention[{layer}] is not (b, k, h, t, n) but {attention.shape}")
        expected = (*places[:2], attention.size(2), places[2], attention.size(4))
        _require_shape(f"attention[{layer}], (b, k, h, t, n)", attention, expected)
        _require(bool((attention >= 0).all()), f"attention[{layer}] has weights below 0")
        sums = attention.sum(-1)
        _require_equal(
            sums, torch.ones_like(sums), subject, f"the rows of attention[{layer}] do not sum to 1"
        )


def _predict_is_repeated_step(subject: Subject) -> None:
    captioner, vision, tokens = subject.captioner, subject.vision, _captions(subject)
    rows = torch.arange(len(vision)).repeat_interleave(CAPTIONS)
    logits, _ = _follow(captioner, captioner.begin(vision).select(rows), tokens.flatten(0, 1))
    whole = captioner.predict(vision, tokens).logits.flatten(0, 1)
    _require_equal(logits, whole, subject, "steps, one after the other, give other logits than predict")


def _padding(subject: Subject) -> None:
    captioner, vision, tokens = subject.captioner, subject.vision, _captions(subject)
    whole = captioner.predict(vision, tokens).logits
    padded = tokens.clone()
    padded[:, 0, 3], padded[:, 0, 4:] = captioner.text.end, captioner.text.pad
    found = captioner.predict(vision, padded).logits
    what = "what stands behind a word changes the logits before it"
    _require_equal(found[:, 0, :3], whole[:, 0, :3], subject, what)
    what = "the padding of one caption changes another caption of its image"
    _require_equal(found[:, 1], whole[:, 1], subject, what)
    what = "the length to which captions are padded changes their logits"
    _require_equal(captioner.predict(vision, tokens[:, :, :3]).logits, whole[:, :, :3], subject, what)


def _batch_order(subject: Subject) -> None:
    captioner, vision, tokens = subject.captioner, subject.vision, _captions(subject)
    whole = captioner.predict(vision, tokens).logits
    for order in (torch.arange(len(vision)).flip(0), torch.arange(len(vision)).roll(1)):
        found = captioner.predict(vision.select(order), tokens[order]).logits
        _require_equal(found, whole[order], subject, "other places in the batch change the logits")
    for row in range(len(vision)):
        found = captioner.predict(vision.select(torch.tensor([row])), tokens[row : row + 1]).logits
        _require_equal(found[0], whole[row], subject, "an image alone has other logits than in a batch")


def _grouping(subject: Subject) -> None:
    captioner, vision, tokens = subject.captioner, subject.vision, _captions(subject)
    whole = captioner.predict(vision, tokens).logits
    swapped = captioner.predict(vision, tokens.flip(1)).logits
    _require_equal(swapped, whole.flip(1), subject, "the order of an image's captions changes their logits")
    alone = vision.select(torch.arange(len(vision)).repeat_interleave(CAPTIONS))
    found = captioner.predict(alone, tokens.flatten(0, 1).unsqueeze(1)).logits
    what = "an image once for all its captions gives other logits than once for each"
    _require_equal(found.squeeze(1), whole.flatten(0, 1), subject, what)


def _groups_of_unlike_length(subject: Subject) -> None:
    captioner, vision, tokens = subject.captioner, subject.vision, _captions(subject)
    parts = [tokens[:, :1], tokens[:, 1:, :4]]
    for part, found in zip(parts, captioner.predict_each(vision, parts), strict=True):
        what = "captions have other logits where further groups of captions are read with them"
        _require_equal(found.logits, captioner.predict(vision, part).logits, subject, what)


def _select_commutes(subject: Subject) -> None:
    captioner, words = subject.captioner, _captions(subject)[:, 0]
    state = captioner.begin(subject.vision)
    _compare_selections(subject, state, words[:, :2], "before the first token")
    _, state = _follow(captioner, state, words[:, :1])
    _compare_selections(subject, state, words[:, 1:3], "after one token")
    rows = torch.arange(len(words)).repeat_interleave(2)
    _, state = _follow(captioner, state.select(rows), words[rows, 1:2])
    _compare_selections(subject, state, words[rows, 2:4], "after a selection")


def _compare_selections(subject: Subject, state: State, words: Int[Tensor, "r t"], when: str) -> None:
    """Go on with chosen rows of a state, and with the whole of it: the same, then and a word later."""
    captioner, every = subject.captioner, torch.arange(len(words))
    straight, _ = _follow(captioner, state, words)
    shares = torch.cat([every[:1], every[:1], every[1:], every[-1:], every[-1:]])
    choices = {
        "every row": (every,),
        "rows repeated": (every.repeat_interleave(3),),
        "rows reversed": (every.flip(0),),
        "rows in unequal shares": (shares,),
        "neighbours exchanged": (torch.cat([every[:2].flip(0), every[2:].flip(0)]),),
        "one row": (every[1:2],),
        "every second row": (every[::2],),
        "rows repeated, then reversed": (every.repeat_interleave(2), torch.arange(2 * len(every)).flip(0)),
        "rows in unequal shares, then some of these": (shares, torch.tensor([1, 0, 2, 2, len(every)])),
    }
    for choice, selections in choices.items():
        chosen, rows = state, every
        for selection in selections:
            chosen, rows = chosen.select(selection), rows[selection]
        what = f"{when}, select of {choice} gives other logits than the whole state has in these rows"
        _require_equal(_follow(captioner, chosen, words[rows])[0], straight[rows], subject, what)


def _continuations(subject: Subject) -> None:
    captioner, vision = subject.captioner, subject.vision
    one, other = _captions(subject).unbind(1)
    expected, _ = _follow(captioner, captioner.begin(vision), one)
    _, shared = _follow(captioner, captioner.begin(vision), one[:, :2])
    _, ahead = captioner.step(one[:, 2], shared)
    what = "two continuations of one state disturb each other"
    _follow(captioner, shared, other[:, 2:])
    _follow(captioner, shared.select(torch.arange(len(vision)).flip(0)), other[:, 2:])
    _require_equal(_follow(captioner, ahead, one[:, 3:])[0], expected[:, 3:], subject, what)
    _require_equal(_follow(captioner, shared, one[:, 2:])[0], expected[:, 2:], subject, what)


def _saved_and_loaded(subject: Subject) -> None:
    if subject.settings is None:
        return
    captioner = copy.deepcopy(subject.captioner).float()
    vision = cast(subject.vision, torch.float32)
    with TemporaryDirectory() as folder:
        kept = Path(folder) / "kept"
        save_captioner(kept, SavedCaptioner(captioner, subject.settings), dtype=torch.float32)
        loaded = load_captioner(kept)
    _require(loaded.settings == subject.settings, "the settings read are not those written")
    before, after = (beam(each, vision, width=3, max_words=LONGEST) for each in (captioner, loaded.captioner))
    _require(torch.equal(before.tokens, after.tokens), "the captioner read writes other captions")
    same = torch.equal(before.log_probabilities, after.log_probabilities)
    _require(same, "the captioner read gives its captions other probabilities")


def _gradients(subject: Subject) -> None:
    captioner, tokens = copy.deepcopy(subject.captioner), _captions(subject)
    weights = {name: weight for name, weight in captioner.named_parameters() if weight.requires_grad}
    _require(bool(weights), "nothing in it can be trained")
    generator = torch.Generator().manual_seed(5)
    for weight in weights.values():
        # What starts at 0 on purpose (adapters, gates) keeps a gradient from others, for one step only.
        weight.add_(torch.randn(weight.shape, generator=generator, dtype=weight.dtype), alpha=0.02)
    with torch.enable_grad():
        logits = captioner.predict(_partly_unseen(subject), tokens[:, :, :-1]).logits
        loss = -logits.log_softmax(-1).gather(3, tokens[:, :, 1:, None]).mean()
        gradients = torch.autograd.grad(loss, list(weights.values()), materialize_grads=True)
    for name, gradient in zip(weights, gradients, strict=True):
        _require(bool(gradient.isfinite().all()), f"the gradient of {name} is not finite")
        _require(bool((gradient != 0).any()), f"{name} gets no gradient: leave it out, or freeze it")


def _beam_of_one(subject: Subject) -> None:
    narrow = beam(subject.captioner, subject.vision, width=1, max_words=LONGEST)
    plain = greedy(subject.captioner, subject.vision, max_words=LONGEST)
    _require(torch.equal(narrow.tokens, plain.tokens), "a beam of width 1 writes other captions than greedy")
    what = "a beam of width 1 gives captions other probabilities than greedy"
    _require_equal(narrow.log_probabilities, plain.log_probabilities, subject, what)


def _probability(subject: Subject) -> None:
    decoded = beam(subject.captioner, subject.vision, width=4, max_words=LONGEST)
    what = "the probability of a caption is not the product of its steps in predict"
    _require_equal(_steps_of(subject, decoded), decoded.log_probabilities, subject, what)


def _sampling(subject: Subject) -> None:
    captioner, vision = subject.captioner, subject.vision
    seeds = list(range(len(vision)))
    order = torch.tensor(seeds).flip(0)
    together = _draw(captioner, vision, seeds)
    turned = _draw(captioner, vision.select(order), reversed(seeds))
    _require(torch.equal(turned.tokens, together.tokens[order]), "batch order changes what is drawn")
    what = "the probability of a sample is not the product of its steps in predict"
    _require_equal(_steps_of(subject, together), together.log_probabilities, subject, what)
    for row in range(len(vision)):
        alone = _draw(captioner, vision.select(torch.tensor([row])), [row])
        length = alone.tokens.size(2)  # padding goes up to the longest of a batch
        same = torch.equal(alone.tokens[0], together.tokens[row, :, :length])
        _require(same and not together.mask[row, :, length:].any(), "an image alone draws other captions")


def _image_matters(subject: Subject) -> None:
    captioner, vision, tokens = subject.captioner, subject.vision, _captions(subject)
    whole = captioner.predict(vision, tokens).logits
    for part in sorted(captioner.needs):
        changed = replace(vision, **{part: getattr(vision, part).roll(1, 0)})
        same = torch.isclose(
            captioner.predict(changed, tokens).logits, whole, rtol=subject.tolerance, atol=subject.tolerance
        )
        _require(not same.all(), f"it needs {part!r}, but another image's changes nothing")


def _reads_what_it_needs(subject: Subject) -> None:
    captioner, vision, tokens = subject.captioner, subject.vision, _captions(subject)
    unknown = sorted(captioner.needs - {"grid", "pooled", "classes"})
    _require(not unknown, f"Vision has no part called {' or '.join(map(repr, unknown))}")
    empty = {"grid": (0, 0), "pooled": (0,), "classes": (0,)}
    spared = {part: vision.pooled.new_zeros(len(vision), *shape) for part, shape in empty.items()}
    spare = replace(vision, **{part: spared[part] for part in empty if part not in captioner.needs})
    what = "a part of Vision that it says it does not need changes the logits"
    found, whole = (captioner.predict(each, tokens).logits for each in (spare, vision))
    _require_equal(found, whole, subject, what)
    found, whole = (_follow(captioner, captioner.begin(each), tokens[:, 0])[0] for each in (spare, vision))
    _require_equal(found, whole, subject, what)


LAWS: Mapping[str, Callable[[Subject], None]] = MappingProxyType(
    {
        "logits, hidden and attention have the documented shapes, attention rows sum to 1": _shapes,
        "asked twice, it answers the same": _answers_repeat,
        "predict equals repeated step": _predict_is_repeated_step,
        "padding does not change logits": _padding,
        "batch order does not change logits": _batch_order,
        "grouping of captions does not change logits": _grouping,
        "groups of captions of unlike length do not change each other": _groups_of_unlike_length,
        "continuations of one state do not disturb each other": _continuations,
        "select commutes with step": _select_commutes,
        "it reads no part of Vision but those it needs": _reads_what_it_needs,
        "the image matters": _image_matters,
        "gradients are finite and reach every trainable parameter": _gradients,
        "a beam of width 1 is greedy": _beam_of_one,
        "the probability of a caption is the product of its steps": _probability,
        "the batch does not change what is sampled": _sampling,
        "saved and loaded, it says the same": _saved_and_loaded,
    }
)


def _partly_unseen(subject: Subject) -> Vision:
    """The pictures; who reads class names must also do without the picture itself, as in the last row."""
    vision = subject.vision
    if "classes" not in subject.captioner.needs:
        return vision
    pictured = torch.arange(len(vision)) < len(vision) - 1
    grid, pooled = vision.grid * pictured[:, None, None], vision.pooled * pictured[:, None]
    return Vision(grid, pooled, vision.classes, pictured)


def _captions(subject: Subject) -> Int[Tensor, "b k t"]:
    """Start sign and random words, without an end."""
    text = subject.captioner.text
    closed = {text.pad, text.start, text.end, *text.silent}
    words = torch.tensor([token for token in range(len(text)) if token not in closed])
    generator = torch.Generator().manual_seed(3)
    tokens = words[torch.randint(len(words), (len(subject.vision), CAPTIONS, LENGTH), generator=generator)]
    tokens[:, :, 0] = text.start
    return tokens


def _follow(
    captioner: AnyCaptioner, state: State, tokens: Int[Tensor, "r t"]
) -> tuple[Float[Tensor, "r t v"], State]:
    """Step by step through given tokens: the logits after each, and the last state."""
    steps = []
    for token in tokens.unbind(1):
        logits, state = captioner.step(token, state)
        steps.append(logits)
    return torch.stack(steps, dim=1), state


def _draw(captioner: AnyCaptioner, vision: Vision, seeds: Iterable[int]) -> Decoded:
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    return sample(captioner, vision, Sampling(count=5), generators=generators, max_words=LONGEST)


def _steps_of(subject: Subject, decoded: Decoded) -> Float[Tensor, "b k"]:
    """The log-probability of each decoded caption, by predict."""
    captioner, tokens = subject.captioner, decoded.tokens
    start = torch.full_like(tokens[:, :, :1], captioner.text.start)
    logits = captioner.predict(subject.vision, torch.cat([start, tokens[:, :, :-1]], dim=2)).logits
    picked = logits.log_softmax(-1).gather(3, tokens.unsqueeze(3)).squeeze(3)
    return picked.masked_fill(~decoded.mask, 0).sum(2)


def _require(holds: bool, sentence: str) -> None:
    if not holds:
        raise AssertionError(sentence)


def _require_shape(what: str, tensor: Tensor, expected: tuple[int, ...]) -> None:
    _require(tuple(tensor.shape) == expected, f"{what}: shape {tuple(tensor.shape)} instead of {expected}")


def _require_equal(found: Tensor, expected: Tensor, subject: Subject, sentence: str) -> None:
    _require_shape(sentence, found, tuple(expected.shape))
    same = torch.isclose(found, expected, rtol=subject.tolerance, atol=subject.tolerance)
    gap = (found - expected).abs().max().item()
    _require(bool(same.all()), f"{sentence}; the largest difference is {gap:.1e}")
