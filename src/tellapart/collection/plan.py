"""How the pictures of a collection are to be told apart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from tellapart.errors import TellapartError

Apart = Literal["margin", "pragmatic", "off"]
MOST_EFFORT = 3


@dataclass(frozen=True, slots=True)
class Plan:
    """What is done for each picture.

    Attributes:
        apart: "margin" chooses, of the captioner's candidates, the one by which the picture wins over its
            rivals; "pragmatic" has the candidates written with the rivals in view; "off" has no rivals: it
            chooses by agreement, closeness to the picture and likelihood.
        neighbours: how many rivals a picture has at the most, where it is told from any.
        effort: how far it goes where no candidate finds the picture. 0: no further; 1: more candidates, drawn
            by chance; 2: then candidates written with the rivals in view; 3: then longer ones.
        seed: of what is drawn by chance.
        fit: how much a caption's likelihood counts beside its margin, or its closeness to the picture where
            it has no rivals: more is truer and less telling.
        agree: how many captions are drawn of each picture by chance, with which its own is to agree: many
            make it truer and take longer; 0 asks for none.
    """

    apart: Apart = "margin"
    neighbours: int = 10
    effort: int = 1
    seed: int = 0
    fit: float = 0.1
    agree: int = 0

    def __post_init__(self) -> None:
        if self.neighbours < 1:
            raise TellapartError(f"{self.neighbours} neighbours were asked for", hint="ask for 1 or more")
        if not 0 <= self.effort <= MOST_EFFORT:
            raise TellapartError(f"effort is {self.effort}", hint=f"take a number from 0 to {MOST_EFFORT}")
        if not 0 <= self.fit < math.inf:
            raise TellapartError(f"fit is {self.fit}", hint="take a number from 0 on, such as 0.1")
        if self.agree < 0:
            raise TellapartError(f"agree is {self.agree}", hint="take a number from 0 on, such as 50")

    @property
    def rivals(self) -> int:
        """How many rivals a picture has at the most."""
        return 0 if self.apart == "off" else self.neighbours
