"""Whatever the captioner: the batch changes nothing in double precision; a step reads one token a caption."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
import torch
from torch import Tensor

from tellapart.captioners.parts import CAPTIONERS
from tellapart.decoding.diverse import Groups, diverse
from tellapart.decoding.drafts import FEWER
from tellapart.decoding.required import Required
from tellapart.decoding.rules import Rule, banned, begin_with, no_dangling_ending, no_repeated_token
from tellapart.decoding.sampling import Sampling, image_generators, sample
from tellapart.decoding.search import beam, greedy
from tellapart.testing import Subject, prepare
from tellapart.types import AnyCaptioner, Captioner, Decoded, Prediction, State, Text, Vision

LONGEST = 7
NAMES = [name for name in CAPTIONERS.names() if "tiny" in CAPTIONERS.get(name).presets]
Decode = Callable[[AnyCaptioner, Vision, list[str]], Decoded]


@cache
def subject(name: str) -> Subject:
    return prepare(name)


def rules_for(text: Text) -> list[Rule]:
    return [
        begin_with(text, text.beginning("a")),
        Required.of(text, ["dog"], max_words=LONGEST),
        no_repeated_token(text),
        banned(text, ["bus", "a cat"]),
        no_dangling_ending(text, max_words=LONGEST),
    ]


def draw(
    captioner: AnyCaptioner, vision: Vision, ids: list[str], sampling: Sampling, rules: list[Rule]
) -> Decoded:
    own = image_generators(ids, seed=4)
    return sample(captioner, vision, sampling, generators=own, max_words=LONGEST, rules=rules)


DECODERS: dict[str, Decode] = {
    "greedy": lambda model, vision, ids: greedy(model, vision, max_words=LONGEST),
    "beam": lambda model, vision, ids: beam(
        model, vision, width=4, max_words=LONGEST, rules=rules_for(model.text), length_penalty=0.5
    ),
    "diverse": lambda model, vision, ids: diverse(model, vision, Groups(3, 2, 0.6), max_words=LONGEST),
    "samples": lambda model, vision, ids: draw(model, vision, ids, Sampling(7), []),
    "ruled samples": lambda model, vision, ids: draw(
        model, vision, ids, Sampling(7, temperature=1.3, nucleus=0.9, typical=0.8), rules_for(model.text)
    ),
}


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("name", NAMES)
def test_the_batch_changes_no_token(name: str, decoder: str) -> None:
    model, vision, decode = subject(name).captioner, subject(name).vision, DECODERS[decoder]
    ids = [f"image {row}" for row in range(len(vision))]
    whole = decode(model, vision, ids)
    order = [2, 0, 3, 1]
    for batch in ([0], [3], [1, 2], order):
        part = decode(model, vision.select(torch.tensor(batch)), [ids[row] for row in batch])
        places = part.tokens.size(2)  # padding goes up to the longest of a batch
        for row, image in enumerate(batch):
            assert torch.equal(part.tokens[row], whole.tokens[image, :, :places])
            assert torch.equal(part.mask[row], whole.mask[image, :, :places])
            assert not whole.mask[image, :, places:].any()
            torch.testing.assert_close(
                part.log_probabilities[row], whole.log_probabilities[image], rtol=1e-11, atol=1e-11
            )


class Counted(Captioner[State]):
    """Another captioner, and how much it was asked to read."""

    def __init__(self, own: AnyCaptioner) -> None:
        super().__init__()
        self.own, self.text, self.needs = own, own.text, own.needs
        self.begun: list[int] = []
        self.steps: list[tuple[int, ...]] = []

    def predict(self, vision: Vision, tokens: Tensor) -> Prediction:
        raise AssertionError("a decoder that reads whole captions again")

    def begin(self, vision: Vision) -> State:
        self.begun.append(len(vision))
        return self.own.begin(vision)  # type: ignore[no-any-return]

    def step(self, token: Tensor, state: State) -> tuple[Tensor, State]:
        self.steps.append(tuple(token.shape))
        return self.own.step(token, state)


@pytest.mark.parametrize(("decoder", "rows"), [("diverse", 6), ("ruled samples", 7)])
@pytest.mark.parametrize("name", NAMES[:4])
def test_a_step_reads_one_token_a_caption_however_long_it_is(name: str, decoder: str, rows: int) -> None:
    counted, vision = Counted(subject(name).captioner), subject(name).vision
    decoded = DECODERS[decoder](counted, vision, [str(row) for row in range(len(vision))])
    assert counted.begun == [len(vision)]  # pictures are looked at once, whatever the number of captions
    assert len(counted.steps) == decoded.tokens.size(2) <= LONGEST + 1
    assert all(read <= rows * len(vision) for (read,) in counted.steps)  # some may be finished
    assert counted.steps[0] == (rows * len(vision),)


@pytest.mark.parametrize("width", [1, 2])
def test_an_image_whose_captions_are_finished_is_read_no_further(width: int) -> None:
    uneven = 0
    for name in NAMES:
        counted, vision = Counted(subject(name).captioner), subject(name).vision
        decoded = beam(counted, vision, width=width, max_words=30)
        longest = decoded.mask.sum(-1).amax(1)
        left = [int((longest > step).sum()) for step in range(decoded.tokens.size(2))]
        assert counted.steps == [(width * images,) for images in left]
        uneven += left[-1] < len(vision)
    assert uneven


def test_samples_that_are_finished_are_read_no_further() -> None:
    count, uneven = 50, 0
    for name in NAMES:
        counted, vision = Counted(subject(name).captioner), subject(name).vision
        own = image_generators([str(row) for row in range(len(vision))], seed=6)
        decoded = sample(counted, vision, Sampling(count), generators=own, max_words=30)
        lengths = decoded.mask.sum(-1)
        read = count * len(vision)
        for step, (rows,) in enumerate(counted.steps):
            assert rows == read
            left = (lengths > step + 1).sum(
                1
            )  # of each image: all keep as many, so that its memory is shared
            wanted = int(left.max()) * int((left > 0).sum())
            read = wanted if wanted <= FEWER * read else read
        uneven += read < count * len(vision) / 4
    assert uneven


def test_a_few_finished_images_are_not_worth_the_copying() -> None:
    own = subject(NAMES[0])
    many = own.vision.select(torch.arange(16) % 4)
    counted = Counted(own.captioner)
    decoded = greedy(counted, many, max_words=30)
    longest = decoded.mask.sum(-1).amax(1)
    read = 16
    for step, (rows,) in enumerate(counted.steps):
        assert rows == read
        left = int((longest > step + 1).sum())
        read = left if left <= FEWER * read else read
    alone = greedy(own.captioner, own.vision, max_words=30)
    assert torch.equal(decoded.tokens[:4], alone.tokens)


def test_decoding_stops_with_the_last_caption() -> None:
    counted = Counted(subject(NAMES[0]).captioner)
    text = counted.text
    short: Rule = lambda scores, tokens: (  # noqa: E731
        scores
        if tokens.size(1) < 2
        else torch.full_like(scores, -torch.inf).index_fill(1, torch.tensor([text.end]), 0)
    )
    decoded = beam(counted, subject(NAMES[0]).vision, width=3, max_words=50, rules=[short])
    assert len(counted.steps) == decoded.tokens.size(2) == 3
