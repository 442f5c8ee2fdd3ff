"""The brokers to which a controller had sent a request before it wrote: those that it certainly took for live.

ZooKeeper has the registration of a broker before the controller has read it. A decision that the controller takes in
between goes to the brokers that it knows, and never to the new one. The first request that carries the broker epoch of
a registration proves that the controller has read it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from nemesis.checkers.framework.event_list import Row
from nemesis.history.events import Event, Kind

KINDS = frozenset({Kind.CONTROL_REQUEST_SENT, Kind.ZNODE_OUTCOME})
COLUMNS = ("process", "incarnation", "seq", "peer", "broker_epoch", "zxid")
"""What this module reads."""

ProcessIncarnation = tuple[str, int | None]
Registration = tuple[int, int]
"""A broker, and the broker epoch of its registration: the zxid that created it."""


@dataclass(slots=True)
class Addressed:
    """The first request of each process to each registration, and the writer of each zxid, with their ``seq``."""

    first: dict[tuple[ProcessIncarnation, Registration], int] = field(default_factory=dict)
    written: dict[int, tuple[ProcessIncarnation, int]] = field(default_factory=dict)
    """zxid → the process that wrote it, and the ``seq`` of the event with ZooKeeper's answer."""

    def before(self, zxid: int, registration: Registration) -> bool:
        """Return whether the writer had sent a request to this registration; ``False`` for an unknown writer."""
        if zxid not in self.written:
            return False
        writer, seq = self.written[zxid]
        request = self.first.get((writer, registration))
        return request is not None and request < seq


def addressed(rows: Iterable[Row]) -> Addressed:
    """Follow the requests and the writes of all processes."""
    result = Addressed()
    for _, event in rows:
        if event.kind == Kind.CONTROL_REQUEST_SENT:
            registration = (event.peer or 0, event.broker_epoch or 0)
            key = (_process_incarnation(event), registration)
            result.first[key] = min(event.seq, result.first.get(key, event.seq))
        elif event.kind == Kind.ZNODE_OUTCOME and event.zxid is not None:
            result.written[event.zxid] = (_process_incarnation(event), event.seq)
    return result


def _process_incarnation(event: Event) -> ProcessIncarnation:
    return event.process, event.incarnation
