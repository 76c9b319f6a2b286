"""What tests of collections share: how many pictures a captioner was shown."""

from __future__ import annotations

import pytest

from tellapart.captioners.folder import SavedCaptioner
from tellapart.captioning import Candidate, Wish, describe
from tellapart.collection import gathering
from tellapart.types import Vision


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pictures were given their first candidates, each time."""
    counts: list[int] = []

    def counted(saved: SavedCaptioner, vision: Vision, wish: Wish) -> list[tuple[Candidate, ...]]:
        counts.append(len(vision))
        return describe(saved, vision, wish)

    monkeypatch.setattr(gathering, "describe", counted)
    return counts
