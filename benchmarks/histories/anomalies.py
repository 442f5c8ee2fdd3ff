"""What may be put wrong in a generated history: one row is changed, at a place that is known.

``ANOMALIES`` names each with the property that must name it, and no other of them. A ``Spoiler`` finds its row in the
tables of one place and says what becomes of it; one that would change nothing wrong finds none, and an anomaly that
found no place is an error: nobody believes that it was there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa

from benchmarks.histories.columns import Array, replaced
from benchmarks.histories.shape import Partition
from nemesis.history.events import Kind


class TableKind(StrEnum):
    """Which tables of a history a spoiler is shown."""

    CLUSTER = "cluster"
    """What concerns no topic."""
    STATES = "states"
    """ZooKeeper's states of a partition."""
    ELECTIONS = "elections"
    """What is traced of a partition at the start of a term."""
    RECORDS = "records"
    """The rows of a stretch of records."""
    ENDING = "ending"
    """The rows at the end of a partition."""


@dataclass(frozen=True, slots=True)
class Anomaly:
    """What is to be put wrong, and where."""

    name: str
    partition: int = 0
    """Its number in the history; of no account where no topic is concerned."""
    record: int = 0
    """At this offset; of no account but among the rows of records."""


@dataclass(frozen=True, slots=True)
class Injected:
    """An anomaly that is in a history."""

    anomaly: Anomaly
    property: str
    """That must be found broken."""
    row: int
    """The row that was changed, counted over the whole history."""


Replacement = tuple[int, Mapping[str, Any]]
"""The row in a table, and its columns' new values."""


@dataclass(frozen=True, slots=True)
class Spoiler:
    property: str
    table_kind: TableKind
    find: Callable[[pa.Table, Anomaly], Replacement | None]


class Injector:
    """Puts anomalies into the tables of a history as they pass; they pass in the history's order."""

    def __init__(
        self, anomalies: Sequence[Anomaly], spoilers: Mapping[str, Spoiler] | None = None
    ) -> None:
        known = ANOMALIES if spoilers is None else spoilers
        self._waiting = [(anomaly, known[anomaly.name]) for anomaly in anomalies]
        self._rows = 0
        self._injected: list[Injected] = []

    def spoil(
        self, table: pa.Table, position: TableKind, partition: Partition | None = None
    ) -> pa.Table:
        """Return the table, with each anomaly in it that finds its row there."""
        left = []
        for anomaly, spoiler in self._waiting:
            is_here = partition is None or partition.number == anomaly.partition
            match = (
                spoiler.find(table, anomaly) if is_here and spoiler.table_kind is position else None
            )
            if match is None:
                left.append((anomaly, spoiler))
                continue
            row, values = match
            table = replaced(table, row, **values)
            self._injected.append(Injected(anomaly, spoiler.property, self._rows + row))
        self._waiting = left
        self._rows += table.num_rows
        return table

    def injected(self) -> list[Injected]:
        """Return where the anomalies are, once all tables have passed. Raises LookupError if one found no place."""
        for anomaly, spoiler in self._waiting:
            raise LookupError(f"{anomaly} found no place among the rows of {spoiler.table_kind}")
        return self._injected


def _first(mask: Array) -> int | None:
    rows = np.flatnonzero(mask)
    return int(rows[0]) if len(rows) else None


def _last(mask: Array) -> int | None:
    rows = np.flatnonzero(mask)
    return int(rows[-1]) if len(rows) else None


def _is(table: pa.Table, **wanted: str) -> Array:
    """Which rows say these words."""
    mask = np.ones(table.num_rows, dtype=np.bool_)
    for name, word in wanted.items():
        said = table.column(name).combine_chunks().cast(pa.string())
        mask &= np.array([text == word for text in said.to_pylist()], dtype=np.bool_)
    return mask


def _is_kind(table: pa.Table, kind: Kind) -> Array:
    """As ``_is``, for tables of many rows."""
    said = table.column("kind").unify_dictionaries().combine_chunks()
    words = said.dictionary.to_pylist()
    wanted = words.index(kind.value) if kind.value in words else -1
    matches: Array = np.asarray(said.indices) == wanted
    return matches


def _value(table: pa.Table, name: str, row: int) -> Any:
    return table.column(name)[row].as_py()


def _mark_above_a_log(table: pa.Table, anomaly: Anomaly) -> Replacement | None:
    row = _mark_after(table, anomaly.record)
    if row is None:
        return None
    return row, {"high_watermark": _value(table, "high_watermark", row) + 1}


def _mark_that_falls(table: pa.Table, anomaly: Anomaly) -> Replacement | None:
    row = _mark_after(table, anomaly.record)
    earlier = _first(_is_kind(table, Kind.HIGH_WATERMARK))
    if row is None or row == earlier:
        return None
    return row, {"high_watermark": 0}


def _mark_after(table: pa.Table, record: int) -> int | None:
    """The first high watermark above a record that is appended in this table."""
    offsets = table.column("offset").fill_null(-1).to_numpy()
    appended = offsets[_is_kind(table, Kind.APPEND)]
    if not len(appended) or not appended.min() <= record <= appended.max():
        return None
    marks = table.column("high_watermark").fill_null(-1).to_numpy()
    return _first(_is_kind(table, Kind.HIGH_WATERMARK) & (marks > record))


def _second_leader(table: pa.Table, anomaly: Anomaly) -> Replacement | None:
    is_append = _is_kind(table, Kind.APPEND)
    offsets = table.column("offset").fill_null(-1).to_numpy()
    row = _last(is_append & (offsets == anomaly.record))
    return None if row is None else (row, {"role": "leader"})


def _epoch_view_falls(table: pa.Table, _anomaly: Anomaly) -> Replacement | None:
    row = _last(_is_kind(table, Kind.BECOME_FOLLOWER))
    if row is None or _value(table, "leader_epoch", row) < 2:
        return None
    return row, {"leader_epoch": 0}


def _outsider_elected(table: pa.Table, _anomaly: Anomaly) -> Replacement | None:
    """The state before the last has its leader alone in the ISR; another broker follows."""
    row = table.num_rows - 2
    return None if row < 0 else (row, {"isr": [_value(table, "leader", row)]})


def _illegal_transition(table: pa.Table, _anomaly: Anomaly) -> Replacement | None:
    row = _last(_is(table, kind=Kind.TRANSITION, from_state="New", to_state="Online"))
    return None if row is None else (row, {"from_state": "NonExistent"})


def _stale_request(table: pa.Table, _anomaly: Anomaly) -> Replacement | None:
    """A broker accepts the controller's second request of a term with the epoch of the term before."""
    row = _last(_is_kind(table, Kind.CONTROL_REQUEST_HANDLED))
    if row is None or _value(table, "controller_epoch", row) < 2:
        return None
    return row, {"controller_epoch": _value(table, "controller_epoch", row) - 1}


def _second_controller(table: pa.Table, _anomaly: Anomaly) -> Replacement | None:
    row = _last(_is_kind(table, Kind.CONTROL_REQUEST_SENT))
    if row is None:
        return None
    impostor = _value(table, "node", row) % 3 + 1
    return row, {"node": impostor, "process": f"broker-{impostor}"}


def _epoch_deleted(table: pa.Table, _anomaly: Anomaly) -> Replacement | None:
    """In the place of the last creation of ``/controller``, which nobody needs."""
    row = _last(_is(table, path="/controller", zk_op="create"))
    path = {"path": "/controller_epoch", "zk_op": "delete", "data": None, "controller_id": None}
    return None if row is None else (row, path)


def _stale_broker_epoch(table: pa.Table, _anomaly: Anomaly) -> Replacement | None:
    row = _last(_is_kind(table, Kind.CONTROL_REQUEST_HANDLED))
    if row is None:
        return None
    return row, {"broker_epoch": _value(table, "broker_epoch", row) - 1}


ANOMALIES: Final[Mapping[str, Spoiler]] = MappingProxyType(
    {
        "mark-above-a-log": Spoiler("hw-bounded", TableKind.RECORDS, _mark_above_a_log),
        "mark-that-falls": Spoiler("hw-grows", TableKind.RECORDS, _mark_that_falls),
        "second-leader": Spoiler("one-leader-per-epoch", TableKind.RECORDS, _second_leader),
        "epoch-view-falls": Spoiler("leader-epoch-grows", TableKind.ELECTIONS, _epoch_view_falls),
        "outsider-elected": Spoiler("leader-from-isr", TableKind.STATES, _outsider_elected),
        "illegal-transition": Spoiler("legal-transition", TableKind.ELECTIONS, _illegal_transition),
        "stale-request": Spoiler("stale-controller-fenced", TableKind.CLUSTER, _stale_request),
        "second-controller": Spoiler("single-controller", TableKind.CLUSTER, _second_controller),
        "epoch-deleted": Spoiler("controller-epoch-grows", TableKind.CLUSTER, _epoch_deleted),
        "stale-broker-epoch": Spoiler(
            "broker-epoch-fenced", TableKind.CLUSTER, _stale_broker_epoch
        ),
    }
)
"""By name; a history of three terms has room for each of them."""
