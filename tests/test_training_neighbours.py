"""Training pictures nearest to a picture: by content never itself, by either feature; what is refused."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from tests.retrievers.colour_retriever import paint

from tellapart.captioners.mrnn import MRNN, build_vis_in_rnn
from tellapart.captioners.neuraltalk import build as build_neuraltalk
from tellapart.captioners.settings.mrnn import MRNNConfig
from tellapart.captioners.settings.recurrent import NeuralTalkConfig
from tellapart.captioning import Describer, load
from tellapart.corpus import as_vision
from tellapart.data.examples import Example
from tellapart.data.readers import read_dataset
from tellapart.errors import TellapartError
from tellapart.recipe import load_recipe
from tellapart.training_neighbours import (
    Sight,
    TrainingSet,
    gather_training_set,
    read_training_set,
    refined_sight,
    words_of,
)
from tellapart.vision.encoder import traits_of
from tellapart.vision.features import Features
from tellapart.vision.patches import Patches

PATCHES = Sight(Patches())


@pytest.fixture(scope="module")
def examples(scenes: Path) -> list[Example]:
    return list(read_dataset(scenes / "captions.jsonl", format="jsonl", images=scenes).strict())


@pytest.fixture(scope="module")
def training(examples: list[Example]) -> TrainingSet:
    return gather_training_set(examples[:40], PATCHES)


@pytest.fixture(scope="module")
def describer(tiny_captioner: Path) -> Describer:
    return load(tiny_captioner)


def test_they_are_the_nearest_by_euclidean_distance(examples: list[Example], training: TrainingSet) -> None:
    asking = PATCHES.look([example.path for example in examples[40:]])
    apart = cdist(asking.features.astype(float), training.pictures.features.astype(float))
    found = training.nearest(asking, 7)
    for row, near in enumerate(found):
        assert len(near) == 7
        assert apart[row, near] == pytest.approx(np.sort(apart[row])[:7])


def test_a_picture_is_not_its_own_neighbour_wherever_it_lies(
    examples: list[Example], training: TrainingSet, tmp_path: Path
) -> None:
    copy = tmp_path / "elsewhere.png"
    shutil.copy(examples[3].path, copy)
    asking = PATCHES.look([examples[3].path, copy, examples[50].path])
    own, moved, stranger = training.nearest(asking, 40)
    assert own == moved
    assert sorted(own) == [row for row in range(40) if row != 3]
    assert sorted(stranger) == list(range(40))


def test_copies_of_a_picture_are_no_neighbours_either(examples: list[Example]) -> None:
    twice = [*examples[:5], replace(examples[2], image_id="again")]
    training = gather_training_set(twice, PATCHES)
    near, other = training.nearest(PATCHES.look([examples[2].path, examples[4].path]), 3)
    assert sorted({*near} & {2, 5}) == []
    assert len(near) == len(other) == 3


def test_more_neighbours_than_there_are_is_all(examples: list[Example], training: TrainingSet) -> None:
    (near,) = training.nearest(PATCHES.look([examples[50].path]), 1000)
    assert sorted(near) == list(range(40))


def test_no_picture_has_no_neighbours(training: TrainingSet) -> None:
    assert training.nearest(PATCHES.look([]), 3) == []


def test_a_training_set_of_the_picture_alone_is_refused(examples: list[Example]) -> None:
    training = gather_training_set(examples[:1], PATCHES)
    with pytest.raises(TellapartError, match="holds this picture and no other"):
        training.nearest(PATCHES.look([examples[0].path]), 3)


def test_pictures_without_captions_are_no_neighbours(examples: list[Example]) -> None:
    silent, unseen = replace(examples[0], captions=()), replace(examples[1], pictured=False)
    training = gather_training_set([silent, unseen, *examples[2:5]], PATCHES)
    assert training.ids == tuple(example.image_id for example in examples[2:5])
    with pytest.raises(TellapartError, match="no picture with captions"):
        gather_training_set([silent, unseen], PATCHES)


def test_a_recipe_names_it() -> None:
    recipe = load_recipe("mrnn-shapes", changes=["data.scenes=30", "encoder.name=patches"])
    training = read_training_set(recipe, PATCHES)
    assert 0 < len(training) < 30
    assert len(training.pictures) == len(training.captions) == len(training)
    assert training.counted.documents == len(training)


def test_refined_features_are_the_captioners(describer: Describer, examples: list[Example]) -> None:
    paths = [example.path for example in examples[:3]]
    found, plain = refined_sight(describer).look(paths), PATCHES.look(paths)
    nothing = np.empty((3, 0), np.float16)
    vision = as_vision(Features(nothing[:, :, None], plain.features, nothing))
    captioner = describer.saved.captioner
    assert isinstance(captioner, MRNN)
    with torch.no_grad():
        expected = captioner.refined(vision)
    np.testing.assert_allclose(found.features, expected.numpy(), atol=1e-6)
    assert found.digests == plain.digests
    assert refined_sight(describer).look([]).features.shape == (0, 16)


def test_a_captioner_that_refines_nothing_says_so(describer: Describer, examples: list[Example]) -> None:
    text, traits = describer.saved.captioner.text, traits_of(Patches())
    blind = build_vis_in_rnn(
        MRNNConfig(embedding_one=8, embedding_two=12, multimodal=16), text=text, traits=traits
    )
    saved = replace(describer.saved, captioner=blind)
    with pytest.raises(TellapartError, match="no refined image feature: its multimodal layer"):
        refined_sight(replace(describer, saved=saved)).look([examples[0].path])
    recurrent = build_neuraltalk(NeuralTalkConfig(), text=text, traits=traits)
    saved = replace(describer.saved, captioner=recurrent)
    with pytest.raises(TellapartError, match=r"has no refined image feature\n  hint: .*pooled"):
        refined_sight(replace(describer, saved=saved))


def test_a_picture_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    good, bad = paint(tmp_path / "good.png", "red"), tmp_path / "bad.png"
    bad.write_bytes(b"no picture")
    with pytest.raises(TellapartError, match=r"bad\.png"):
        PATCHES.look([good, bad])


def test_words_are_those_of_the_measures() -> None:
    assert words_of(["A dog, running.", "22 3/4 dogs", "..."]) == [
        ["a", "dog", "running"],
        ["22", "3/4", "dogs"],
        [],
    ]
