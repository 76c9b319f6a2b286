"""A plan that cannot be carried out is refused before anything is looked at."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tellapart.collection.plan import Plan
from tellapart.errors import TellapartError


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"neighbours": 0}, "0 neighbours were asked for"),
        ({"effort": 4}, "effort is 4"),
        ({"effort": -1}, "effort is -1"),
        ({"fit": -0.1}, "fit is -0.1"),
        ({"fit": math.nan}, "fit is nan"),
        ({"fit": math.inf}, "fit is inf"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(setting: dict[str, Any], said: str) -> None:
    with pytest.raises(TellapartError, match=said) as caught:
        Plan(**setting)
    assert "take" in caught.value.hint or "ask" in caught.value.hint
