"""A plan run to its end: reports, kept captions, and going on after a kill."""

from __future__ import annotations

import fcntl
import gzip
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import torch
from tests.report.page import Page
from tests.reproduction.tiny import PAPER, tiny_shop

from tellapart.errors import TellapartError
from tellapart.report.reproduction_charts import chapter_plots
from tellapart.report.reproduction_markdown import write_reproduction_markdown
from tellapart.report.reproduction_page import write_reproduction_page
from tellapart.reproduction.budget import Chosen, shorten
from tellapart.reproduction.findings import Findings, gather
from tellapart.reproduction.plan import Plan
from tellapart.reproduction.running import Screen, Workshop, minutes_left
from tellapart.reproduction.shelf import LOG, Shelf
from tellapart.reproduction.ways import WAYS
from tellapart.run import Run

FILES = {
    *(f"base-{seed}-{way}" for seed in (1, 2) for way in ("greedy", "samples5", LOG)),
    "base-1-ranks",  # of one seed alone
    *(f"more-1-{way}" for way in ("greedy", "beam10", "margin", "samples5", "penalties", LOG)),
}


def captions(folder: Path) -> dict[str, list[str]]:
    """All that is kept, but for when and where it was made."""
    found = {}
    for file in sorted(folder.glob("*.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            found[file.name.removesuffix(".jsonl.gz")] = lines.readlines()[1:]
    return found


def found_in(shop: Workshop) -> Findings:
    chosen = Chosen(shop.plan)
    return gather(
        shop, [PAPER], chosen, command="tellapart reproduce tiny", watch=lambda what, done, total: None
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, own_cache: Path) -> Workshop:
    shop = tiny_shop(tmp_path_factory.mktemp("finished"))
    shop.run()
    return shop


def test_everything_wanted_is_kept(finished: Workshop) -> None:
    kept = captions(finished.shelf.folder)
    assert kept.keys() == FILES
    assert {len(lines) for name, lines in kept.items() if not name.endswith(LOG)} == {
        len(finished.shown.test)
    }
    # Margin chooses among the captions of the beam.
    for line, beam in zip(kept["more-1-margin"], kept["more-1-beam10"], strict=True):
        (chosen,) = json.loads(line)["captions"]
        assert chosen in json.loads(beam)["captions"]


def test_words_cost_no_more_by_smile_than_by_likelihood(finished: Workshop) -> None:
    lines = [json.loads(line) for line in captions(finished.shelf.folder)["more-1-penalties"]]
    for line in lines:
        assert " ".join(word for word, _, _ in line["penalties"]) == line["captions"][0]
        assert all(0 <= smile <= mle for _, mle, smile in line["penalties"])
    found = found_in(finished)
    means = [np.mean([mle for _, mle, _ in line["penalties"]]) for line in lines]
    assert found.value("more/penalties", "Penalty-MLE") == pytest.approx(np.mean(means))


def test_figures_verdicts_and_reports(finished: Workshop, tmp_path: Path) -> None:
    found = found_in(finished)
    assert sorted(found.seeds("base/greedy")) == [1, 2]
    assert found.value("more/greedy", "CIDEr-D") is not None
    assert found.value("never/greedy", "CIDEr-D") is None
    (chapter,) = found.chapters
    verdicts = {one.claim.name: one.verdict for one in chapter.judged}
    assert verdicts["other"] == "not run"
    assert verdicts["longer"] in ("holds", "does not")
    assert verdicts["words"] in ("holds", "holds in part")
    assert json.loads(json.dumps(found.to_json()))["claims"][1]["verdict"] == "not run"

    write_reproduction_markdown(tmp_path / "tiny.md", found)
    told = (tmp_path / "tiny.md").read_text(encoding="utf-8")
    assert "| Base | paper | 0.1 | (cannot be read) | – |" in told
    assert "| Theirs alone | paper | 0.2 | 9.9 | 0.3 |" in told
    assert "| not run | not run | not run |" in told
    assert "tellapart reproduce tiny" in told
    assert finished.digest(finished.plan.methods["base"]) in told
    assert "It is very small." in told
    assert "by MLE → by SMILE" in told
    assert "training.rank_by={judge}" in told
    assert str(finished.out) not in told
    for plot in ("front", "figure-2", "figure-3", "learning-recall"):
        assert f"(tiny-{plot}.svg)" in told
        ET.parse(tmp_path / f"tiny-{plot}.svg")

    write_reproduction_page(tmp_path / "tiny.html", found)
    page = Page(tmp_path / "tiny.html")
    assert page.pictures
    assert all(source.startswith("data:image/jpeg;base64,") for source in page.sources)
    assert sum("SHA-256 of their ids" in text for text in page.texts) == 2  # captions, and what words cost
    assert any("Figure 3: how words grow" in text for text in page.texts)


def test_what_was_measured_is_not_measured_again(finished: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    before = found_in(finished)
    monkeypatch.setattr("tellapart.reproduction.measuring.measure", None)
    after = found_in(finished)
    assert after.to_json() == before.to_json()
    pairs = zip(before.chapters[0].judged, after.chapters[0].judged, strict=True)
    assert all(one.parts == other.parts for one, other in pairs)


def test_kept_captions_need_no_run_folder(finished: Workshop, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    shutil.copytree(finished.shelf.folder, kept)
    (kept / "more-1-margin.jsonl.gz").unlink()
    said: list[str] = []
    shop = tiny_shop(tmp_path / "elsewhere", kept=kept, screen=Screen(said.append))
    shop.run()
    # What is missing takes the run it is of, and that the one it goes on from; seed 2 is not trained.
    trained = {path.name for path in (shop.out / "runs").iterdir()}
    assert trained == {"judge-of-shapes-1", "teacher-of-shapes-1", "base-1", "more-1"}
    assert captions(kept) == captions(finished.shelf.folder)
    assert len(said) == 4


def test_what_is_kept_costs_no_time(finished: Workshop, tmp_path: Path) -> None:
    plan, ground = finished.plan, finished.ground
    retrievers = ground.pace * sum(method.minutes for method in ground.retrievers)
    nothing = Shelf(tmp_path, finished.shelf.ground)
    assert minutes_left(plan, nothing, ground) == pytest.approx(ground.pace * plan.minutes)
    assert minutes_left(plan, finished.shelf, ground) == pytest.approx(retrievers)
    for path in finished.shelf.folder.iterdir():
        if not path.name.startswith("more-1-greedy"):
            shutil.copy(path, tmp_path / path.name)
    greedy, base, more = (
        WAYS["greedy"].minutes,
        *(plan.methods[name].minutes for name in ("base", "more")),
    )
    both_again = ground.pace * (base + more + greedy)  # the base is needed once more, and written no more
    assert minutes_left(plan, nothing, ground) == pytest.approx(retrievers + both_again)


def test_another_methods_captions_are_refused(finished: Workshop, tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, "flickr8k")
    (job, *_) = (job for job in finished.plan.jobs if job.name == "base-1")
    shutil.copy(finished.shelf.path(job, "greedy"), tmp_path)
    with pytest.raises(TellapartError, match="on shapes than this plan's"):
        shelf.read(job, "greedy", digest=finished.digest(job.method, "greedy"))
    with pytest.raises(TellapartError, match="with other settings"):
        finished.shelf.read(job, "greedy", digest="another")
    with pytest.raises(TellapartError, match="with other settings"):
        finished.shelf.read(job, "greedy", digest=finished.digest(job.method, "samples5"))
    moved = Shelf(tmp_path / "moved", finished.shelf.ground)
    moved.folder.mkdir()
    other = replace(job, seed=2)
    shutil.copy(finished.shelf.path(job, "greedy"), moved.path(other, "greedy"))
    with pytest.raises(TellapartError, match="greedy of base, seed 1"):
        moved.read(other, "greedy", digest=finished.digest(job.method, "greedy"))
    shelf.path(job, "greedy").write_bytes(b"no gzip")
    with pytest.raises(TellapartError, match="no file of kept captions"):
        shelf.read(job, "greedy", digest="any")


def test_damaged_files_are_refused_before_anything_is_run(finished: Workshop, tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, finished.shelf.ground)
    shop = replace(finished, shelf=shelf)
    (job, *_) = (job for job in finished.plan.jobs if job.name == "base-1")
    path = Path(shutil.copy(finished.shelf.path(job, "greedy"), tmp_path))
    whole = path.read_bytes()
    shop.check_shelf()
    middle = len(whole) // 2
    for damaged in (
        whole[:middle],
        whole[:12] + b"\xff\xff\xff\xff" + whole[16:],
        b"",
        whole[:-9] + b"9" * 9,
    ):
        path.write_bytes(damaged)
        with pytest.raises(TellapartError, match="no file of kept captions"):
            shop.check_shelf()
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(gzip.decompress(whole).decode().splitlines(keepends=True)[:3])
    with pytest.raises(TellapartError, match="2 lines, of which each of"):
        found_in(shop)


@pytest.mark.parametrize("damage", [lambda whole: b"", lambda whole: whole[: len(whole) // 2]])
def test_damaged_scores_are_measured_anew(
    finished: Workshop, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    before = found_in(finished)
    shop = replace(finished, out=tmp_path)
    shutil.copytree(finished.out, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "scores" / "base-1-greedy.npz"
    path.write_bytes(damage(path.read_bytes()))
    assert found_in(shop).to_json()["cells"] == before.to_json()["cells"]


def test_another_training_is_not_laid_beside_what_is_kept(finished: Workshop, tmp_path: Path) -> None:
    shutil.copytree(finished.out, tmp_path, dirs_exist_ok=True)
    shop = replace(finished, out=tmp_path, shelf=Shelf(tmp_path / "captions", finished.shelf.ground))
    (job, *_) = (job for job in shop.plan.jobs if job.name == "base-1")
    kept = shop.shelf.read(job, "greedy", digest=shop.digest(job.method, "greedy"))
    shop.shelf.write(job, replace(kept.made, weights="of another training"), kept.entries)
    shop.shelf.path(job, "samples5").unlink()
    failed = shop.run()
    assert "base-1-greedy.jsonl.gz: written by another training" in failed["base-1"].problem
    assert not shop.shelf.holds(job, "samples5")


def test_another_training_may_write_what_is_compared_with_nothing_else(
    finished: Workshop, tmp_path: Path
) -> None:
    shutil.copytree(finished.out, tmp_path, dirs_exist_ok=True)
    shop = replace(finished, out=tmp_path, shelf=Shelf(tmp_path / "captions", finished.shelf.ground))
    (job, *_) = (job for job in shop.plan.jobs if job.name == "base-1")
    for way in ("greedy", "samples5"):
        kept = shop.shelf.read(job, way, digest=shop.digest(job.method, way))
        shop.shelf.write(job, replace(kept.made, weights="of another training"), kept.entries)
    shop.shelf.path(job, "ranks").unlink()
    assert shop.run() == {}
    assert captions(shop.shelf.folder) == captions(finished.shelf.folder)
    assert found_in(finished).trained_again == {}
    found = found_in(shop)
    assert found.trained_again == {"base, seed 1": ["ranks"]}
    write_reproduction_markdown(tmp_path / "tiny.md", found)
    told = (tmp_path / "tiny.md").read_text(encoding="utf-8")
    assert "on another machine, whose sums differ in the last bits: base, seed 1, for ranks." in told


@pytest.mark.parametrize(("way", "rounded"), [("ranks", True), ("greedy", False)])
def test_likelihoods_alone_are_of_rounded_products(
    finished: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, rounded: bool
) -> None:
    monkeypatch.setenv("TELLAPART_CACHE", str(tmp_path / "cache"))  # where no likelihoods are kept
    shutil.copytree(finished.out, tmp_path, dirs_exist_ok=True)
    shop = replace(finished, out=tmp_path, shelf=Shelf(tmp_path / "captions", finished.shelf.ground))
    (job, *_) = (job for job in shop.plan.jobs if job.name == "base-1")
    shop.shelf.path(job, way).unlink()
    seen: list[str] = []
    embed = torch.nn.Embedding.forward

    def watched(self: torch.nn.Embedding, tokens: torch.Tensor) -> torch.Tensor:
        seen.append(torch.get_float32_matmul_precision())
        return embed(self, tokens)

    monkeypatch.setattr(torch.nn.Embedding, "forward", watched)
    shop.run()
    assert ("medium" in seen) == rounded
    assert seen
    assert torch.get_float32_matmul_precision() == "highest"


def test_a_run_of_other_settings_is_refused(finished: Workshop, tmp_path: Path) -> None:
    out = tmp_path / "other"
    shutil.copytree(finished.out, out)
    shutil.rmtree(out / "captions")
    shop = tiny_shop(out)
    longer = replace(
        shop.plan.methods["more"], changes=(*shop.plan.methods["more"].changes, "training.epochs=2")
    )
    shop = replace(shop, plan=Plan({**shop.plan.methods, "more": longer}, shop.plan.ways))
    failed = shop.run()
    assert list(failed) == ["more-1"]
    assert "made with other settings" in failed["more-1"].problem
    assert not any(name.startswith("more") for name in captions(out / "captions"))


def test_the_best_is_named_against_the_first_row(finished: Workshop) -> None:
    found = found_in(finished)
    marks = {mark.name: mark for mark in found.marks(PAPER)}
    best = list(found.best(PAPER).values())
    assert best[0].accuracy == max(mark.accuracy for mark in marks.values())
    assert best[1].accuracy >= marks["base/greedy"].accuracy
    assert best[2].found == max(mark.found for mark in marks.values())
    without = replace(
        found, cells={name: seeds for name, seeds in found.cells.items() if name.method != "base"}
    )
    assert without.marks(PAPER)
    assert without.best(PAPER) == {}


def test_a_figure_of_fewer_epochs_shows_what_was_run(finished: Workshop) -> None:
    found = found_in(finished)
    chosen = Chosen(shorten(found.chosen.plan, 0.5), 0.5)
    curves = tuple(replace(curve, method=chosen.name(curve.method)) for curve in found.curves)
    smaller = replace(found, chosen=chosen, curves=curves)
    plots = {plot.name: plot for plot in chapter_plots(smaller.chapters[0], smaller)}
    assert [line.name for line in plots["figure-3"].lines] == ["more~0.5, seed 1"]


def test_a_killed_program_goes_on_where_it_was(finished: Workshop, tmp_path: Path) -> None:
    out = tmp_path / "killed"
    program = [sys.executable, "-m", "tests.reproduction.tiny", str(out)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "base-1" in line:
                break
        process.send_signal(signal.SIGKILL)
    said: list[str] = []
    tiny_shop(out, screen=Screen(said.append)).run()
    assert any("base-1" in line for line in said)
    assert captions(out / "captions") == captions(finished.shelf.folder)


def test_two_programs_in_one_folder_train_a_base_once(finished: Workshop, tmp_path: Path) -> None:
    out = tmp_path / "both"
    program = [sys.executable, "-m", "tests.reproduction.tiny", str(out)]
    programs = [subprocess.Popen(program, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    told = [process.communicate()[0] for process in programs]
    assert [process.returncode for process in programs] == [0, 0], told
    assert captions(out / "captions") == captions(finished.shelf.folder)
    entries = Run(out / "runs" / "base-1").entries()
    steps = [entry["step"] for entry in entries]
    assert steps == sorted(set(steps)), "one log of one training"


def test_what_another_program_is_at_is_left_to_it(finished: Workshop, tmp_path: Path) -> None:
    for part in ("runs", "settings"):
        shutil.copytree(finished.out / part, tmp_path / part)
    for name in ("base-1", "base-2", "more-1"):
        shutil.rmtree(tmp_path / "runs" / name)
    lock = tmp_path / "locks" / "base-1"
    lock.parent.mkdir()
    program = [sys.executable, "-m", "tests.reproduction.tiny", str(tmp_path)]
    with lock.open("wb") as held, subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert process.stdout is not None
        before = []
        for line in process.stdout:
            if line.startswith("waiting"):
                break
            before.append(line.split()[3])
        fcntl.flock(held, fcntl.LOCK_UN)
        after = [line.split()[3] for line in process.stdout]
    assert before == ["judge-of-shapes-1", "teacher-of-shapes-1", "base-2"]
    assert line == "waiting: another program is at base-1\n"
    assert after == ["base-1", "more-1"]
    assert captions(tmp_path / "captions") == captions(finished.shelf.folder)


def test_what_another_program_measures_is_read_when_it_is_done(
    finished: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = found_in(finished)
    shutil.copytree(finished.out, tmp_path, dirs_exist_ok=True)
    lock = tmp_path / "locks" / "base-1-greedy-figures"
    lock.parent.mkdir(exist_ok=True)
    with lock.open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        slept: list[float] = []

        def sleep(seconds: float) -> None:
            slept.append(seconds)
            fcntl.flock(held, fcntl.LOCK_UN)

        monkeypatch.setattr("tellapart.reproduction.measured.time.sleep", sleep)
        after = found_in(replace(finished, out=tmp_path))
    assert len(slept) == 1
    assert after.to_json()["cells"] == before.to_json()["cells"]
    assert list(after.cells) == list(before.cells)


def test_a_method_that_cannot_run_keeps_no_other_from_it(finished: Workshop, tmp_path: Path) -> None:
    out = tmp_path / "failing"
    for part in ("runs", "settings"):
        shutil.copytree(finished.out / part, out / part)
    shutil.rmtree(out / "runs" / "more-1")
    (out / "captions").mkdir()
    shop = tiny_shop(out)
    bad = replace(shop.plan.methods["more"], changes=("objective.name=unkt", "objective.teacher=nowhere"))
    shop = replace(shop, plan=Plan({**shop.plan.methods, "more": bad}, shop.plan.ways))
    failed = shop.run()
    assert list(failed) == ["more-1"]
    assert captions(out / "captions").keys() == {name for name in FILES if name.startswith("base")}
