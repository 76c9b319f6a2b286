"""`tellapart caption --style`: a name for flags, each of which can still be given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.cli.apart import Caption, draw_photos, records, write_retriever

from tellapart.collection.styles import STYLES
from tellapart.data.small_words import FUNCTION_WORDS

if TYPE_CHECKING:
    from tests.conftest import Outcome


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw_photos(tmp_path_factory.mktemp("styles") / "photos")


@pytest.fixture(scope="module")
def retriever(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_retriever(tmp_path_factory.mktemp("retrievers") / "tiny")


@pytest.fixture
def caption(tellapart: Caption, tiny_captioner: Path, retriever: Path, photos: Path) -> Caption:
    """Caption the photographs with the tiny captioner and the tiny retriever."""

    def run(*flags: str | Path) -> Outcome:
        return tellapart(
            "caption", photos, "--captioner", tiny_captioner, "--retriever", retriever, "--json", *flags
        )

    return run


def spelled_out(name: str) -> Sequence[str]:
    style = STYLES[name]
    beam = () if style.beam is None else ("--beam", str(style.beam))
    penalty = () if style.length_penalty is None else ("--length-penalty", str(style.length_penalty))
    own = ("--apart", style.apart, "--effort", str(style.effort), "--fit", str(style.fit))
    return (*own, "--agree", str(style.agree), *beam, *penalty)


@pytest.mark.parametrize("name", STYLES)
def test_a_style_is_its_flags(name: str, caption: Caption) -> None:
    # Beside another style: what is spelled out wins over all of it.
    other = "accurate" if name == "distinctive" else "distinctive"
    found = records(caption("--style", name))
    assert found == records(caption("--style", other, *spelled_out(name)))
    assert len(found) > 1


def test_without_a_word_captions_are_balanced(caption: Caption) -> None:
    assert records(caption()) == records(caption("--style", "balanced"))


def test_styles_differ(caption: Caption) -> None:
    ways = {name: records(caption("--style", name))[0] for name in STYLES}
    assert ways["accurate"]["agree"] > ways["balanced"]["agree"]
    assert ways["balanced"]["effort"] < ways["distinctive"]["effort"]
    assert ways["balanced"]["fit"] > ways["distinctive"]["fit"]


def test_an_unknown_style_is_refused_with_those_there_are(caption: Caption) -> None:
    outcome = caption("--style", "poetic")
    assert outcome.code == 2
    assert all(name in outcome.err for name in ("poetic", *STYLES))


@pytest.mark.parametrize(("flag", "repeats"), [("--repeats", True), ("--no-repeats", False)])
def test_whether_words_come_twice_is_noted_and_kept(flag: str, repeats: bool, caption: Caption) -> None:
    found = records(caption(flag))
    assert all(record["words"]["repeats"] is repeats for record in found)
    words = [one["caption"].split() for record in found for one in record["candidates"]]
    content = [[word for word in some if word not in FUNCTION_WORDS] for some in words]
    assert any(len(set(some)) < len(some) for some in content) == repeats


def test_captions_drawn_by_chance_are_agreed_with_and_noted(caption: Caption) -> None:
    found = records(caption("--agree", "5"))
    assert all(record["agree"] == len(record["drawn"]) == 5 for record in found)
    assert all("agreement" in one for record in found for one in record["candidates"])
    plain = records(caption("--agree", "0"))
    assert all("drawn" not in record for record in plain)


def test_a_single_picture_is_held_against_its_draws_too(
    tellapart: Caption, tiny_captioner: Path, retriever: Path, photos: Path
) -> None:
    flags = ("--captioner", tiny_captioner, "--retriever", retriever, "--json", "--style", "accurate")
    (record,) = records(tellapart("caption", photos / "00.png", *flags))
    assert len(record["drawn"]) == STYLES["accurate"].agree
    assert record["neighbours"] == []


def test_each_by_itself_can_agree_with_its_draws(caption: Caption) -> None:
    found = records(caption("--apart", "off", "--agree", "5"))
    assert all(record["apart"] == "off" and record["neighbours"] == [] for record in found)
    assert all(len(record["drawn"]) == 5 for record in found)
