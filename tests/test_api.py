"""The few names that a user imports."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from PIL import Image

import tellapart as package
from tellapart.captioning import Captioned, Words, find_captioner
from tellapart.errors import TellapartError, UnknownName

if TYPE_CHECKING:
    from tests.conftest import Outcome

    Tellapart = Callable[..., Outcome]

IMPORT = """
import sys, time
before = time.perf_counter()
import tellapart
print(time.perf_counter() - before)
heavy = {"torch", "numpy", "PIL", "pydantic", "typer", "onnxruntime"}
print(sorted(heavy & set(sys.modules)))
print(dir(tellapart))
print(tellapart.load_recipe("mrnn-shapes").data.format)
print("torch" in sys.modules)
"""


def test_importing_costs_nothing_until_something_is_used() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True)
    seconds, heavy, names, loaded, torch = done.stdout.splitlines()
    assert float(seconds) < 1
    assert heavy == "[]"
    assert names == "['TellapartError', 'load', 'load_recipe', 'load_retriever', 'score', 'search', 'train']"
    assert (loaded, torch) == ("shapes", "False")


def test_every_name_there_is_can_be_had() -> None:
    assert dir(package) == sorted(package.__all__)
    assert all(callable(getattr(package, name)) for name in dir(package))
    with pytest.raises(AttributeError, match="module 'tellapart' has no attribute 'lode'"):
        _ = package.lode
    assert package.__version__.count(".") == 2


def test_a_caption_of_one_file(tiny_captioner: Path, scenes: Path, tellapart: Tellapart) -> None:
    picture = scenes / "images" / "000007.png"
    describer = package.load(tiny_captioner)
    caption = describer.caption(picture)
    assert isinstance(caption, str)
    assert describer.caption(str(picture)) == caption
    assert tellapart("caption", picture, "--captioner", tiny_captioner).out == f"{picture}: {caption}\n"


def test_what_is_no_picture_raises_an_error_for_people(
    tiny_captioner: Path, scenes: Path, tmp_path: Path
) -> None:
    describer = package.load(tiny_captioner, cached=False)
    (tmp_path / "words.png").write_text("words")
    for path, said in (
        (tmp_path / "gone.png", "does not exist"),
        (tmp_path / "words.png", "is not a picture"),
        (scenes / "images", "is a folder, not a picture"),
    ):
        with pytest.raises(TellapartError) as caught:
            describer.caption(path)
        assert caught.value.problem.startswith(f"{path} {said}")
        assert caught.value.hint
    with pytest.raises(package.TellapartError, match="no captioner folder here"):
        package.load(tmp_path / "gone")


def test_captions_of_many_come_in_order_and_one_by_one(
    tiny_captioner: Path, scenes: Path, tmp_path: Path
) -> None:
    describer = package.load(tiny_captioner, cached=False)
    paths = sorted((scenes / "images").iterdir())
    asked = []

    def asking() -> Iterator[Path]:
        for path in paths:
            asked.append(path)
            yield path

    results = describer.caption_each(asking(), describer.wish())
    first = next(results)
    assert isinstance(first, Captioned)
    assert len(asked) < len(paths) / 2
    rest = [result.image for result in results if isinstance(result, Captioned)]
    assert [first.image, *rest] == paths

    Image.new("RGB", (5, 5)).save(tmp_path / "good.png")
    mixed = describer.caption_each([tmp_path / "bad.png", tmp_path / "good.png"], describer.wish())
    assert [type(result) for result in mixed] == [TellapartError, Captioned]


def test_the_captioners_own_settings_hold_unless_said_otherwise(tiny_captioner: Path) -> None:
    describer = package.load(tiny_captioner, cached=False)
    own = describer.wish()
    assert (own.width, own.max_words, own.keep, own.words) == (3, 8, 1, Words(repeats=True))
    other = describer.wish(width=2, keep=5, max_words=4, words=Words(prefix="a red"))
    assert (other.width, other.max_words, other.keep) == (5, 4, 5), "no fewer beams than captions to keep"
    assert other.words.prefix == "a red"
    with pytest.raises(TellapartError, match="has 5 words"):
        describer.wish(max_words=4, words=Words(prefix="a red circle on the"))
    with pytest.raises(TellapartError, match="cannot write 'zebra'"):
        describer.wish(words=Words(required=("zebra",)))


def test_a_captioner_is_found_by_folder_run_or_dot(
    tiny_captioner: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(tiny_captioner, tmp_path / "run" / "captioner")
    assert find_captioner(tmp_path / "run") == tmp_path / "run" / "captioner"
    assert find_captioner(str(tiny_captioner)) == tiny_captioner
    monkeypatch.chdir(tiny_captioner)
    for name in (".", "..", "./", Path()):
        assert find_captioner(name) == Path(name)


def test_an_error_keeps_its_hint_between_processes() -> None:
    error = TellapartError("what is wrong", hint="what to do")
    assert str(error) == "what is wrong\n  hint: what to do"
    for kind in (TellapartError, UnknownName):
        copy = pickle.loads(pickle.dumps(kind("what is wrong", hint="what to do")))
        assert type(copy) is kind
        assert (copy.problem, copy.hint, str(copy)) == (error.problem, error.hint, str(error))


def test_the_tokenizer_is_found_from_the_package_alone() -> None:
    code = "import tellapart; print(tellapart.metrics.tokenize('A dog.'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['a', 'dog']\n"
