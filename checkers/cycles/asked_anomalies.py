"""Anomalies that a user asks for by Elle's names: which of them count, and which properties they are.

An anomaly counts if it is asked for, or implies one that is: every G1c is a G1, every G-single is a G2-item. The graph
is that of Elle (``elle.consistency-model``, ``implied-anomalies``), as far as its anomalies exist over items.
Predicates do not occur, so G2 is G2-item. Over registers ``cycle-exists`` counts with any cycle: it
has no name of its own there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from nemesis.checkers.cycles.models import (
    ANOMALIES,
    CYCLE_EXISTS,
    CYCLES,
    SUFFIXES,
    Model,
)

_OF_EACH_ORDER: Final = (
    ("G0", "G1c"),
    ("G1c", "G1"),
    ("G-single-item", "G-single"),
    ("G-single", "G-single-item"),
    ("G-single", "G-nonadjacent"),
    ("G-nonadjacent-item", "G-nonadjacent"),
    ("G-nonadjacent", "G-nonadjacent-item"),
    ("G-nonadjacent", "G2-item"),
    ("G2-item", "G2"),
)
"""(an anomaly, one that it implies); over items both names of G-single, and of G-nonadjacent, are one."""
_OTHERS: Final = (
    ("G1a", "G1"),
    ("G1b", "G1"),
    ("incompatible-order", "G1a"),
    ("dirty-update", "G1a"),
    ("future-read", "G1c"),
    ("lost-update", "G2-item"),
)


def _implied() -> Iterator[tuple[str, str]]:
    yield from _OTHERS
    names = dict.fromkeys(name for pair in _OF_EACH_ORDER for name in pair)
    for suffix in SUFFIXES:
        yield from ((a + suffix, b + suffix) for a, b in _OF_EACH_ORDER)
    for weaker, stronger in pairwise(SUFFIXES):
        yield from ((name + weaker, name + stronger) for name in names)


_IMPLIED: Final = tuple(_implied())


def _counted(name: str) -> frozenset[str]:
    """Return the properties whose findings are this anomaly."""
    counted = {name}
    while new := {a for a, b in _IMPLIED if b in counted} - counted:
        counted |= new
    return frozenset(counted & ANOMALIES.keys())


ASKED: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        name: _counted(name)
        for name in sorted(
            {*ANOMALIES, *(name for pair in _IMPLIED for name in pair)} - {CYCLE_EXISTS}
        )
    }
)
"""By Elle's name of an anomaly, the properties whose findings count as that anomaly."""


def counted(names: Collection[str]) -> frozenset[str]:
    """Return the properties that count if these anomalies are asked for; raises KeyError."""
    properties = frozenset().union(*(ASKED[name] for name in names))
    return properties | {CYCLE_EXISTS} if properties & set(CYCLES) else properties


def model_of(names: Collection[str]) -> Model:
    """Return the weakest model that forbids all these anomalies, and no others; raises KeyError."""
    asked = counted(names)
    anomalies = [ANOMALIES[name] for name in asked]
    return Model(
        f"freedom from {', '.join(names)}",
        max(anomaly.level for anomaly in anomalies),
        max(anomaly.session_order for anomaly in anomalies),
        asked,
    )
