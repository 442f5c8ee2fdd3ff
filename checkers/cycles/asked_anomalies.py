"""Anomalies that a user asks for by Elle's names: which of them count, and which properties they are.

An anomaly counts if it is asked for, or implies one that is: every G1c is a G1, every G-single is a G2-item. The graph
is that of Elle (``elle.consistency-model``, ``implied-anomalies``), as far as its anomalies exist over items.
Predicates do not occur, so G2 is G2-item. Over registers ``cycle-exists`` counts with any cycle: it
has no name of its own there. ``PL-3-cycle-exists`` and the like are Elle's names for "some cycle that the model PL-3
forbids": here each cycle that the model forbids counts.

``NOT_DETECTED`` has Elle's other names, with the anomaly that contains each or is nearest to it. Elle knows most of
them as terms of a model only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from nemesis.checkers.cycles.model_names import SAME
from nemesis.checkers.cycles.models import (
    ANOMALIES,
    CYCLE_EXISTS,
    CYCLES,
    MODELS,
    STRICT_SERIALIZABLE,
    SUFFIXES,
    Model,
    without_real_time,
)
from nemesis.checkers.framework.asked import Asked

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


_CYCLE_EXISTS_IN: Final = (
    "PL-1",
    "PL-2",
    "PL-SI",
    "PL-2.99",
    "PL-3",
    "PL-SS",
    "strong-session-PL-1",
    "strong-session-PL-2",
    "strong-session-snapshot-isolation",
    "strong-session-serializable",
    "strong-PL-1",
    "strong-PL-2",
    "strong-snapshot-isolation",
)
"""The models of which Elle names the existence of a cycle."""


def _cycles_of(name: str) -> frozenset[str]:
    """Return the cycles that a model forbids."""
    model = MODELS[SAME.get(name, name)]
    return frozenset(cycle for cycle in CYCLES if model.forbids(ANOMALIES[cycle]))


ASKED: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {
        **{
            name: _counted(name)
            for name in sorted(
                {*ANOMALIES, *(name for pair in _IMPLIED for name in pair)} - {CYCLE_EXISTS}
            )
        },
        **{f"{name}-{CYCLE_EXISTS}": _cycles_of(name) for name in _CYCLE_EXISTS_IN},
    }
)
"""By Elle's name of an anomaly, the properties whose findings count as that anomaly."""


_NO_COMMIT_TIMES: Final = (
    "a history does not state when the database began and committed a transaction, "
    "and the nearest anomaly is G-single"
)
NOT_DETECTED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "G-SI": _NO_COMMIT_TIMES,
        "G-SIb": _NO_COMMIT_TIMES,
        "GSI": _NO_COMMIT_TIMES,
        "GSIa": _NO_COMMIT_TIMES,
        "GSIb": _NO_COMMIT_TIMES,
        "G-MSR": "snapshots of single reads are not judged, and the nearest anomaly is G-single",
        "G-cursor": "a history does not mark the reads of cursors, and each G-cursor is a G-single",
        "G-monotonic": "single reads of a transaction are not judged, and each G-monotonic is a G-single",
        "G-update": "read-only transactions are not judged one by one, and each G-update is a G2-item",
        "write-skew": "cycles of two transactions have no name of their own, and each write skew is a G2-item",
        "predicate-read-miss": "reads are of items and not of predicates, and the nearest anomaly is G2-item",
        "cyclic-versions": "a register whose versions have no possible order is a finding of cycle-exists, "
        "which a consistency model has, and a list is one of incompatible-order",
    }
)
"""Elle's other names of anomalies, and why they are not detected, as the end of a sentence."""


def counted(names: Collection[str]) -> frozenset[str]:
    """Return the properties that count if these anomalies are asked for; raises KeyError."""
    properties = frozenset().union(*(ASKED[name] for name in names))
    return properties | {CYCLE_EXISTS} if properties & set(CYCLES) else properties


def model_asked(asked: Asked) -> Model:
    """Return the model to hold transactions against; raises KeyError if no model has this name."""
    if asked.anomalies:
        model = model_of(asked.anomalies)
    elif asked.consistency_model is None:
        model = STRICT_SERIALIZABLE
    else:
        model = MODELS[asked.consistency_model]
    return model if asked.has_real_time else without_real_time(model)


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
