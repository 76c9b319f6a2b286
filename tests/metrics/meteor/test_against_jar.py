"""Captions of many kinds, scored here and by the jar, in one call of it: it takes ten seconds to start."""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import pytest

from tellapart.errors import TellapartError
from tellapart.metrics.meteor.jar import _read, meteor_by_jar
from tellapart.metrics.meteor.resources import ResourceFiles, Resources
from tellapart.metrics.meteor.score import meteor, segment_scores

IMAGES = 1_500


def test_the_jar_counts_the_same(writer: Any, meteor_files: ResourceFiles, resources: Resources) -> None:
    chance = random.Random(int(os.environ.get("TELLAPART_SEED", "3")))  # to look further, name another
    images = [writer.image(chance) for _ in range(IMAGES)]
    candidates, references = [image[0] for image in images], [image[1] for image in images]
    steps: list[tuple[int, int]] = []
    theirs = meteor_by_jar(candidates, references, meteor_files, watch=lambda *step: steps.append(step)).each
    ours = meteor(candidates, references, resources).each
    assert steps == [(done, IMAGES) for done in range(1, IMAGES + 1)]
    assert (theirs[:, 4:20].reshape(-1, 4, 4).sum(axis=(0, 2)) > 20).all(), "each module had work to do"
    wrong = np.flatnonzero((ours != theirs).any(axis=1))
    assert [(images[place], ours[place].tolist(), theirs[place].tolist()) for place in wrong] == []
    assert 0.2 < segment_scores(ours).mean() < 0.8


def test_a_jar_that_is_none_is_an_error(tiny_files: ResourceFiles) -> None:
    with pytest.raises(TellapartError, match=r"the METEOR jar failed with exit code 1"):
        meteor_by_jar(["a"], [["a"]], tiny_files)


def test_answers_that_are_no_statistics_are_an_error() -> None:
    line = b" ".join([b"1.0"] * 23) + b"\n"
    seen: list[int] = []
    found = _read([line, line], lambda done, total: seen.append(done), 3)
    assert found.tolist() == [[1] * 23] * 2
    assert seen == [1, 2]
    for strange in (b"Error: specify SCORE\n", b"1.0 2.0\n", b"\n"):
        with pytest.raises(TellapartError, match="to caption 1 it answered") as caught:
            _read([line, strange], lambda done, total: None, 3)
        assert "pycocoevalcap 1.2" in caught.value.hint
    with pytest.raises(TellapartError, match="to caption 1 it answered"):
        _read([line, line], lambda done, total: None, 1)


def test_captions_without_references_do_not_reach_the_jar(meteor_files: ResourceFiles) -> None:
    with pytest.raises(TellapartError, match="candidate 0 has no references"):
        meteor_by_jar(["a"], [[]], meteor_files)
