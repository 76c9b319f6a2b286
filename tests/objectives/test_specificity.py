"""Specificity: what the retriever reads is the hard caption, and what comes back is its gradient."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.objectives.material import SMALL, context, doubled, learner
from tests.retrievers.tiny_dual import write_tiny_dual
from torch import Tensor

from tellapart.captioner_learner import CaptionerLearner, Ranking, greedy_captions
from tellapart.errors import TellapartError
from tellapart.fit import Fit
from tellapart.objectives.settings.specificity import SpecificityConfig
from tellapart.objectives.specificity import build_specificity, contrastive_pool, draw, teachable
from tellapart.objectives.writing import forbidden_words, gumbel_noise, write
from tellapart.preparation import prepare
from tellapart.recipe import load_recipe
from tellapart.retrievers.loading import load_retriever
from tellapart.stepping import Moment, build_optimiser, take_step
from tellapart.training import train
from tellapart.types import AnyCaptioner, Batch, Loss, Objective, Vision
from tellapart.world import World

SENTENCES = ["a red circle is left of a blue square", "the small green triangle is above a large yellow star"]
LOSSES = ("dp", "cos", "cdp", "ccos")


@pytest.fixture(scope="module")
def retriever(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_dual(tmp_path_factory.mktemp("dual") / "tiny", SENTENCES)


@pytest.fixture(scope="module")
def made(retriever: Path) -> dict[str, CaptionerLearner]:
    """Untrained captioners in double precision, whose teacher is too."""
    return {name: in_double(specific(retriever, captioner=name)) for name in ("mrnn", "transformer")}


def specific(retriever: Path, *changes: str, captioner: str = "mrnn") -> CaptionerLearner:
    own = ("objective.name=specificity", f"objective.retriever={retriever}", "objective.share=0.1")
    return learner(*own, *changes, captioner=captioner)


def refusal(retriever: Path, *changes: str, captioner: str = "mrnn") -> TellapartError:
    """What is said before the first step."""
    own = ("objective.name=specificity", f"objective.retriever={retriever}", f"captioner.name={captioner}")
    recipe = load_recipe("mrnn-shapes", changes=[*own, *SMALL, *changes])
    some = CaptionerLearner(recipe, prepare(recipe, watch=lambda done, total: None))
    with pytest.raises(TellapartError) as caught:
        _ = some.step
    assert "\n" not in caught.value.problem + caught.value.hint
    return caught.value


def in_double(some: CaptionerLearner) -> CaptionerLearner:
    name = some.recipe.objective["retriever"]
    teacher = some.supplies.retriever(name)
    some.supplies._retrievers[name] = replace(
        teacher, network=teacher.network.double(), pictures=teacher.pictures.double()
    )
    torch.manual_seed(5)
    for weight in some.network.double().eval().parameters():
        torch.nn.init.normal_(weight, std=0.5)  # untrained captioners say the same of every picture
    return some


def build(some: CaptionerLearner, **changes: object) -> Objective:
    section = {key: value for key, value in some.recipe.objective.items() if key != "name"} | changes
    return build_specificity(SpecificityConfig.model_validate(section), some.supplies)


def gradients(captioner: AnyCaptioner, value: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(value, list(captioner.parameters()), materialize_grads=True))


def assert_equal(found: Sequence[Tensor], expected: Sequence[Tensor]) -> None:
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("captioner", ["mrnn", "transformer"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_gradient_is_that_of_the_one_hot_put_onto_the_probabilities(
    made: dict[str, CaptionerLearner], captioner: str, loss: str
) -> None:
    """The caption is hard; its gradient, with a leaf in its place, goes to probabilities read another way."""
    some = made[captioner]
    network, batch = some.network, doubled(some.batch(0))
    found = build(some, loss=loss, margin=5.0)(network, batch, context())
    written = write(network, batch.vision, max_words=some.supplies.max_words)
    leaf = torch.nn.functional.one_hot(written.tokens, len(network.text)).double().requires_grad_()
    assert torch.equal(written.one_hot[written.mask], leaf[written.mask])
    teacher = some.supplies.retriever(some.recipe.objective["retriever"])
    said, own = teacher.word_vectors(leaf, written.mask), teacher.picture_vectors(batch.rows)
    near = some.supplies.training_set.nearest(int(0.1 * len(some.supplies.training_set)))
    rows = [
        int(near[row, int(torch.randint(near.shape[1], (), generator=context().of_image(row)))])
        for row in batch.rows
    ]
    other = teacher.picture_vectors(rows)
    if loss.endswith("cos"):
        said, own, other = (torch.nn.functional.normalize(some, dim=-1) for some in (said, own, other))
    closeness, contrast = (said * own).sum(-1), (said * other).sum(-1)
    by_hand = (-closeness if loss in ("dp", "cos") else 5 + contrast - closeness).mean()
    assert found.total.item() == pytest.approx(by_hand.item(), abs=1e-12)
    (at_words,) = torch.autograd.grad(by_hand, leaf)
    begin = torch.full_like(written.tokens[:, :1], network.text.start)
    read = torch.cat([begin, written.tokens[:, :-1]], dim=1).unsqueeze(1)
    logits = network.predict(batch.vision, read).logits.squeeze(1)
    forbidden = forbidden_words(network.text, logits.size(1), logits.device, max_words=99)
    probabilities = logits.masked_fill(forbidden, -torch.inf).softmax(-1)
    surrogate = (at_words * probabilities).masked_fill(~written.mask.unsqueeze(-1), 0).sum()
    ours = gradients(network, found.total)
    assert_equal(ours, gradients(network, surrogate))
    assert any(gradient.abs().max() > 0 for gradient in ours)


def test_what_is_judged_is_the_caption_that_greedy_search_writes(
    made: dict[str, CaptionerLearner], retriever: Path
) -> None:
    some = made["mrnn"]
    batch = doubled(some.batch(0))
    found = build(some, loss="cos")(some.network, batch, context())
    decoded = some.supplies.greedy(some.network, batch.vision)
    captions = [some.network.text.decode(tokens[0]) for tokens in decoded.tokens.tolist()]
    judge = load_retriever(retriever)
    paths = [some.ready.train_set.examples[row].path for row in batch.rows]
    cosines = (judge.embed_texts(captions) * judge.embed_images(paths)).sum(1)
    assert found.total.item() == pytest.approx(-cosines.mean(), abs=1e-5)
    assert found.parts["words"] == pytest.approx(np.mean([len(caption.split()) for caption in captions]))


def test_the_hinge_is_nothing_once_satisfied(made: dict[str, CaptionerLearner]) -> None:
    some = made["mrnn"]
    objective, seen = build(some, loss="cdp"), Counter[bool]()
    for step in range(6):
        for share in some.shares(step, World()):
            for place in range(len(share.rows)):
                one = doubled(only(share, place))
                loss = objective(some.network, one, context(step))
                satisfied = loss.parts["similarity"] >= loss.parts["contrastive"]
                seen[satisfied] += 1
                norm = max(gradient.abs().max().item() for gradient in gradients(some.network, loss.total))
                assert (loss.total.item() == 0) is satisfied
                assert (norm == 0) is satisfied
                if not satisfied:
                    gap = loss.parts["contrastive"] - loss.parts["similarity"]
                    assert loss.total.item() == pytest.approx(gap)
    assert set(seen) == {True, False}, "both kinds were met"


def only(batch: Batch, place: int) -> Batch:
    """One image of a batch, as a batch of its own."""
    rows = torch.tensor([place])
    return Batch(
        batch.image_ids[place : place + 1],
        batch.vision.select(rows),
        batch.tokens[rows],
        batch.mask[rows],
        batch.rows[place : place + 1],
        batch.places[place : place + 1],
    )


def test_the_dot_product_differs_from_the_cosine_but_for_the_authors(
    made: dict[str, CaptionerLearner],
) -> None:
    some = made["mrnn"]
    batch = doubled(some.batch(0))

    def value(loss: str, compat: str) -> float:
        return build(some, loss=loss, compat=compat, margin=5.0)(some.network, batch, context()).total.item()

    for dot, cosine in (("dp", "cos"), ("cdp", "ccos")):
        assert abs(value(dot, "paper") - value(cosine, "paper")) > 1e-2
        assert value(dot, "authors") == pytest.approx(value(cosine, "authors"), abs=1e-12)
        assert value(cosine, "authors") == pytest.approx(value(cosine, "paper"), abs=1e-12)


def test_as_the_authors_have_it_end_and_unknown_word_learn_nothing(made: dict[str, CaptionerLearner]) -> None:
    some = made["mrnn"]
    text, batch = some.network.text, doubled(some.batch(0))
    written = write(some.network, batch.vision, max_words=some.supplies.max_words)
    signs = [text.end, *text.silent]
    for compat in ("paper", "authors"):
        leaf = written.one_hot.detach().requires_grad_()
        config = SpecificityConfig.model_validate({"compat": compat})
        taught = teachable(replace(written, one_hot=leaf), text, config)
        assert torch.equal(taught, leaf)
        (gradient,) = torch.autograd.grad(taught.sum(), leaf)
        assert (gradient[..., signs] == (compat == "paper")).all()
        rest = [token for token in range(len(text)) if token not in signs]
        assert (gradient[..., rest] == 1).all()


def test_the_retriever_is_never_changed(retriever: Path) -> None:
    some = specific(retriever, "objective.mle_weight=0.5")
    teacher = some.supplies.retriever(str(retriever))
    before = {name: tensor.clone() for name, tensor in teacher.network.state_dict().items()}
    captioner = {name: tensor.clone() for name, tensor in some.network.state_dict().items()}
    optimiser = build_optimiser(some.recipe.optimiser, some.step)
    for number in range(3):
        moment = Moment(number, 10, by_term=True)
        taken = take_step(some.step.train(), optimiser, some.shares(number, World()), some.recipe, moment)
        assert taken.norms.keys() == {"specificity", "mle"}
    after = teacher.network.state_dict()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())
    assert not any(weight.requires_grad for weight in teacher.network.parameters())
    ids = {id(weight) for weight in some.step.parameters()}
    assert ids.isdisjoint(id(weight) for weight in teacher.network.parameters())
    assert any(not torch.equal(tensor, some.network.state_dict()[name]) for name, tensor in captioner.items())
    assert some.supplies.taught_by == (load_retriever(retriever).identity,)


def test_contrastive_pictures_are_drawn_afresh_from_those_most_alike(
    made: dict[str, CaptionerLearner],
) -> None:
    some = made["mrnn"]
    images = len(some.supplies.training_set)
    near = contrastive_pool(SpecificityConfig(share=0.1), some.supplies)
    assert near.shape == (images, images // 10)
    assert all(row not in near[row] for row in range(images))
    assert contrastive_pool(SpecificityConfig(share=1.0), some.supplies).shape == (images, images - 1)
    row, drawn = 3, []
    for step in range(60):
        drawn += draw(near, [row], [context(step).of_image(row)])
        together = draw(near, [1, row, 7], [context(step).of_image(some) for some in (1, row, 7)])
        assert together[1] == drawn[-1], "whatever the batch"
    assert set(drawn) == set(near[row].tolist())


@pytest.mark.parametrize("estimator", ["straight-through", "gumbel"])
@pytest.mark.parametrize("captioner", ["mrnn", "transformer"])
def test_shares_of_a_batch_add_up_and_images_draw_the_same_in_any_company(
    made: dict[str, CaptionerLearner], captioner: str, estimator: str
) -> None:
    some = made[captioner]
    objective = build(some, estimator=estimator, mle_weight=0.3, margin=1.0)
    batch = some.batch(1)
    whole = objective(some.network, doubled(batch), context(1))
    shares: list[Loss] = []
    for rows in (batch.rows[:1], batch.rows[1:]):
        draw_captions = some._draw(0)
        (share,) = some.ready.train_set.shares(batch.rows, [rows], draw_captions)
        shares.append(objective(some.network, doubled(share), context(1)))
    assert sum(loss.total.item() for loss in shares) == pytest.approx(whole.total.item(), abs=1e-10)
    for name, value in whole.parts.items():
        assert sum(loss.parts[name] for loss in shares) == pytest.approx(value, abs=1e-10), name
    together = [
        sum(parts) for parts in zip(*(gradients(some.network, loss.total) for loss in shares), strict=True)
    ]
    assert_equal([torch.as_tensor(part) for part in together], gradients(some.network, whole.total))


def test_padding_and_captions_that_are_not_there_change_nothing(made: dict[str, CaptionerLearner]) -> None:
    some = made["mrnn"]
    objective, batch = build(some, mle_weight=0.5), doubled(some.batch(0))
    padded = replace(
        batch,
        tokens=torch.nn.functional.pad(batch.tokens, (0, 3, 0, 1), value=some.network.text.pad),
        mask=torch.nn.functional.pad(batch.mask, (0, 3, 0, 1)),
    )
    one, other = (objective(some.network, each, context()) for each in (batch, padded))
    assert one.parts == pytest.approx(other.parts, abs=1e-12)
    bare = replace(
        batch, tokens=batch.tokens[:, :1, :2], mask=torch.zeros_like(batch.mask[:, :1, :2]), whole=None
    )
    without = objective(some.network, bare, context())
    assert without.parts["specificity"] == pytest.approx(one.parts["specificity"], abs=1e-12)
    assert without.parts["mle"] == 0
    assert all(gradient.isfinite().all() for gradient in gradients(some.network, without.total))


@settings(max_examples=12)
@given(
    st.sampled_from([1e4, 1e6]),
    st.sampled_from(LOSSES),
    st.sampled_from(["straight-through", "gumbel"]),
    st.sampled_from(["paper", "authors"]),
)
def test_extreme_logits_give_finite_losses_and_gradients(
    made: dict[str, CaptionerLearner], scale: float, loss: str, estimator: str, compat: str
) -> None:
    some = made["mrnn"]
    objective = build(some, loss=loss, estimator=estimator, compat=compat, margin=1.0)
    output = some.network.get_submodule("output")
    assert isinstance(output, torch.nn.Linear)
    kept = output.weight.detach().clone()
    with torch.no_grad():
        output.weight *= scale
    try:
        one = objective(some.network, doubled(only(some.batch(0), 1)), context())
        assert one.total.isfinite()
        assert all(gradient.isfinite().all() for gradient in gradients(some.network, one.total))
    finally:
        with torch.no_grad():
            output.weight.copy_(kept)


def test_captions_of_one_word_are_judged_too(retriever: Path) -> None:
    some = in_double(specific(retriever, "decoding.max_words=1"))
    loss = build(some, margin=5.0)(some.network, doubled(some.batch(0)), context())
    assert loss.parts["words"] == 1
    assert any(gradient.abs().max() > 0 for gradient in gradients(some.network, loss.total))


def test_gumbel_noise_draws_from_the_softmax() -> None:
    logits = torch.tensor([0.0, 1.0, -1.0, 2.0], dtype=torch.float64)
    generators = [context(step).of_image(0) for step in range(4000)]
    drawn = gumbel_noise(generators)(logits.expand(4000, 4)).argmax(-1)
    shares = torch.bincount(drawn, minlength=4) / 4000
    expected = logits.softmax(-1)
    assert ((shares - expected).abs() < 5 * (expected * (1 - expected) / 4000).sqrt()).all()


def test_gumbel_captions_are_drawn_afresh_each_step(made: dict[str, CaptionerLearner]) -> None:
    some = made["mrnn"]
    vision = doubled(some.batch(0)).vision

    def written(step: int, rows: Sequence[int], seen: Vision) -> list[list[int]]:
        noise = gumbel_noise([context(step).of_image(row) for row in rows])
        found = write(some.network, seen, max_words=8, perturb=noise, temperature=0.5)
        return [tokens[mask].tolist() for tokens, mask in zip(found.tokens, found.mask, strict=True)]

    rows = list(range(len(vision)))
    first = written(0, rows, vision)
    assert first == written(0, rows, vision)
    assert first != written(1, rows, vision)
    assert first[1:2] == written(0, [1], vision.select(torch.tensor([1])))
    signs = {some.network.text.end, *some.network.text.silent}
    assert all(caption and signs.isdisjoint(caption) for caption in first)


def test_too_few_pictures_for_one_in_a_hundred_are_refused(
    retriever: Path, made: dict[str, CaptionerLearner]
) -> None:
    error = refusal(retriever)
    images = len(made["mrnn"].supplies.training_set)
    assert f"objective.share is 0.01: of {images} training images that is no picture" in error.problem
    assert "raise objective.share to 0.021 or more" in error.hint
    assert contrastive_pool(SpecificityConfig(share=0.021), made["mrnn"].supplies).shape[1] == 1


def test_a_retriever_of_other_sizes_is_refused_by_name(tmp_path: Path) -> None:
    folder = write_tiny_dual(tmp_path / "tiny", SENTENCES)
    content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    content["encoder"]["shapes"]["pooled"] = [16]
    (folder / "config.json").write_text(json.dumps(content), encoding="utf-8")
    assert str(folder) in refusal(folder).problem


def test_retrievers_that_cannot_teach_are_refused_by_name(retriever: Path) -> None:
    clip = refusal(retriever, "objective.retriever=clip:somewhere")
    assert "clip:somewhere: gradients pass to words through dual encoders only" in clip.problem
    assert "no retriever is called so" in refusal(retriever, "objective.retriever=nobody").problem
    assert "the captioner writes pieces of words" in refusal(retriever, captioner="prefix").problem


def test_training_stops_by_the_mean_rank_of_the_own_picture(retriever: Path, tmp_path: Path) -> None:
    stop = ("training.stop_metric=mean-rank", f"training.rank_by={retriever}")
    some = specific(retriever, *stop, "training.epochs=1", "training.images_per_batch=16")
    judge, captions = load_retriever(retriever), greedy_captions(some.ready)
    pictures = [example.path for example in some.ready.val_set.examples]
    scores = judge.scores(captions, pictures)
    by_hand = [
        sum(row[other] >= row[own] for other in range(len(row)) if other != own)
        for own, row in enumerate(scores)
    ]
    rank = Ranking(str(retriever), some.ready.val_set.examples)
    assert rank(greedy_captions(some.ready)).tolist() == by_hand
    run = train(some.recipe, tmp_path / "run")
    logged = [
        line["validation"]
        for line in map(json.loads, run.metrics.read_text().splitlines())
        if "validation" in line
    ]
    assert logged
    assert all(0 <= line["mean_rank"] <= len(pictures) - 1 for line in logged)
    assert all(0 <= line["recall"] <= 1 <= line["words"] for line in logged)
    worse = Fit(1.0, 1.0, 0.0, mean_rank=3.0)
    assert Fit(9.0, 9.0, 0.0, mean_rank=2.0).better("mean-rank", worse.mean_rank)
    assert not worse.better("mean-rank", 2.0)
