"""Ensembles: the two means against NumPy, their laws, and folders that do not go together."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from safetensors.torch import load_file

from tellapart.captioners.ensemble import Ensemble
from tellapart.captioners.folder import (
    Decoding,
    SavedCaptioner,
    build_captioner,
    describe_captioner,
    load_captioner,
    save_captioner,
)
from tellapart.captioners.parts import CAPTIONERS
from tellapart.captioners.settings.ensemble import EnsembleConfig, Mean
from tellapart.data.vocabulary import Vocabulary
from tellapart.data.word_text import WordText
from tellapart.decoding.search import beam
from tellapart.ensembles import join, write_ensemble
from tellapart.errors import TellapartError
from tellapart.testing import prepare
from tellapart.testing.subject import TEXT, TRAITS
from tellapart.types import AnyCaptioner

MEANS: tuple[Mean, ...] = get_args(Mean)
VISION = prepare("mrnn").vision
TOKENS = torch.tensor([[[2, 1, 3, 5]]]).expand(len(VISION), 2, 4)


def member(seed: int, name: str = "mrnn", text: WordText = TEXT, concepts: int = 0) -> AnyCaptioner:
    torch.manual_seed(seed)
    config = CAPTIONERS.get(name).configure({"concepts": concepts} if concepts else {}, preset="tiny")
    return build_captioner(name, config, text=text, traits=TRAITS).double().eval()


def test_it_reads_no_more_than_each_of_its_members() -> None:
    short, long, any_length = member(1, "transformer"), member(2, "transformer"), member(3)
    assert Ensemble([any_length], mean="probabilities").longest is None
    short.longest = 7
    assert Ensemble([any_length, long, short], mean="probabilities").longest == 7


def log_probabilities(captioner: AnyCaptioner) -> torch.Tensor:
    with torch.no_grad():
        return captioner.predict(VISION, TOKENS).logits.log_softmax(-1)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 1000), min_size=1, max_size=4))
def test_both_means_are_those_of_the_book(seeds: list[int]) -> None:
    members = [member(seed) for seed in seeds]
    each = np.stack([np.exp(log_probabilities(captioner).numpy()) for captioner in members])
    arithmetic = each.mean(0)
    geometric = each.prod(0) ** (1 / len(members))
    geometric /= geometric.sum(-1, keepdims=True)
    means: dict[Mean, Any] = {"probabilities": arithmetic, "log-probabilities": geometric}
    for mean, expected in means.items():
        with torch.no_grad():
            prediction = Ensemble(members, mean=mean).predict(VISION, TOKENS)
        np.testing.assert_allclose(prediction.logits.exp().numpy(), expected, rtol=1e-9)
        assert (prediction.hidden, prediction.attention) == ((), ())


@pytest.mark.parametrize("mean", MEANS)
def test_one_or_equals_are_the_member_itself(mean: Mean) -> None:
    alone = log_probabilities(member(1))
    for members in ([member(1)], [member(1), member(1), member(1)]):
        torch.testing.assert_close(log_probabilities(Ensemble(members, mean=mean)), alone)


@pytest.mark.parametrize("mean", MEANS)
def test_the_order_of_members_is_nothing(mean: Mean) -> None:
    one, two, three = member(1), member(2, "adaptive"), member(3, "rnn-base")
    forth, back = Ensemble([one, two, three], mean=mean), Ensemble([three, two, one], mean=mean)
    torch.testing.assert_close(log_probabilities(forth), log_probabilities(back))
    assert forth.needs == {"pooled", "grid"}


def test_members_must_write_in_the_same_words() -> None:
    other = member(2, text=WordText(Vocabulary(("other", "words")), TEXT.rules))
    with pytest.raises(TellapartError, match="members 1 and 3 of the ensemble write in different words"):
        Ensemble([member(1), member(3), other], mean="probabilities")


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ([], "at least 1 item"),
        ([{"name": "mrnn"}, {}], "member 2: needs a name"),
        ([{"name": "mrn"}], "member 1: no captioner is called 'mrn'; did you mean"),
        ([{"name": "mrnn", "multimodal": 0}], "member 1: multimodal: Input should be greater than 0"),
        ([{"name": "mrnn", "width": 3}], "member 1: width: Extra inputs are not permitted"),
    ],
)
def test_settings_that_make_no_members_are_refused(members: list[dict[str, object]], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        EnsembleConfig(members=members)


def test_settings_hold_every_setting_of_every_member() -> None:
    (section,) = EnsembleConfig(members=[{"name": "mrnn", "multimodal": 9}]).members
    assert section == {"name": "mrnn", **CAPTIONERS.get("mrnn").configure({"multimodal": 9}).model_dump()}


@pytest.fixture
def keep(tmp_path: Path) -> Callable[..., Path]:
    """Write a captioner to a folder of its own."""

    def write(
        seed: int,
        name: str = "mrnn",
        dtype: torch.dtype = torch.float16,
        concepts: int = 0,
        repeats: bool = True,
    ) -> Path:
        config = CAPTIONERS.get(name).configure({"concepts": concepts} if concepts else {}, preset="tiny")
        captioner = member(seed, name, concepts=concepts).float()
        section = {"name": name, **config.model_dump()}
        described = describe_captioner(
            captioner,
            section=section,
            traits=TRAITS,
            decoding=Decoding(seed, 5 * seed, repeats=repeats),
        )
        folder = tmp_path / f"{name}-{seed}"
        save_captioner(folder, SavedCaptioner(captioner, described), dtype=dtype)
        return folder

    return write


@pytest.mark.parametrize("mean", MEANS)
def test_folders_become_one_that_stands_alone(mean: Mean, keep: Callable[..., Path], tmp_path: Path) -> None:
    # One member looks at class names, the other does not and so has not kept them.
    folders = [keep(1), keep(2, "adaptive", concepts=2)]
    members = [load_captioner(folder).captioner for folder in folders]
    write_ensemble(folders, tmp_path / "both", mean=mean)
    for folder in folders:
        shutil.rmtree(folder)
    loaded = load_captioner(tmp_path / "both")
    assert (loaded.settings.width, loaded.settings.max_words) == (2, 10)
    assert loaded.settings.encoder == TRAITS
    assert loaded.captioner.needs == {"pooled", "grid", "classes"}
    expected = Ensemble([each.double() for each in members], mean=mean)
    torch.testing.assert_close(log_probabilities(loaded.captioner.double()), log_probabilities(expected))
    found, wanted = (beam(each, VISION, width=3, max_words=5) for each in (loaded.captioner, expected))
    assert torch.equal(found.tokens, wanted.tokens)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_weights_are_kept_as_they_were(dtype: torch.dtype, keep: Callable[..., Path], tmp_path: Path) -> None:
    folders = [keep(1, dtype=dtype), keep(2, dtype=torch.float16)]
    write_ensemble(folders, tmp_path / "both")
    both = load_captioner(tmp_path / "both").captioner.state_dict()
    for number, folder in enumerate(folders):
        for name, weight in load_captioner(folder).captioner.state_dict().items():
            assert torch.equal(both[f"members.{number}.{name}"], weight)
    assert {weight.dtype for weight in load_file(tmp_path / "both" / "model.safetensors").values()} == {dtype}


def test_an_ensemble_may_be_a_member(keep: Callable[..., Path], tmp_path: Path) -> None:
    folders = [keep(1), keep(2)]
    write_ensemble(folders, tmp_path / "two")
    nested = join([tmp_path / "two", folders[0], folders[1], tmp_path / "two"])
    flat = join(folders)
    torch.testing.assert_close(
        log_probabilities(nested.captioner.double()), log_probabilities(flat.captioner.double())
    )


def change(folder: Path, keys: list[str], value: object) -> None:
    content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    inner = content
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    (folder / "config.json").write_text(json.dumps(content), encoding="utf-8")


@pytest.mark.parametrize(
    ("keys", "value", "said"),
    [
        (["fingerprint"], "another", "their vocabularies differ"),
        (["text"], None, "one writes words of a vocabulary, the other pieces of a tokenizer"),
        (["encoder", "identity"], "newer", r"different encoders \(testing and newer\)"),
        (["encoder", "shapes", "grid"], [4, 5], "different encoders"),
    ],
)
def test_what_does_not_go_together_is_said_before_weights_are_read(
    keys: list[str], value: object, said: str, keep: Callable[..., Path]
) -> None:
    one, other = keep(1), keep(2)
    change(other, keys, value)
    (other / "model.safetensors").unlink()
    with pytest.raises(TellapartError, match=said) as caught:
        join([one, other])
    assert caught.value.problem.startswith(f"{one} and {other}: ")
    assert "\n" not in caught.value.problem
    assert caught.value.hint.startswith("an ensemble needs captioners")


def test_one_folder_is_no_ensemble(keep: Callable[..., Path]) -> None:
    with pytest.raises(TellapartError, match="at least two captioners, not 1"):
        join([keep(1)])


def test_nothing_is_written_over(keep: Callable[..., Path], tmp_path: Path) -> None:
    folders = [keep(1), keep(2)]
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(TellapartError, match="there is something at this place already"):
        write_ensemble(folders, folders[0])
    assert sorted(tmp_path.rglob("*")) == before
    (tmp_path / "empty").mkdir()
    write_ensemble(folders, tmp_path / "empty")
    assert load_captioner(tmp_path / "empty").settings.captioner["name"] == "ensemble"


@pytest.mark.parametrize("repeats", [True, False])
def test_who_joins_one_that_repeats_no_word_repeats_none(repeats: bool, keep: Callable[..., Path]) -> None:
    assert join([keep(1), keep(2, repeats=repeats)]).settings.repeats == repeats
