"""What several tests share: a cache of their own, tiny captioners, drawn pictures, the command line."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

# Tiny tensors gain nothing from a second core, and two threads that share one lose much.
os.environ["OMP_NUM_THREADS"] = "1"

import hypothesis
import pytest
import torch

from tellapart.captioners.folder import (
    Decoding,
    SavedCaptioner,
    build_captioner,
    describe_captioner,
    save_captioner,
)
from tellapart.captioners.settings.mrnn import MRNNConfig
from tellapart.data.shapes.dataset import write_shapes
from tellapart.data.text import PRESETS
from tellapart.data.vocabulary import Vocabulary
from tellapart.data.word_text import WordText
from tellapart.vision.encoder import traits_of
from tellapart.vision.patches import Patches

# Times mean nothing on a shared machine, and a submission should not fail by the luck of a draw.
hypothesis.settings.register_profile("tellapart", deadline=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("tellapart")


def pytest_configure() -> None:
    """A shell ignores Ctrl-C on behalf of what it runs in the background; tests of Ctrl-C need it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real photographs and captions; once it is named, a missing file fails a test."""
    folder = os.environ.get("TELLAPART_DATA")
    if not folder:
        pytest.skip("TELLAPART_DATA is not set: no real photographs to test on")
    return Path(folder)


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Path]:
    """Tests never touch the user's cache; encoders are exported once a session.

    METEOR's index and compiled code outlive the session in pytest's own cache, for they take a minute.
    """
    folder = tmp_path_factory.mktemp("cache")
    for name in ("meteor", "compiled"):
        (folder / name).symlink_to(pytestconfig.cache.mkdir(f"kept-{name}"), target_is_directory=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TELLAPART_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of 60 drawn scenes: images/ and captions.jsonl."""
    return write_shapes(tmp_path_factory.mktemp("drawn") / "shapes", count=60, seed=3)


@pytest.fixture(scope="session")
def tiny_captioner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small untrained m-RNN that looks at raw pixels: says nonsense, but at once."""
    vocabulary = Vocabulary(
        ("a", "red", "blue", "circle", "square", "on", "the", "left", "right", "photo", "of")
    )
    text, traits = WordText(vocabulary, PRESETS["mrnn"]), traits_of(Patches())
    config = MRNNConfig(embedding_one=8, embedding_two=12, multimodal=16)
    torch.manual_seed(0)
    captioner = build_captioner("mrnn", config, text=text, traits=traits)
    section = {"name": "mrnn", **config.model_dump()}
    settings = describe_captioner(captioner, section=section, traits=traits, decoding=Decoding(3, 8))
    folder = tmp_path_factory.mktemp("captioners") / "tiny"
    save_captioner(folder, SavedCaptioner(captioner, settings), dtype=torch.float16)
    return folder


@dataclass(frozen=True)
class Outcome:
    """What a command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def tellapart(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run the command line in this process, as a shell would."""
    from tellapart.cli import main

    def run(*arguments: str | Path) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["tellapart", *map(str, arguments)])
        capfd.readouterr()
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        return Outcome(code, *capfd.readouterr())

    return run
