"""`tellapart search` answers on stdout, says what is amiss on stderr, and writes a page."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.retrievers.tiny_dual import write_tiny_dual

from tellapart.retrievers.loading import load_retriever
from tellapart.searching import search as search_in_python

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
    """Eight drawn scenes, two of them with captions."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for path in sorted((scenes / "images").iterdir())[:8]:
        shutil.copy(path, folder)
        os.utime(folder / path.name, (1e9, 1e9))
    (folder / "000001.txt").write_text("a red circle\ntwo green triangles\n", encoding="utf-8")
    (folder / "000002.txt").write_text("the blue square\n", encoding="utf-8")
    return folder


@pytest.fixture
def search(tellapart: Tellapart, retriever: Path) -> Tellapart:
    """Run the verb with that retriever."""

    def run(*arguments: str | Path) -> Outcome:
        return tellapart("search", *arguments, "--retriever", retriever)

    return run


def answer(outcome: Outcome) -> dict[str, Any]:
    assert (outcome.code, outcome.err) == (0, "")
    found = json.loads(outcome.out)
    assert isinstance(found, dict)
    return found


def test_a_sentence_finds_what_python_finds(search: Tellapart, photos: Path, retriever: Path) -> None:
    found = answer(search("a red circle", photos, "-k", "3", "--json"))
    expected = search_in_python("a red circle", photos, 3, retriever=str(retriever))
    assert found == expected.to_json()
    pictures = sorted(photos.glob("*.png"))
    scores = load_retriever(retriever).scores(["a red circle"], pictures)[0]
    best = [str(path) for _, path in sorted(zip(-scores, pictures, strict=True))[:3]]
    assert [hit["image"] for hit in found["hits"]] == best


def test_plain_lines_say_the_same_as_json(search: Tellapart, photos: Path) -> None:
    found = answer(search("the blue square", photos, "--count", "8", "--json"))
    plain = search("the blue square", photos, "--count", "8")
    assert (plain.code, plain.err) == (0, "")
    lines = plain.out.splitlines()
    assert len(lines) == 8
    for line, hit in zip(lines, found["hits"], strict=True):
        caption = f": {hit['captions'][0]}" if hit["captions"] else ""
        assert line.startswith(f"{hit['score']:6.3f}  {hit['image']}{caption}")


def test_a_picture_finds_pictures_and_captions(search: Tellapart, photos: Path) -> None:
    query = photos / "000003.png"
    found = answer(search(query, photos, "-k", "2", "--json"))
    assert found["kind"] == "picture"
    assert found["hits"][0]["image"] == str(query)
    assert len(found["captions"]) == 2
    lines = search(query, photos, "-k", "2").out.splitlines()
    assert lines[0].endswith(f"{query} (same picture as the query)")
    assert lines[2] == ""
    assert len(lines) == 5
    for line, caption in zip(lines[3:], found["captions"], strict=True):
        assert line == f"{caption['score']:6.3f}  {caption['caption']} ({caption['images'][0]})"


def test_captions_of_a_file(search: Tellapart, photos: Path, scenes: Path) -> None:
    query = photos / "000003.png"
    found = answer(search(query, photos, "-k", "4", "--captions", scenes / "captions.jsonl", "--json"))
    known = [json.loads(line) for line in (scenes / "captions.jsonl").read_text().splitlines()]
    written = {caption for row in known for caption in row["captions"]}
    assert {line["caption"] for line in found["captions"]} <= written
    assert all(hit["captions"] for hit in found["hits"])


def test_bad_pictures_cost_a_line_each_and_the_others_are_searched(search: Tellapart, photos: Path) -> None:
    (photos / "bad.png").write_text("words")
    (photos / "gone.png").symlink_to("nowhere")
    for _ in range(2):
        outcome = search("a red circle", photos)
        assert outcome.code == 0
        assert len(outcome.out.splitlines()) == 8
        assert outcome.err.splitlines() == [
            f"note: left out: {photos / 'bad.png'} is not a picture of a known format",
            f"note: left out: {photos / 'gone.png'} is a link to a file that does not exist",
            f"note: {photos} has 8 pictures to search: all are shown",
        ]


def test_not_all_of_very_many_bad_pictures_are_named(search: Tellapart, photos: Path) -> None:
    for number in range(103):
        (photos / f"bad {number}.heic").touch()
    outcome = search("a red circle", photos, "-k", "1", "--json")
    assert outcome.code == 0
    lines = outcome.err.splitlines()
    assert len(lines) == 101
    assert lines[-1] == "note: left out: 3 more, which --json names"
    assert len(json.loads(outcome.out)["problems"]) == 103


def test_a_folder_of_bad_pictures_fails(search: Tellapart, tmp_path: Path) -> None:
    (tmp_path / "bad.png").write_text("words")
    outcome = search("a red circle", tmp_path, "--page", tmp_path / "page.html", "--json")
    assert (outcome.code, outcome.out) == (1, "")
    note, error, hint = outcome.err.splitlines()
    assert note == f"note: left out: {tmp_path / 'bad.png'} is not a picture of a known format"
    assert error.startswith(f"error: {tmp_path}: none of its pictures can be searched; the first: ")
    assert hint.startswith("  hint: ")
    assert not (tmp_path / "page.html").exists()


def test_words_that_are_not_known_are_named(search: Tellapart, photos: Path) -> None:
    some = search("a red zebra", photos, "-k", "1")
    assert (some.code, len(some.out.splitlines())) == (0, 1)
    assert some.err.startswith("note: the retriever ")
    assert "does not know 'zebra': the other words decide" in some.err
    none = search("quux zebra", photos)
    assert (none.code, none.out) == (1, "")
    assert none.err.startswith("error: the retriever ")
    assert "knows no word of the query: 'quux', 'zebra'\n  hint: " in none.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((" ", "."), "the query is empty"),
        (("red", "no such folder"), "no such folder does not exist"),
        (("red", "pyproject.toml"), "is not a folder"),
        (("red", "tests/cli"), "tests/cli has no pictures in it"),
        (("red", "tests/cli", "--page", "photo.jpg"), "--page photo.jpg: not the name of a page"),
    ],
)
def test_what_cannot_be_is_said_in_two_lines(
    search: Tellapart, arguments: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    outcome = search(*arguments)
    assert (outcome.code, outcome.out) == (1, "")
    problem, hint = outcome.err.splitlines()
    assert problem.startswith("error: ")
    assert said in problem
    assert hint.startswith("  hint: ")


def test_queries_captions_and_retrievers_that_are_none(
    tellapart: Tellapart, search: Tellapart, photos: Path
) -> None:
    for outcome, said in (
        (search(photos / "000001.txt", photos), "000001.txt is not a picture of a known format"),
        (search("gone.png", photos), "gone.png does not exist"),
        (search("red", photos, "--captions", photos / "gone.jsonl"), "gone.jsonl does not exist"),
        (tellapart("search", "red", photos, "--retriever", "nobody"), "nobody"),
    ):
        assert (outcome.code, outcome.out) == (1, "")
        assert said in outcome.err.splitlines()[0]


def test_impossible_numbers_and_indexes_are_wrong_usage(search: Tellapart, photos: Path) -> None:
    for arguments in (["-k", "0"], ["--count", "-2"], ["-k", "many"], ["--index", "annoy"], ["--pgae", "x"]):
        outcome = search("red", photos, *arguments)
        assert (outcome.code, outcome.out) == (2, "")
        assert "Traceback" not in outcome.err


def test_both_indexes_answer_alike(search: Tellapart, photos: Path) -> None:
    exact, faiss = (search("a red circle", photos, "--index", kind).out for kind in ("exact", "faiss"))
    assert exact == faiss != ""


def test_a_page_is_written_beside_the_answer(search: Tellapart, photos: Path, tmp_path: Path) -> None:
    page = tmp_path / "new folder" / "page.html"
    outcome = search(photos / "000001.png", photos, "-k", "3", "--page", page)
    assert (outcome.code, outcome.err) == (0, f"page: {page}\n")
    content = page.read_text(encoding="utf-8")
    assert content.count("<img") == 4
    assert "two green triangles" in content
    assert outcome.out == search(photos / "000001.png", photos, "-k", "3").out


def test_a_name_with_any_sign_stays_on_its_line(search: Tellapart, photos: Path) -> None:
    (photos / "000001.png").rename(photos / "two\nlines\x1b[1m.png")
    outcome = search("a red circle", photos, "-k", "8")
    assert len(outcome.out.splitlines()) == 8
    assert "\x1b" not in outcome.out
    assert "two\\nlines\\x1b[1m.png" in outcome.out


def test_an_older_store_is_made_again_with_a_note(search: Tellapart, photos: Path, own_cache: Path) -> None:
    first = search("a red circle", photos, "-k", "2")
    for table in (own_cache / "search").glob("*/table"):
        data = table.read_bytes()
        table.write_bytes(b"tellapart table 0" + data[data.index(b"\n") :])
    second = search("a red circle", photos, "-k", "2")
    assert second.out == first.out
    assert second.err.startswith("note: ")
    assert second.err.rstrip().endswith("was written by another version of tellapart: it is made again")
    third = search("a red circle", photos, "-k", "2")
    assert (third.out, third.err) == (first.out, "")


def test_captions_cannot_write_to_the_screen_what_they_like(tellapart: Tellapart, photos: Path) -> None:
    picture = next(photos.rglob("*.png"))
    picture.with_suffix(".txt").write_text("a \x1b[2Jdog\n")
    outcome = tellapart("search", str(picture), photos)
    assert outcome.code == 0, outcome.err
    assert "\x1b" not in outcome.out
    assert "a \\x1b[2Jdog" in outcome.out


def test_a_captioner_is_no_retriever(tellapart: Tellapart, photos: Path, tiny_captioner: Path) -> None:
    outcome = tellapart("search", "a dog", photos, "--retriever", tiny_captioner)
    assert outcome.code == 1
    assert f"{tiny_captioner}: a captioner stands there, no retriever" in outcome.err


def test_nothing_that_was_begun_goes_on_when_nobody_asks(photos: Path) -> None:
    """The look at the folder begins before it is known that only the help is wanted."""
    program = (
        "import os, sys, time\n"
        "from tellapart.retrievers.store import look\n"
        "look.look = lambda folder: time.sleep(100)\n"
        "sys.argv = ['tellapart', 'search', '--help', sys.argv[1]]\n"
        "begin = look.begin_to_look\n"
        "def begin_and_tell(arguments):\n"
        "    begin(arguments)\n"
        "    (other,) = look._begun.values()\n"
        "    print('number', other.number, flush=True)\n"
        "look.begin_to_look = begin_and_tell\n"
        "from tellapart.__main__ import main\n"
        "main()\n"
    )
    command = [sys.executable, "-c", program, str(photos)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    number = next(line for line in done.stdout.splitlines() if line.startswith("number"))
    with pytest.raises(ProcessLookupError):
        os.kill(int(number.split()[1]), 0)
