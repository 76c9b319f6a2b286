"""`tellapart audit` sums up on stdout, says what is amiss on stderr, and writes a page."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.retrievers.tiny_dual import write_tiny_dual

from tellapart.auditing import audit as audit_in_python
from tellapart.retrievers.loading import load_retriever

if TYPE_CHECKING:
    from tests.conftest import Outcome

    Tellapart = Callable[..., Outcome]


@pytest.fixture(scope="session")
def retriever(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Untrained, but real: it looks at raw pixels, and knows a few words."""
    folder = tmp_path_factory.mktemp("retrievers") / "tiny"
    return write_tiny_dual(folder, ["a red circle left of the blue square", "two green triangles"])


@pytest.fixture
def photos(scenes: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for path in sorted((scenes / "images").iterdir())[:8]:
        shutil.copy(path, folder)
    return folder


@pytest.fixture
def captions(photos: Path) -> Path:
    said = ["a red circle", "two green triangles", "the blue square", "a red circle"]
    rows = [
        {"image": path.name, "caption": text}
        for path, text in zip(sorted(photos.iterdir()), 2 * said, strict=True)
    ]
    source = photos.parent / "captions.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return source


@pytest.fixture
def audit(tellapart: Tellapart, retriever: Path) -> Tellapart:
    """Run the verb with that retriever."""

    def run(*arguments: str | Path) -> Outcome:
        return tellapart("audit", *arguments, "--by", retriever)

    return run


def notes(outcome: Outcome) -> list[str]:
    return [line for line in outcome.err.splitlines() if not line.endswith(" …")]


def test_json_is_what_python_finds(audit: Tellapart, captions: Path, photos: Path, retriever: Path) -> None:
    outcome = audit(captions, "--images", photos, "--json")
    assert outcome.code == 0
    found: dict[str, Any] = json.loads(outcome.out)
    assert found == audit_in_python(captions, photos, by=load_retriever(retriever)).to_json()
    assert len(found["each"]) == found["captions"] == found["pictures"] == 8
    assert found["judge"]["name"] == str(retriever)
    assert [len(group["images"]) for group in found["shared_captions"]] == [4, 2, 2]
    pictures = sorted(photos.iterdir())
    scores = load_retriever(retriever).scores(["two green triangles"], pictures)[0]
    assert found["each"][1]["rank"] == int((scores >= scores[1]).sum())


def test_the_summary_says_the_same(audit: Tellapart, captions: Path, photos: Path) -> None:
    found = json.loads(audit(captions, "--images", photos, "--json", "--neighbours", "3").out)
    outcome = audit(captions, "--images", photos, "--neighbours", "3")
    lines = outcome.out.splitlines()
    assert lines[0].startswith(f"8 captions, 8 pictures in {photos}, by ")
    assert lines[1] == "  whether it taught the captioner is not known"
    for start, key in (("in the whole folder", "whole_folder"), ("among the 3 nearest", "neighbours")):
        (line,) = (line for line in lines if line.startswith(start))
        values = found["recalls"][key]
        assert line.split()[-4:] == [
            f"{values['R@1']:.1%}",
            f"{values['R@5']:.1%}",
            f"{values['mean_rank']:.1f}",
            "8",
        ]
    (line,) = (line for line in lines if line.startswith("captions that another picture has too"))
    assert "8  “a red circle” × 4" in line
    first = found["confused"][0]["picture"]
    assert f"  {first['caption']}" in lines
    words = ", ".join(word["word"] for word in first["separating_words"]) or "none"
    assert f"    is of {Path(first['image']).name}  words for it: {words}" in lines


def test_what_is_amiss_is_said_and_the_audit_runs(audit: Tellapart, captions: Path, photos: Path) -> None:
    (photos / "bad.png").write_text("words")
    (photos / "more\nlines.png").write_bytes((photos / "000001.png").read_bytes())
    (photos / "loop").symlink_to(photos)
    with captions.open("a") as file:
        file.write('{"image": "gone.png", "caption": "gone"}\n')
    outcome = audit(captions, "--images", photos)
    assert outcome.code == 0
    assert notes(outcome) == [
        f"note: left out: {photos / 'bad.png'} is not a picture of a known format",
        f"note: 1 caption is left out: there is no picture of image 'gone' in {photos}",
        "note: 1 picture has no caption: looked through all the same (more\\nlines.png)",
        "note: each picture has but 8 neighbours",
    ]
    assert "near-duplicates aside" in outcome.out
    assert "000001.png = more\\nlines.png" in outcome.out


def test_sidecars_need_no_further_folder(audit: Tellapart, photos: Path) -> None:
    for path in sorted(photos.iterdir()):
        path.with_suffix(".txt").write_text("a red circle\n")
    outcome = audit(photos)
    assert outcome.code == 0
    assert outcome.out.startswith("8 captions, 8 pictures")


def test_a_page_is_written_beside_the_answer(
    audit: Tellapart, captions: Path, photos: Path, tmp_path: Path
) -> None:
    page = tmp_path / "new" / "audit.html"
    outcome = audit(captions, "--images", photos, "--page", page, "--pairs", "2", "--json")
    assert outcome.code == 0
    assert len(json.loads(outcome.out)["confused"]) == 2
    assert notes(outcome)[-1] == f"page: {page}"
    assert "Do these captions tell their pictures apart?" in page.read_text(encoding="utf-8")


def test_one_picture_is_audited_by_its_words(audit: Tellapart, captions: Path, photos: Path) -> None:
    for path in sorted(photos.iterdir())[1:]:
        path.unlink()
    outcome = audit(captions, "--images", photos)
    assert outcome.code == 0
    assert "R@1" not in outcome.out
    assert "captions that repeat themselves" in outcome.out
    assert any("but one picture" in note for note in notes(outcome))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--page", "photo.jpg"], "--page photo.jpg: not the name of a page"),
        ([], "it is not said where the pictures of"),
        (["--images", "nowhere"], "nowhere does not exist"),
        (["--images", ".", "--temperature", "0"], "the temperature is 0.0"),
    ],
)
def test_what_a_user_can_mend_is_one_complaint(
    audit: Tellapart, captions: Path, arguments: list[str], problem: str
) -> None:
    outcome = audit(captions, *arguments)
    assert (outcome.code, outcome.out) == (1, "")
    complaint, hint = outcome.err.splitlines()
    assert complaint.startswith(f"error: {problem}")
    assert hint.startswith("  hint: ")


def test_an_empty_file_is_a_complaint(audit: Tellapart, photos: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    outcome = audit(empty, "--images", photos)
    assert (outcome.code, outcome.out) == (1, "")
    assert f"error: {empty}: there is no caption in it" in outcome.err
