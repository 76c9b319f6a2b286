"""What objectives are handed, and what is refused by name before training starts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.objectives.material import SMALL, WORDS, learner, saved_copy
from tests.retrievers.tiny_dual import write_tiny_dual

from tellapart.captioners.folder import load_captioner, save_captioner
from tellapart.errors import TellapartError
from tellapart.recipe import load_recipe
from tellapart.retrievers.loading import load_retriever
from tellapart.training import train


def test_a_frozen_retriever_places_words_where_the_retriever_places_the_sentence(tmp_path: Path) -> None:
    made = learner()
    folder = write_tiny_dual(tmp_path / "dual", WORDS)
    teacher = made.supplies.retriever(str(folder))
    text = made.network.text
    captions = ["a red circle", "the blue square above the star"]
    tokens = [text.encode(caption)[1:-1] for caption in captions]
    one_hot, mask = torch.zeros(2, 6, len(text)), torch.zeros(2, 6, dtype=torch.bool)
    for row, words in enumerate(tokens):
        one_hot[row, range(len(words)), words] = 1
        mask[row, : len(words)] = True
    ours = torch.nn.functional.normalize(teacher.word_vectors(one_hot, mask), dim=-1)
    retriever = load_retriever(folder)
    np.testing.assert_allclose(ours.numpy(), retriever.embed_texts(captions), atol=2e-3)  # kept in 16 bits
    paths = [made.ready.train_set.examples[row].path for row in (5, 2)]
    seen = torch.nn.functional.normalize(teacher.picture_vectors([5, 2]), dim=-1)
    np.testing.assert_allclose(seen.numpy(), retriever.embed_images(paths), atol=2e-3)
    assert teacher.identity == retriever.identity
    assert not any(weight.requires_grad for weight in teacher.network.parameters())


def test_who_taught_a_captioner_is_written_into_its_folder(tmp_path: Path) -> None:
    made = learner()
    teacher = made.supplies.retriever(str(write_tiny_dual(tmp_path / "dual", WORDS)))
    from tellapart.run import Run

    made.save(Run(tmp_path / "run"))
    assert load_captioner(tmp_path / "run" / "captioner").settings.taught_by == (teacher.identity,)


def test_a_retriever_of_another_feature_size_is_refused(tmp_path: Path) -> None:
    folder = write_tiny_dual(tmp_path / "dual", WORDS)
    config = json.loads((folder / "config.json").read_text())
    config["encoder"]["shapes"]["pooled"] = [7]
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(TellapartError, match=r"dual") as caught:
        learner().supplies.retriever(str(folder))
    assert caught.value.hint


@pytest.mark.parametrize("name", ["clip:somewhere", "siglip:somewhere"])
def test_gradients_pass_through_dual_encoders_only(name: str) -> None:
    with pytest.raises(TellapartError, match="dual encoders only"):
        learner().supplies.retriever(name)


def test_a_retriever_that_is_not_there_is_named() -> None:
    with pytest.raises(TellapartError, match="nobody: no retriever"):
        learner().supplies.retriever("nobody")


def test_captioners_beside_must_have_the_same_words(tmp_path: Path) -> None:
    made, other = learner(), learner("data.min_count=40")
    folder = saved_copy(other, tmp_path / "other")
    with pytest.raises(TellapartError, match="another vocabulary"):
        made.supplies.captioner(str(folder))


def test_captioners_beside_must_look_through_the_same_encoder(tmp_path: Path) -> None:
    made = learner()
    saved = made.ready.saved
    settings = saved.settings.model_copy(
        update={"encoder": saved.settings.encoder.model_copy(update={"identity": "another@1"})}
    )
    save_captioner(tmp_path / "other", type(saved)(saved.captioner, settings), dtype=torch.float32)
    with pytest.raises(TellapartError, match="looks through another@1"):
        made.supplies.captioner(str(tmp_path / "other"))


def test_other_captioners_are_frozen_and_own_copies_stay_as_they_were(tmp_path: Path) -> None:
    made = learner()
    copy = made.supplies.own_copy()
    other = made.supplies.captioner(str(saved_copy(made, tmp_path / "same")))
    before = [weight.clone() for weight in copy.parameters()]
    with torch.no_grad():
        for weight in made.network.parameters():
            weight.add_(1)
    assert all(torch.equal(weight, old) for weight, old in zip(copy.parameters(), before, strict=True))
    for captioner in (copy, other):
        assert not captioner.training
        assert not any(weight.requires_grad for weight in captioner.parameters())


def test_neighbours_are_the_nearest_by_cosine_and_never_the_image_itself() -> None:
    made = learner()
    rows = made.supplies.training_set.nearest(4)
    pooled = made.ready.train_set.cache.read(made.ready.train_set.digests, ("pooled",)).pooled.astype(float)
    unit = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -2)
    np.testing.assert_array_equal(rows[:, 0], cosines.argmax(1))
    assert not (rows == np.arange(len(rows))[:, None]).any()


def test_more_neighbours_than_there_are_images_are_refused() -> None:
    with pytest.raises(TellapartError, match="48 neighbours of each training image, and there are 47 other"):
        learner().supplies.training_set.nearest(48)


def test_frequent_words_are_the_commonest_and_no_signs() -> None:
    made = learner()
    words = [made.network.text.decode([token]) for token in made.supplies.frequent_words(3)]
    captions = [caption.split() for some in made.ready.train_set.examples for caption in some.captions]
    counts: dict[str, int] = {}
    for caption in captions:
        for word in caption:
            counts[word] = counts.get(word, 0) + 1
    least = min(counts[word] for word in words)
    assert sum(count > least for count in counts.values()) < 3


def test_who_taught_the_start_taught_what_goes_on_from_it(tmp_path: Path) -> None:
    made = learner()
    saved = made.ready.saved
    settings = saved.settings.model_copy(update={"taught_by": ("dual@1",)})
    save_captioner(tmp_path / "start", type(saved)(saved.captioner, settings), dtype=torch.float32)
    later = learner(f"training.start_from={tmp_path / 'start'}")
    assert later.ready.saved.settings.taught_by == ("dual@1",)
    beside = learner("objective.name=contrastive", f"objective.reference={tmp_path / 'start'}")
    assert beside.ready.saved.settings.taught_by == ("dual@1",)


@pytest.mark.parametrize(
    "changes",
    [
        ("training.stop_metric=mean-rank", "training.rank_by=nobody"),
        ("training.caption_draw=distinctive", "training.draw_by=nobody"),
    ],
)
def test_a_retriever_that_is_not_there_is_named_before_a_folder_is_written(
    changes: tuple[str, ...], tmp_path: Path
) -> None:
    recipe = load_recipe("mrnn-shapes", changes=[*SMALL, *changes])
    with pytest.raises(TellapartError, match="nobody"):
        train(recipe, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_folders_named_inside_a_mixture_are_remembered_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved_copy(learner(), tmp_path / "other")
    monkeypatch.chdir(tmp_path)
    parts = 'objective.parts=[{ name = "contrastive", reference = "other" }]'
    recipe = load_recipe("mrnn-shapes", changes=[*SMALL, "objective.name=mix", parts])
    assert recipe.objective["parts"][0]["reference"] == str(tmp_path / "other")
