"""When a broker could create ``/controller``: it lived, was registered, and was connected to ZooKeeper.

All of that the broker itself traces. Its last event in a state is the end of what is known of that state, so a broker
that died unseen stops being a candidate with its last event.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.liveness import unexplained
from nemesis.checkers.liveness.time_spans import Spans, spans
from nemesis.history.events import Event, Kind

KINDS: Final = frozenset(
    {
        Kind.BROKER_STARTED,
        Kind.BROKER_REGISTERED,
        Kind.SESSION_STATE,
        Kind.CONTROL_REQUEST_HANDLED,
        Kind.CONTROLLER_ELECTED,
        Kind.CONTROLLER_RESIGNED,
    }
)
"""The kinds that report a broker's session, or show that the broker lived."""
COLUMNS: Final = ("incarnation", "session", "session_state")
_HARMLESS: Final = frozenset(
    {
        *("stall-follower", "delay-control", "delay-alter-partition", "stray-requests"),
        *("clock-skew", "expire-session", "delete-controller"),
        *("elect-preferred", "reassign-partitions"),
    }
)
"""The kinds of faults that keep no broker from ZooKeeper; that a session has ended its broker traces itself."""
_STRIKING: Final = frozenset(
    {"kill", "kill-controller", "pause", "restart", "graceful-restart", "rolling-restart"}
)
"""The kinds of faults that keep from ZooKeeper the brokers that they strike, and no others."""
_CONNECTED: Final = "connected"
_EXPIRED: Final = "expired"


@dataclass(slots=True)
class _Session:
    """What is traced of one broker's session."""

    incarnation: int | None = None
    connected: int | None = None
    """The session in which the broker is connected."""
    registered: int | None = None
    """The session in which the broker registered last."""
    since: int | None = None
    """Since when the broker is registered and connected, in ns; None if it is not."""
    last: int = 0
    """The time of the broker's last event, in ns."""

    @property
    def is_able(self) -> bool:
        return self.connected is not None and self.connected == self.registered

    def note(self, event: Event) -> None:
        if event.kind == Kind.BROKER_STARTED:
            self.incarnation, self.connected, self.registered = event.incarnation, None, None
        elif event.kind == Kind.BROKER_REGISTERED:
            self.registered = event.session
        elif event.kind == Kind.SESSION_STATE:
            self.connected = event.session if event.session_state == _CONNECTED else None
            if event.session_state == _EXPIRED:
                self.registered = None


def candidates(rows: Iterable[Row]) -> dict[str, Spans]:
    """Return process → the spans (ns) in which the broker was registered and connected to ZooKeeper."""
    traced = (event for _, event in rows if event.kind in KINDS and event.time >= 0)
    sessions: dict[str, _Session] = {}
    able: dict[str, list[tuple[int, int]]] = {}
    for event in sorted(traced, key=lambda event: (event.time, event.seq)):
        session = sessions.setdefault(event.process, _Session())
        begins = event.kind == Kind.BROKER_STARTED
        if session.since is not None:
            able.setdefault(event.process, []).append(
                (session.since, session.last if begins else event.time)
            )
        session.note(event)
        session.last = event.time
        session.since = event.time if session.is_able else None
    return {process: spans(pairs) for process, pairs in able.items()}


def kept_from_zookeeper(faults: Iterable[Row], process: str) -> Spans:
    """Return the spans (ns) in which a fault may have kept the broker from ZooKeeper."""
    return unexplained.explained(
        item
        for item in faults
        if item[1].fault not in _HARMLESS | _STRIKING or strikes(item[1], process)
    )


def strikes(event: Event, process: str) -> bool:
    """Whether the fault of this event keeps its victims from ZooKeeper, and the broker is among them."""
    return event.fault in _STRIKING and process in (event.targets or ())


def unsettling(faults: Iterable[Row]) -> Spans:
    """Return the spans (ns) in which a fault was in force that may make ZooKeeper's members elect another leader."""
    return explaining(
        item
        for item in faults
        if not all(target.startswith("broker") for target in item[1].targets or ("",))
    )


def explaining(faults: Iterable[Row]) -> Spans:
    """Return the spans (ns) in which a fault was in force that may keep any broker from ZooKeeper."""
    return unexplained.explained(
        item for item in faults if item[1].fault not in _HARMLESS | _STRIKING
    )
