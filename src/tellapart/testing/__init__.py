"""The contract of a captioner, as checks that anyone can run on their own; no test framework is needed.

    from tellapart.testing import check_captioner
    check_captioner("my-captioner")

A broken law raises an AssertionError that names it. All but saving is checked in double precision and in
evaluation mode, on a copy: the captioner at hand stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from tellapart.captioners.folder import CaptionerSettings
from tellapart.testing.laws import LAWS
from tellapart.testing.subject import NO_SETTINGS, Subject, prepare, prepare_built
from tellapart.types import AnyCaptioner, Vision

__all__ = ["LAWS", "Subject", "check_built", "check_captioner", "check_law", "prepare", "prepare_built"]


def check_captioner(name: str, *, preset: str = "tiny", settings: Mapping[str, object] = NO_SETTINGS) -> None:
    """Build a registered captioner with such settings and hold it to every law."""
    _check_all(prepare(name, preset=preset, settings=settings))


def check_built(
    captioner: AnyCaptioner,
    vision: Vision,
    *,
    settings: CaptionerSettings | None = None,
    tolerance: float = 1e-9,
) -> None:
    """Hold a captioner to every law, on features of at least three different pictures.

    `settings` (of `describe_captioner`) lets it be saved and loaded too. A network that computes some layers
    in single precision whatever its weights are needs a larger `tolerance`.
    """
    _check_all(prepare_built(captioner, vision, settings=settings, tolerance=tolerance))


@torch.no_grad()
def check_law(law: str, subject: Subject) -> None:
    """Hold a captioner to one of `LAWS`."""
    try:
        with torch.random.fork_rng(devices=[]):  # the caller's random numbers are not ours to take
            LAWS[law](subject)
    except Exception as error:
        # A shape that does not fit breaks the law as much as a wrong number does.
        what = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
        raise AssertionError(f"{law}: {what}") from error


def _check_all(subject: Subject) -> None:
    for law in LAWS:
        check_law(law, subject)
