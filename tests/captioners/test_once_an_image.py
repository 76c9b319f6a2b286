"""What recurrent captioners make of a picture they make once, for all its captions and all their words."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
import torch

from tellapart.captioners.parts import CAPTIONERS
from tellapart.captioners.settings.kinds import GridConfig
from tellapart.decoding.search import beam
from tellapart.testing import Subject, prepare
from tellapart.types import Vision

# Layers that read the picture, and how many vectors they are given: 4 pictures, or their 4 x 9 places.
LOOKS: Mapping[str, Mapping[str, list[int]]] = {
    "mrnn": {"from_image": [4]},
    "mrnn-vis-in-rnn": {"image_to_embedding": [4]},
    "mrnn-vis-in-rnn-both": {"from_image": [4], "image_to_embedding": [4]},
    "mrnn-vis-in-rnn-both-shared": {"from_image": [4, 4]},
    "neuraltalk": {"from_picture": [4]},
    "adaptive": {"remember.from_grid": [36], "from_mean": [4], "gates_of_picture": [4], "from_place": [36]},
    "topdown": {"remember.from_grid": [36], "gates_of_mean": [4], "from_place": [36]},
}
TOKENS = torch.randint(8, 13, (4, 5, 7), generator=torch.Generator().manual_seed(3))


def write(subject: Subject) -> None:
    """Word by word, five captions a picture."""
    rows = torch.arange(4).repeat_interleave(5)
    state = subject.captioner.begin(subject.vision).select(rows)
    for token in TOKENS.flatten(0, 1).T:
        _, state = subject.captioner.step(token, state)


USES: Mapping[str, Callable[[Subject], object]] = {
    "predict": lambda subject: subject.captioner.predict(subject.vision, TOKENS),
    "step": write,
    "beam": lambda subject: beam(subject.captioner, subject.vision, width=5, max_words=6),
}


def record(subject: Subject, layers: Mapping[str, list[int]]) -> dict[str, list[int]]:
    """How many vectors each of these layers is given, call by call."""
    seen: dict[str, list[int]] = {layer: [] for layer in layers}
    for layer, rows in seen.items():
        subject.captioner.get_submodule(layer).register_forward_hook(
            lambda _, given, __, rows=rows: rows.append(given[0][..., 0].numel())
        )
    return seen


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", LOOKS)
def test_a_picture_is_seen_once(name: str, use: str) -> None:
    subject = prepare(name)
    seen = record(subject, LOOKS[name])
    USES[use](subject)
    assert seen == LOOKS[name]


def attends(name: str) -> bool:
    return issubclass(CAPTIONERS.get(name).config, GridConfig)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", [name for name in LOOKS if attends(name)])
def test_keys_of_places_and_concept_words_are_computed_once_an_image(name: str, use: str) -> None:
    subject = prepare(name, settings={"concepts": 3, "copy_words": True})
    seen = record(subject, {"from_place": []})
    USES[use](subject)
    assert seen == {"from_place": [4 * (9 + 3)]}


@pytest.mark.parametrize("name", [name for name in LOOKS if attends(name)])
def test_groups_of_captions_share_what_was_seen(name: str) -> None:
    subject = prepare(name)
    seen = record(subject, LOOKS[name])
    assert subject.captioner.sees_once
    subject.captioner.predict_each(subject.vision, [TOKENS[:, :2], TOKENS[:, 2:, :4]])
    assert seen == LOOKS[name]


@pytest.mark.parametrize("name", LOOKS)
def test_the_layers_above_are_all_that_read_the_picture(name: str) -> None:
    """Were one of them forgotten here, nobody would notice how often it is asked."""
    subject = prepare(name)
    captioner, seen = subject.captioner, subject.vision
    other = Vision(seen.grid.flip(0), seen.pooled.flip(0), seen.classes)
    for layer in LOOKS[name]:
        captioner.get_submodule(layer).register_forward_hook(lambda _, __, found: torch.zeros_like(found))
    found, expected = (captioner.predict(vision, TOKENS).logits for vision in (other, seen))
    assert torch.equal(found, expected)
