"""Rewards against the programs and measures whose numbers they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocoevalcap.cider.cider import Cider
from tests.foreign.tiny_clip import save_clip
from tests.objectives.material import learner
from tests.retrievers.tiny_dual import write_tiny_dual

from tellapart.captioner_learner import CaptionerLearner
from tellapart.errors import TellapartError
from tellapart.metrics.clipscore import clipscore
from tellapart.metrics.counted_captions import CountedCaptions
from tellapart.metrics.material import Material
from tellapart.metrics.parts import ClipScoreConfig
from tellapart.objectives.settings.rewards import CiderReward, ClipReward, RetrievalReward
from tellapart.recipe import load_recipe
from tellapart.retrievers.loading import load_retriever
from tellapart.rewards import build_reward

CAPTIONS = ["a red circle and a blue square", "the small star is on the left", "a a a a", "moon"]
ROWS = [5, 0, 11]

sentence = st.lists(st.sampled_from(["a", "dog", "cat", "on", "the", "mat", "</s>"]), min_size=1, max_size=8)
images = st.lists(
    st.tuples(st.lists(sentence, min_size=1, max_size=4), sentence), min_size=2, max_size=6
)  # references and a candidate


@pytest.fixture(scope="module")
def made() -> CaptionerLearner:
    return learner()


@pytest.fixture(scope="module")
def dual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_dual(tmp_path_factory.mktemp("dual") / "tiny", CAPTIONS)


def tokens(some: CaptionerLearner, captions: Sequence[str]) -> list[list[int]]:
    """As a decoder gives them: words and end."""
    return [some.network.text.encode(caption)[1:] for caption in captions]


@settings(max_examples=60)
@given(images)
def test_captions_counted_once_give_the_ciderd_of_pycocoevalcap(
    drawn: list[tuple[list[list[str]], list[str]]],
) -> None:
    known = CountedCaptions.count([references for references, _ in drawn])
    found = known.cider_d(
        known.read([[each] for _, each in drawn]), known.of([[row] for row in range(len(drawn))])
    )
    _, expected = Cider().compute_score(
        {row: [" ".join(words) for words in references] for row, (references, _) in enumerate(drawn)},
        {row: [" ".join(candidate)] for row, (_, candidate) in enumerate(drawn)},
    )
    assert found == pytest.approx(np.asarray(expected), abs=1e-9)


def test_frequencies_are_those_of_all_captions_whichever_images_are_asked_for(made: CaptionerLearner) -> None:
    """Golden: the reward of a few images in any order, by pycocoevalcap over the whole training set."""
    text, images = made.network.text, made.ready.train_set
    reward = build_reward(CiderReward(), made.supplies)
    asked = [[*CAPTIONS, "a zebra unknown here"] for _ in ROWS]
    found = reward(ROWS, [tokens(made, group) for group in asked])
    assert found.shape == (3, 5)
    assert found.dtype == np.float32

    def spelt(caption: Sequence[int]) -> str:
        return f"{text.decode(caption)} </s>"  # the end sign is a word

    references = {row: [spelt(one) for one in group] for row, group in enumerate(images.captions)}
    for place in range(5):
        ours = tokens(made, [group[place] for group in asked])
        candidates = {row: ["nothing"] for row in references} | {
            row: [spelt(one)] for row, one in zip(ROWS, ours, strict=True)
        }
        _, each = Cider().compute_score(references, candidates)
        assert found[:, place] == pytest.approx(np.asarray(each)[ROWS], abs=1e-6)
    again = reward(ROWS[::-1], [tokens(made, group) for group in asked])
    assert (again[::-1] == found).all()
    assert (reward([5, 5], [tokens(made, CAPTIONS)] * 2) == found[:1, :4]).all(), "an image may come twice"


def test_the_end_sign_is_rewarded(made: CaptionerLearner) -> None:
    """A caption that breaks off lacks n-grams that every reference ends in."""
    reference = made.network.text.decode(made.ready.train_set.captions[0][0])
    whole = tokens(made, [reference])[0]
    reward = build_reward(CiderReward(), made.supplies)
    closed, open_ = reward([0], [[whole, whole[:-1]]])[0]
    assert closed > open_
    broken = reward([0], [[[*whole[:-2], whole[-1]]]])[0, 0]
    assert closed > broken


def test_images_without_captions_have_no_ciderd_and_are_no_documents(made: CaptionerLearner) -> None:
    captions = [[], *made.ready.train_set.captions[1:]]
    ready = replace(made.ready, train_set=replace(made.ready.train_set, captions=captions))
    reward = build_reward(CiderReward(), replace(made.supplies, ready=ready))
    found = reward([0, 1], [tokens(made, CAPTIONS)] * 2)
    assert (found[0] == 0).all()
    assert (found[1] > 0).any()
    one = replace(ready, train_set=ready.train_set.rows(0, 2))
    with pytest.raises(TellapartError, match="1 training image has any"):
        build_reward(CiderReward(), replace(made.supplies, ready=one))


@pytest.mark.parametrize("form", ["rank", "margin"])
def test_self_retrieval_by_hand(made: CaptionerLearner, dual: Path, form: str) -> None:
    config = RetrievalReward.model_validate({"retriever": str(dual), "form": form, "neighbours": 7})
    found = build_reward(config, made.supplies)(ROWS, [tokens(made, CAPTIONS)] * 3)
    judge, examples = load_retriever(dual), made.ready.train_set.examples
    scores = judge.scores(CAPTIONS, [example.path for example in examples])
    near = made.supplies.training_set.nearest(7)
    for place, row in enumerate(ROWS):
        for caption in range(len(CAPTIONS)):
            own, others = scores[caption, row], scores[caption, near[row]]
            by_hand = 1 / (1 + sum(others >= own)) if form == "rank" else own - others.max()
            assert found[place, caption] == pytest.approx(by_hand, abs=1e-5)
    assert len(np.unique(found)) > 1


def test_clipscore_is_that_of_the_measure_and_the_captioner_is_known_to_be_taught_by_it(
    tmp_path: Path,
) -> None:
    folder, made = save_clip(tmp_path / "clip"), learner("data.scenes=20")
    supplies = made.supplies
    assert not supplies.taught_by
    found = build_reward(ClipReward(model=str(folder)), supplies)(ROWS, [tokens(made, CAPTIONS)] * 3)
    pictures = [made.ready.train_set.examples[row].path for row in ROWS]
    pairs = [(picture, caption) for picture in pictures for caption in CAPTIONS]
    material = Material(
        tuple(map(str, range(len(pairs)))),
        tuple((caption,) for _, caption in pairs),
        pictures=tuple(picture for picture, _ in pairs),
    )
    measured = clipscore(material, ClipScoreConfig(model=str(folder)))[0]
    # What CLIP sees is kept in half precision.
    assert found.flatten() == pytest.approx(measured.each, abs=5e-3)
    assert (found > 0).any()
    assert supplies.taught_by == (load_retriever(f"clip:{folder}").identity,)


def test_retrievers_that_reward_are_known_to_have_taught(made: CaptionerLearner, dual: Path) -> None:
    supplies = replace(made.supplies)
    build_reward(RetrievalReward(retriever=str(dual), neighbours=3), supplies)
    supplies.retriever(str(dual))
    assert supplies.taught_by == (load_retriever(dual).identity,), "once, whatever it was asked for"


def test_more_neighbours_than_images_are_refused(made: CaptionerLearner, dual: Path) -> None:
    with pytest.raises(TellapartError, match="wants 1000 neighbours of each training image"):
        build_reward(RetrievalReward(retriever=str(dual), neighbours=1000), made.supplies)


def test_folders_in_rewards_are_remembered_wherever_the_recipe_is_read(
    dual: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(dual.parent)
    first = f'{{ name = "self-retrieval", retriever = "{dual.name}" }}'
    rewards = f'objective.rewards=[{first}, {{ name = "clipscore", model = "some/hub" }}]'
    recipe = load_recipe("mrnn-shapes", changes=["objective.name=reward", rewards])
    assert recipe.objective["rewards"][0]["retriever"] == str(dual)
    assert recipe.objective["rewards"][1]["model"] == "some/hub"
