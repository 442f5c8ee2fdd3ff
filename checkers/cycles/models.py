"""Anomalies, and which consistency model forbids which: two numbers each.

A cycle is as bad as the edges that it needs. By the dependencies it is on one of these **levels**:

| level | model | anomaly | the cycle has |
|---|---|---|---|
| 0 | read uncommitted | G0 | ww only |
| 1 | read committed | G1c | ww and wr, at least one wr |
| 2 | read atomic | – | one rw, and one wr: part of a transaction was missed |
| 3 | causal | – | one rw, and wr: what a read rests on was missed |
| 4 | parallel snapshot isolation | G-single | exactly one rw |
| 5 | snapshot isolation | G-nonadjacent | several rw, no two of them one after the other |
| 6 | serializable | G2-item | several rw, two of them one after the other |

Cycles of levels 2 and 3 are a G-single by name; the models that forbid no other G-single ask for ``cycle-exists``.

By what else it needs it is of one of three **orders**: none, the order of each process (``-process``), or real time
(``-realtime``). A consistency model is a level and an order, too, and forbids what is not above it in either:
snapshot isolation is (5, none), strict serializability (6, real time). So models and anomalies form one lattice.

An anomaly without a cycle also has a level: a value read without a write is impossible under any model (0), G1a, G1b,
dirty updates, future reads and lists that differ need read committed (1), contradictions inside a transaction read
atomic (2), lost updates parallel snapshot isolation (4). Under read uncommitted one of two lists that differ may have
been rolled back, and a read proves no commit of a transaction in doubt.

``cycle-exists`` is of the model that is asked for: each version order that the reads allow has a cycle that this model
forbids.

A *session* is the order of what one process did. If no process has two committed transactions, one after the other, a
model of sessions is not ``valid``: ``strong-session-`` models and session guarantees are ``unknown`` then, unless an
anomaly shows that the history breaks them. A model of real time that is judged without it is not of sessions.

A model may also have a *guarantee* about what reads have to show (``guarantees``). The four session guarantees forbid
no other anomaly than those of level 0. Monotonic atomic view also forbids those of level 1.

Sources: Adya, "Weak Consistency" (1999); Elle (VLDB 2020), whose names these are. Reads are of items, never of
predicates, so G2 is G2-item, and repeatable read is serializability. Read atomic, causal and parallel snapshot
isolation are those of Cerone, Bernardi and Gotsman (2015); without a prefix, sessions have no order there, as under
the other models. ``model_names`` has other names of these models, and the models between them, which are not judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from types import MappingProxyType
from typing import Final


class Level(IntEnum):
    """Which dependencies a cycle needs, or a model orders."""

    G0 = 0
    G1 = 1
    READ_ATOMIC = 2
    CAUSAL = 3
    PARALLEL_SNAPSHOT = 4
    SNAPSHOT = 5
    SERIAL = 6


class Guarantee(IntEnum):
    """Which writes a read has to show (``guarantees``)."""

    NONE = 0
    READ_YOUR_WRITES = 1
    MONOTONIC_READS = 2
    MONOTONIC_WRITES = 3
    WRITES_FOLLOW_READS = 4
    MONOTONIC_ATOMIC_VIEW = 5


class SessionOrder(IntEnum):
    """Which order beside the dependencies a cycle needs, or a model keeps."""

    NONE = 0
    PROCESS = 1
    REALTIME = 2


@dataclass(frozen=True, slots=True)
class Anomaly:
    """What is wrong with a history, by name; forbidden from this level and order on."""

    name: str
    level: Level
    promise: str
    """What a history without the anomaly keeps, in one sentence."""
    session_order: SessionOrder = SessionOrder.NONE


@dataclass(frozen=True, slots=True)
class Model:
    """A consistency model: it forbids the anomalies up to this level and order."""

    name: str
    level: Level
    session_order: SessionOrder = SessionOrder.NONE
    asked: frozenset[str] | None = None
    """The names of the anomalies that count; None: all."""
    guarantee: Guarantee = Guarantee.NONE
    is_of_sessions: bool = False
    """Whether it promises an order of each process, so that a history without sessions shows nothing of it."""

    @property
    def proves_commits(self) -> bool:
        """Whether a read of a transaction in doubt proves that it took effect."""
        return self.level > Level.G0 or self.guarantee is not Guarantee.NONE

    def forbids(self, anomaly: Anomaly) -> bool:
        return self.reaches(anomaly) and (self.asked is None or anomaly.name in self.asked)

    def reaches(self, anomaly: Anomaly) -> bool:
        """Whether an anomaly is not above the model's level and order, whether it counts or not."""
        return anomaly.level <= self.level and anomaly.session_order <= self.session_order


def without_real_time(model: Model) -> Model:
    """Return a model that keeps the order of each process where the model keeps real time."""
    return replace(model, session_order=min(model.session_order, SessionOrder.PROCESS))


_LEVELS: Final = MappingProxyType(
    {
        "read-uncommitted": Level.G0,
        "read-committed": Level.G1,
        "read-atomic": Level.READ_ATOMIC,
        "causal": Level.CAUSAL,
        "parallel-snapshot-isolation": Level.PARALLEL_SNAPSHOT,
        "snapshot-isolation": Level.SNAPSHOT,
        "repeatable-read": Level.SERIAL,
        "serializable": Level.SERIAL,
    }
)
_PREFIXES: Final = MappingProxyType(
    {
        "": SessionOrder.NONE,
        "strong-session-": SessionOrder.PROCESS,
        "strong-": SessionOrder.REALTIME,
    }
)
_GUARANTEES: Final = MappingProxyType(
    {
        "read-your-writes": (Level.G0, Guarantee.READ_YOUR_WRITES),
        "monotonic-reads": (Level.G0, Guarantee.MONOTONIC_READS),
        "monotonic-writes": (Level.G0, Guarantee.MONOTONIC_WRITES),
        "writes-follow-reads": (Level.G0, Guarantee.WRITES_FOLLOW_READS),
        "monotonic-atomic-view": (Level.G1, Guarantee.MONOTONIC_ATOMIC_VIEW),
    }
)
SUFFIXES: Final = ("", "-process", "-realtime")
"""Of the names of cycles, by order."""
_PROMISES: Final = (
    "{}.",
    "{}, counting the order in which each process worked.",
    "{}, counting what was over before another transaction began.",
)
"""Of cycles, by order."""
_CYCLES: Final = (
    ("G0", Level.G0, "No cycle of writes that follow one another"),
    ("G1c", Level.G1, "No cycle of writes and of reads that saw them"),
    ("G-single", Level.PARALLEL_SNAPSHOT, "No cycle with one read that missed a write"),
    (
        "G-nonadjacent",
        Level.SNAPSHOT,
        "No cycle with several reads that missed writes, none next to another",
    ),
    ("G2-item", Level.SERIAL, "No cycle with reads that missed writes"),
)

MODELS: Final[Mapping[str, Model]] = MappingProxyType(
    {
        name: Model(
            name, level, session_order, is_of_sessions=session_order is SessionOrder.PROCESS
        )
        for name, level, session_order in [
            *(
                (prefix + name, level, session_order)
                for prefix, session_order in _PREFIXES.items()
                for name, level in _LEVELS.items()
            ),
            ("strict-serializable", Level.SERIAL, SessionOrder.REALTIME),
        ]
    }
    | {
        name: Model(name, level, guarantee=guarantee, is_of_sessions=level is Level.G0)
        for name, (level, guarantee) in _GUARANTEES.items()
    }
)
"""Every model by name. Strict serializability has two."""

SERIALIZABLE: Final = MODELS["serializable"]
STRICT_SERIALIZABLE: Final = MODELS["strict-serializable"]
CYCLE_EXISTS: Final = "cycle-exists"
WELL_FORMED: Final = "well-formed"
CYCLE_LEVELS: Final = (Level.G0, Level.G1, Level.SNAPSHOT, Level.SERIAL)
"""The levels of which cycles are searched for; G-single is what the third finds first."""

ANOMALIES: Final[Mapping[str, Anomaly]] = MappingProxyType(
    {
        anomaly.name: anomaly
        for anomaly in [
            Anomaly("garbage-read", Level.G0, "Nothing is read that nobody wrote."),
            Anomaly("duplicate-elements", Level.G0, "No list has an element twice."),
            Anomaly(
                "incompatible-order",
                Level.G1,
                "All reads of a list agree on the order of its elements, in which each transaction appended its own.",
            ),
            Anomaly("G1a", Level.G1, "Nothing is read that an aborted transaction wrote."),
            Anomaly(
                "G1b",
                Level.G1,
                "Of a transaction's writes to a key only the last one is read by others.",
            ),
            Anomaly(
                "dirty-update",
                Level.G1,
                "No committed write builds on one of an aborted transaction.",
            ),
            Anomaly(
                "future-read",
                Level.G1,
                "No transaction reads what it writes itself only later.",
            ),
            Anomaly(
                "internal",
                Level.READ_ATOMIC,
                "A transaction's reads agree with what it read and wrote itself.",
            ),
            Anomaly(
                "lost-update",
                Level.PARALLEL_SNAPSHOT,
                "No two transactions write a key on the ground of the same version of it.",
            ),
            *(
                Anomaly(
                    name + suffix,
                    level,
                    _PROMISES[session_order].format(promise),
                    SessionOrder(session_order),
                )
                for session_order, suffix in enumerate(SUFFIXES)
                for name, level, promise in _CYCLES
            ),
            Anomaly(
                CYCLE_EXISTS,
                Level.G0,
                "Some order of the versions that reads leave open has no cycle that the model forbids.",
            ),
        ]
    }
)
"""Every anomaly by name, in the order of reports."""

CYCLES: Final = tuple(name + suffix for suffix in SUFFIXES for name, _, _ in _CYCLES)
"""The names of those that are cycles."""


def cycle_name(rw: int, *, wr: bool, adjacent: bool, session_order: SessionOrder) -> str:
    """Return what a cycle with this many anti-dependencies, with or without a read of another's write, is called."""
    if rw == 0:
        name = "G1c" if wr else "G0"
    elif rw == 1:
        name = "G-single"
    else:
        name = "G2-item" if adjacent else "G-nonadjacent"
    return name + SUFFIXES[session_order]
