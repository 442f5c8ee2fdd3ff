"""Which replicas a broker lost with a log directory, as its traces show it.

A broker traces in which directory each log lies that it opens or moves. What lay in a directory when the directory
failed is lost until the broker starts again. A replica that the broker opened or moved to another one afterwards, or
that it deleted, is not counted as lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from nemesis.checkers.framework.event_list import Row
from nemesis.history.events import Event, Kind

KINDS: Final = frozenset(
    {
        Kind.LOG_LOADED,
        Kind.LOG_DIR_CHANGED,
        Kind.LOG_DIR_FAILED,
        Kind.REPLICA_STOPPED,
        Kind.SESSION_STATE,
        Kind.BROKER_REGISTERED,
    }
)
COLUMNS: Final = ("topic", "partition", "incarnation", "log_dir", "step", "session_state")
_STOPPED: Final = "stop"
_CONNECTED: Final = "connected"

TopicPartition = tuple[str, int]
Process = tuple[str, int | None]
"""A process and its incarnation."""


@dataclass(slots=True)
class Failure:
    """A log directory of a broker failed."""

    traced: Row
    lost: dict[TopicPartition, Row] = field(default_factory=dict)
    """The replicas that lay there, with the event that says so."""
    registered: int = 0
    """When the broker registered again later, in ns; 0 if it did not."""
    disconnected: int | None = None
    """When its session was first not connected later, in ns."""
    last: int = 0
    """The last trace of the process, in ns."""

    @property
    def broker(self) -> int:
        return self.traced[1].node or 0

    @property
    def time(self) -> int:
        return self.traced[1].time


def failures(rows: Sequence[Row], last_traces: Mapping[Process, int]) -> Iterator[Failure]:
    """Yield the failures, one process after the other. ``last_traces``: the last trace of each process, in ns."""
    traced = [item for item in rows if item[1].kind in KINDS]
    traced.sort(key=lambda item: (*_process(item[1]), item[1].time, item[1].seq))
    for process, items in groupby(traced, key=lambda item: _process(item[1])):
        for failure in _of_process(items):
            failure.last = max(failure.last, last_traces.get(process, 0))
            yield failure


def _process(event: Event) -> tuple[str, int]:
    return event.process, event.incarnation or 0


def _of_process(items: Iterator[Row]) -> list[Failure]:
    homes: dict[TopicPartition, Row] = {}
    known: list[Failure] = []
    for item in items:
        event = item[1]
        for failure in known:
            _follow(failure, event)
        if event.kind == Kind.LOG_DIR_FAILED:
            lost = {tp: home for tp, home in homes.items() if home[1].log_dir == event.log_dir}
            known.append(Failure(item, lost, last=event.time))
            homes = {tp: home for tp, home in homes.items() if tp not in lost}
        elif (tp := _replica(event)) is not None:
            homes.pop(tp, None)
            if event.kind != Kind.REPLICA_STOPPED:
                homes[tp] = item
    return known


def _follow(failure: Failure, event: Event) -> None:
    """Take in what the process traced after the failure."""
    failure.last = event.time
    if (tp := _replica(event)) is not None:
        failure.lost.pop(tp, None)
    elif event.kind == Kind.BROKER_REGISTERED:
        failure.registered = event.time
    elif (
        event.kind == Kind.SESSION_STATE
        and event.session_state != _CONNECTED
        and failure.disconnected is None
    ):
        failure.disconnected = event.time


def _replica(event: Event) -> TopicPartition | None:
    """The replica whose log is in a directory from now on, or is deleted; None of other events."""
    is_about = event.kind in (Kind.LOG_LOADED, Kind.LOG_DIR_CHANGED) or (
        event.kind == Kind.REPLICA_STOPPED and event.step != _STOPPED
    )
    if not is_about or event.topic is None or event.partition is None:
        return None
    return event.topic, event.partition
