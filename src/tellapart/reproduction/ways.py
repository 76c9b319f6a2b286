"""The ways in which captions come out of captioners. Minutes are of 1000 photographs on 2 cores."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from tellapart.reproduction.plan import Way, WayKind

SET = 5  # captions of an image whose diversity is measured (UNKT, Table 2)
LENGTH_PENALTY = 0.6  # chosen by hand on dev photographs, of the m-RNN and the Transformer
TEMPERATURE = 1.0
NEIGHBOURS = 9  # that a caption has to tell its picture from
# Millions of likelihoods: their products are in 16 bits where the processor has such.
BY_LIKELIHOOD: tuple[WayKind, ...] = ("retrieval", "likelihood")
# What comes out in these ways is compared with nothing that comes out in others: another training of the same
# settings may have written it.
BY_THEMSELVES: tuple[WayKind, ...] = ("retrieval", "penalties")

_ALL = (
    Way("greedy", "beam", size=1, minutes=0.2),
    Way("written", "people", fluency=True, minutes=0.5),
    Way("beam5", "beam", size=5, fluency=True, minutes=1.0),
    Way("beam10", "beam", size=10, keep=10, minutes=1.0),
    Way("beam5-set", "beam", size=SET, keep=SET, sets=True, minutes=0.5),
    Way("samples5", "sample", size=5, keep=5, sets=True, minutes=0.3),
    Way("samples20", "sample", size=20, keep=20, sets=True, minutes=1.0),
    Way("samples100", "sample", size=100, keep=100, sets=True, minutes=5.0),
    Way("consensus-bleu", "consensus", of="beam10", by="bleu", sight="refined", minutes=0.7),
    Way("consensus-cider", "consensus", of="beam10", by="cider", sight="refined", fluency=True, minutes=1.2),
    Way("consensus-cider-pooled", "consensus", of="beam10", by="cider", minutes=0.7),
    Way("oracle-bleu", "oracle", of="beam10", by="BLEU-4", minutes=0.2),
    Way("oracle-cider", "oracle", of="beam10", by="CIDEr-D", minutes=0.2),
    Way("margin", "margin", of="beam10", fluency=True, minutes=0.8),
    Way("best5", "consensus", of="samples20", by="cider", keep=SET, sets=True, minutes=1.0),
    Way("ranks", "retrieval", seeds=1, minutes=32.0),  # five million likelihoods
    Way("likelihood", "likelihood", of="beam5", minutes=6.0),
    Way("penalties", "penalties", minutes=0.2),
)

WAYS: Mapping[str, Way] = {way.name: way for way in _ALL}


def digest_of(way: Way) -> str:
    """A name for the settings of a way, of those it chooses from too.

    How many seeds it is wanted of, and what is measured of it, changes nothing of that.
    """
    constants: dict[WayKind, float | str] = {
        "beam": LENGTH_PENALTY,
        "sample": TEMPERATURE,
        "margin": NEIGHBOURS,
        **dict.fromkeys(BY_LIKELIHOOD, "fast"),
    }
    own = [way.kind, way.size, way.keep, way.by, way.sight, constants.get(way.kind)]
    before = digest_of(WAYS[way.of]) if way.of else ""
    return hashlib.sha256(repr((*own, before)).encode()).hexdigest()[:12]
