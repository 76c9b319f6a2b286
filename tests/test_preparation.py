"""What training starts from: other captioners, other sources; and what is refused before the first step."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from tellapart.errors import TellapartError
from tellapart.preparation import Ready, prepare
from tellapart.recipe import Recipe, load_recipe

TINY = (
    "data.scenes=60",
    "captioner.embedding_one=4",
    "captioner.embedding_two=6",
    "captioner.multimodal=8",
)


def recipe(*changes: str) -> Recipe:
    return load_recipe("mrnn-shapes", changes=[*TINY, *changes])


def ready(some: Recipe) -> Ready:
    return prepare(some, watch=lambda done, total: None)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tellapart.training import train

    folder = tmp_path_factory.mktemp("runs") / "first"
    train(recipe("training.epochs=1"), folder)
    return folder


def refusal(some: Recipe) -> TellapartError:
    with pytest.raises(TellapartError) as caught:
        ready(some)
    assert "\n" not in caught.value.problem + caught.value.hint
    return caught.value


def test_training_goes_on_from_the_weights_and_words_of_another_captioner(trained: Path) -> None:
    from tellapart.captioners.folder import load_captioner

    fewer = ("data.scenes=40", "captioner.dropout=0.5")
    started = ready(recipe(f"training.start_from={trained}", *fewer)).saved
    before = load_captioner(trained / "captioner")
    for name, tensor in before.captioner.state_dict().items():
        assert torch.equal(tensor, started.captioner.state_dict()[name])
    assert started.settings.fingerprint == before.settings.fingerprint
    assert ready(recipe(*fewer)).saved.settings.fingerprint != before.settings.fingerprint


def test_words_of_another_captioner_are_taken_whatever_the_captions_say(trained: Path) -> None:
    from tellapart.captioners.folder import read_settings

    fewer = ("data.scenes=40", "captioner.multimodal=9")
    own = ready(recipe(f"training.words_of={trained}", *fewer)).saved
    assert own.settings.fingerprint == read_settings(trained / "captioner").fingerprint
    assert ready(recipe(*fewer)).saved.settings.fingerprint != own.settings.fingerprint


def test_views_are_of_pictures_to_train_on_alone() -> None:
    three = ready(recipe("encoder.views=3"))
    assert [len(view) for view in three.train_set.views] == [len(three.train_set.examples)] * 2
    assert len({*three.train_set.digests, *three.train_set.views[0], *three.train_set.views[1]}) == 3 * len(
        three.train_set.examples
    )
    assert not three.val_set.views


def test_a_start_of_other_sizes_is_refused(trained: Path) -> None:
    error = refusal(recipe(f"training.start_from={trained}", "captioner.multimodal=9"))
    assert "is a 'mrnn' of other sizes than the recipe's" in error.problem
    own = ("data.scenes=60", "captioner.name=neuraltalk", "captioner.preset=tiny")
    other = refusal(load_recipe("mrnn-shapes", changes=[*own, f"training.start_from={trained}"]))
    assert "is a 'mrnn', the recipe's a 'neuraltalk'" in other.problem


def test_a_start_with_features_of_another_size_is_refused(trained: Path, tmp_path: Path) -> None:
    config = trained / "captioner" / "config.json"
    content = json.loads(config.read_text(encoding="utf-8"))
    try:
        other = content | {"encoder": content["encoder"] | {"identity": "patches-12x6"}}
        config.write_text(json.dumps(other), encoding="utf-8")
        error = refusal(recipe(f"training.start_from={trained}"))
    finally:
        config.write_text(json.dumps(content), encoding="utf-8")
    assert "looks through patches-12x6 (grid (81, 108), pooled" in error.problem
    assert error.hint == "set encoder.name to patches"


def test_a_start_that_is_not_there_is_refused_before_torch_is_loaded(tmp_path: Path) -> None:
    with pytest.raises(TellapartError, match="no such folder"):
        recipe(f"training.start_from={tmp_path / 'gone'}")
    with pytest.raises(TellapartError, match=r"training\.words_of: no such folder"):
        recipe(f"training.words_of={tmp_path / 'gone'}")


@pytest.fixture
def two_sources(tmp_path: Path, scenes: Path) -> Sequence[str]:
    """Drawn scenes as the main source, and ten captions without pictures."""
    lines = [json.dumps({"image": f"{number}.jpg", "captions": ["a red circle"]}) for number in range(10)]
    (tmp_path / "text.jsonl").write_text("\n".join(lines), encoding="utf-8")
    extra = f'data.extra=[{{ path = "{tmp_path / "text.jsonl"}", pictures = false, per_epoch = 4 }}]'
    return (f"data.root={scenes}", "data.path=captions.jsonl", "data.format=jsonl", extra)


def test_captions_alone_are_refused_where_nothing_could_learn_from_them(two_sources: Sequence[str]) -> None:
    error = refusal(recipe(*two_sources))
    assert "text.jsonl:1: captions without pictures" in error.problem
    assert "'mrnn' is given no concept words" in error.problem
