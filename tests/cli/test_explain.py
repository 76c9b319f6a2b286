"""`tellapart explain` answers on stdout, says what is amiss on stderr, and writes a page."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.captioners.tiny_folder import write_tiny_captioner
from tests.report.page import Page
from tests.retrievers.tiny_dual import write_tiny_dual

from tellapart.explaining import explain as explain_in_python

if TYPE_CHECKING:
    from tests.conftest import Outcome

    Tellapart = Callable[..., Outcome]

CAPTION = "a red circle and the blue square"


@pytest.fixture(scope="module")
def captioner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_captioner(tmp_path_factory.mktemp("captioners") / "tiny", "adaptive")


@pytest.fixture(scope="module")
def retriever(tmp_path_factory: pytest.TempPathFactory) -> Path:
    captions = ["a red circle left of the blue square", "two green triangles and a dog"]
    return write_tiny_dual(tmp_path_factory.mktemp("retrievers") / "tiny", captions)


@pytest.fixture
def photos(scenes: Path, tmp_path: Path) -> Path:
    """Five drawn scenes."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for path in sorted((scenes / "images").iterdir())[:5]:
        shutil.copy(path, folder)
    return folder


@pytest.fixture
def explain(tellapart: Tellapart, captioner: Path, retriever: Path) -> Tellapart:
    """Run the verb with these two."""

    def run(*arguments: str | Path) -> Outcome:
        return tellapart("explain", *arguments, "--captioner", captioner, "--by", retriever)

    return run


def image_of(photos: Path) -> Path:
    return sorted(photos.iterdir())[1]


def answered(outcome: Outcome) -> dict[str, Any]:
    assert outcome.code == 0, outcome.err
    found = json.loads(outcome.out, parse_constant=pytest.fail)
    assert isinstance(found, dict)
    return found


def refused(outcome: Outcome, *said: str) -> None:
    assert (outcome.code, outcome.out) == (1, "")
    for each in said:
        assert each in outcome.err
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize("caption", [None, CAPTION])
def test_json_is_what_python_gives(
    caption: str | None, explain: Tellapart, photos: Path, captioner: Path, retriever: Path
) -> None:
    given = () if caption is None else ("--caption", caption)
    outcome = explain(image_of(photos), *given, "--neighbours", "3", "--json")
    found = answered(outcome)
    expected = explain_in_python(
        image_of(photos), caption=caption, captioner=str(captioner), by=str(retriever), neighbours=3
    )
    assert found == expected.to_json()
    assert outcome.err == "".join(f"note: {note}\n" for note in expected.notes)
    assert (found["folder"], found["given"]) == (str(photos), caption is not None)


def test_a_table_for_people_says_the_same(
    explain: Tellapart, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    found = answered(explain(image_of(photos), "--caption", CAPTION, "--neighbours", "3", "--json"))
    outcome = explain(image_of(photos), "--caption", CAPTION, "--neighbours", "3")
    assert outcome.code == 0
    lines = outcome.out.splitlines()
    assert lines[0] == f"{image_of(photos)}: {CAPTION}"
    assert f"margin {found['margin']:+.3f}: the strongest of 3 rivals, {found['strongest_rival']}" in lines[1]
    assert lines[3].split()[:5] == ["word", "margin", "closeness", "MLE", "SMILE"]
    for line, word in zip(lines[4:], found["words"], strict=False):
        shown = [
            word["word"],
            *(f"{round(word[name], 3) + 0.0:+.3f}" for name in ("margin_drop", "closeness_drop")),
        ]
        assert line.split()[:5] == [*shown, f"{word['mle']:.2f}", f"{word['smile']:.2f}"]
    whole = sum(word["mle"] for word in found["words"]) + found["end"]["mle"]
    assert lines[4 + len(found["words"])].split()[0] == "(end)"
    assert lines[5 + len(found["words"])].split()[:2] == ["sum", f"{whole:.2f}"]
    (ranked,) = [line for line in lines if line.startswith("by what they add to the margin: ")]
    order = [entry.split()[0] for entry in ranked.partition(": ")[2].split(", ")]
    assert order == [found["words"][place]["word"] for place in found["ranking"]]


def test_a_page_is_written(explain: Tellapart, photos: Path, tmp_path: Path) -> None:
    page = tmp_path / "why.html"
    outcome = explain(image_of(photos), "--caption", CAPTION, "--page", page)
    assert outcome.code == 0
    assert f"page: {page}" in outcome.err
    words = len(CAPTION.split())
    assert len(Page(page).pictures) == 1 + 5 + words  # itself; with its rivals; a map a word
    assert "the sentinel" in page.read_text(encoding="utf-8")


def test_a_page_that_is_none_is_refused_first(explain: Tellapart, photos: Path) -> None:
    refused(explain(image_of(photos), "--page", image_of(photos)), "not the name of a page")


def test_a_picture_without_rivals_is_still_explained(
    explain: Tellapart, photos: Path, tmp_path: Path
) -> None:
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(image_of(photos), alone)
    outcome = explain(next(alone.iterdir()), "--caption", CAPTION)
    assert outcome.code == 0
    assert f"note: {alone} holds no other picture: without a rival the margin has no meaning" in outcome.err
    lines = outcome.out.splitlines()
    assert lines[1].endswith("; no rival")
    assert lines[4].split()[1] == "–"
    assert any(line.startswith("by what they add to the closeness: ") for line in lines)


def test_other_pictures_may_lie_elsewhere(explain: Tellapart, photos: Path, scenes: Path) -> None:
    found = answered(explain(image_of(photos), "--among", scenes / "images", "--json"))
    assert (found["folder"], found["other_pictures"], len(found["rivals"])) == (
        str(scenes / "images"),
        59,
        10,
    )


def test_what_is_left_out_is_said(explain: Tellapart, photos: Path) -> None:
    image = image_of(photos)
    for number in range(12):
        (photos / f"bad {number:02}.png").write_bytes(b"GIF89a" + bytes([number]))
    outcome = explain(image, "--caption", CAPTION)
    assert outcome.code == 0
    assert outcome.err.count("note: left out: ") == 11
    assert "note: left out: 2 more, which --json names" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--caption", ""), "there is no word in the caption"),
        (("--by", "nobody"), "no retriever is called so"),
        (("--captioner", "nobody"), "nobody"),
        (("--among", "nowhere"), "nowhere"),
    ],
)
def test_what_cannot_be_explained_is_refused(
    arguments: tuple[str, ...],
    said: str,
    tellapart: Tellapart,
    photos: Path,
    captioner: Path,
    retriever: Path,
) -> None:
    given = dict(zip(arguments[::2], arguments[1::2], strict=True))
    settings = {"--captioner": str(captioner), "--by": str(retriever), **given}
    refused(
        tellapart("explain", image_of(photos), *(each for pair in settings.items() for each in pair)), said
    )


def test_a_file_that_is_no_picture_is_refused(explain: Tellapart, photos: Path) -> None:
    (photos / "note.png").write_text("no picture")
    refused(explain(photos / "note.png"), "note.png is not a picture of a known format")
    refused(explain(photos / "gone.png"), "gone.png does not exist")


def test_no_neighbours_are_wrong_usage(explain: Tellapart, photos: Path) -> None:
    assert explain(image_of(photos), "--neighbours", "0").code == 2
