"""What runs reached: states, elections, failovers, refusals, faults that struck. So that nobody trusts a run that saw
nothing.

A verdict of ``valid`` over a thousand seeds is worth as much as what happened in them. ``measure`` counts it from the
events of one run; coverages of many runs are combined. What a run could have reached and did not is counted too, as
zero, and told as *never*: the legal transitions of the controller's state machines, the ways to elect a leader, the
refusals of stale control requests, the scenario's kinds of faults.

Limits: only what is traced is counted. A refusal that nobody expects (an unheard-of error) appears when it happens,
and cannot be missed when it does not. Some of what could happen depends on the scenario: without topics being deleted
or unclean elections being allowed, theirs is never reached, and that is what is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from types import MappingProxyType
from typing import Final, TypeVar

from nemesis.faults import DEFAULT_KINDS
from nemesis.faults import FAULTS as ALL_FAULTS
from nemesis.history.events import NO_ERROR, Event, Kind
from nemesis.history.vocabulary.faults import MEASURED, measurements
from nemesis.history.znodes import PROCESS as ZOOKEEPER
from nemesis.history.zookeeper_log import EPOCH_BITS
from nemesis.interfaces.ensemble import EnsembleMembers
from nemesis.reference.controller import partition_state_machine, replica_state_machine
from nemesis.searching.explore.coverage_counts import Coverage, Reach

CONTROLLER: Final = "controller"
RESIGNATIONS: Final = "resignations"
ELECTIONS: Final = "leader elections"
PARTITION_STATES: Final = "partition states"
REPLICA_STATES: Final = "replica states"
ILLEGAL: Final = "transitions that failed"
SESSIONS: Final = "sessions"
ISR_CHANGES: Final = "ISR changes"
REPLICAS: Final = "replicas"
CONTROL_REQUESTS: Final = "control requests"
WRITES: Final = "ZooKeeper writes"
OPERATIONS: Final = "operations"
FAULTS: Final = "faults"
ENSEMBLE: Final = "ZooKeeper's members"
NEW_LEADER: Final = "another leader"
"""By the epoch in the zxids: a leader under whom nothing was written is not seen."""
MOVED: Final = "sessions moved"

Reached = tuple[str, str]
"""(group, what)"""
State = TypeVar("State", bound=Enum)

NUMBER: Final = re.compile(r"\d+")


def _transitions(previous: Mapping[State, frozenset[State]]) -> tuple[str, ...]:
    """The legal transitions, in the order in which the states are declared."""
    return tuple(
        f"{state.value}->{target.value}"
        for target, states in previous.items()
        for state in type(target)
        if state in states
    )


EXPECTED: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        CONTROLLER: ("elected", "failover", "resigned"),
        RESIGNATIONS: ("session expired", "/controller names broker N"),
        ELECTIONS: ("new", "offline", "unclean", "remove-from-isr"),
        PARTITION_STATES: _transitions(partition_state_machine.VALID_PREVIOUS_STATES),
        REPLICA_STATES: _transitions(replica_state_machine.VALID_PREVIOUS_STATES),
        ILLEGAL: (),
        SESSIONS: ("expired", "closed", "seen suspended", "seen expired"),
        ISR_CHANGES: (
            "shrink proposed",
            "shrink committed",
            "expand proposed",
            "expand committed",
        ),
        REPLICAS: ("led", "followed", "truncated", "stopped", "deleted"),
        CONTROL_REQUESTS: tuple(
            f"{api} {outcome}"
            for api in ("LeaderAndIsr", "UpdateMetadata", "StopReplica")
            for outcome in ("accepted", "STALE_CONTROLLER_EPOCH", "STALE_BROKER_EPOCH")
        ),
        WRITES: ("committed", "refused"),
        OPERATIONS: ("send ok", "send fail", "send info", "poll ok"),
        ENSEMBLE: (),
        FAULTS: (),
    }
)
"""What is counted, and what of it is to be missed when it does not happen, whatever the kinds of faults are."""


def measure(events: Iterable[Event], kinds: Sequence[str] = DEFAULT_KINDS) -> Coverage:
    """Return what one run reached, of a scenario with these kinds of faults."""
    counts: dict[str, dict[str, int]] = {
        group: dict.fromkeys(names, 0) for group, names in EXPECTED.items()
    }
    counts[FAULTS] = {f"{kind} measured": 0 for kind in kinds}
    if any(EnsembleMembers in ALL_FAULTS[kind].needs for kind in kinds):
        counts[ENSEMBLE] = {NEW_LEADER: 0, MOVED: 0}
    for group, label in _reached(events):
        counts[group][label] = counts[group].get(label, 0) + 1
    reached = {
        group: {label: Reach(count, int(count > 0)) for label, count in result.items()}
        for group, result in counts.items()
    }
    return Coverage(1, reached)


def _reached(events: Iterable[Event]) -> Iterator[Reached]:
    """Yield (group, what) for each thing that an event says was reached."""
    proposed: dict[tuple[str, str | None, int | None], str] = {}
    epoch: int | None = None
    for event in events:
        if event.process == ZOOKEEPER and event.zxid is not None:
            if epoch is not None and event.zxid >> EPOCH_BITS > epoch:
                yield ENSEMBLE, NEW_LEADER
            epoch = event.zxid >> EPOCH_BITS
        if event.kind in _SAYS:
            yield from _SAYS[event.kind](event)
        elif event.kind == Kind.ISR_CHANGE_PROPOSED:
            change = event.change or "change"
            proposed[event.process, event.topic, event.partition] = change
            yield ISR_CHANGES, f"{change} proposed"
        elif event.kind == Kind.ISR_CHANGE_COMMITTED:
            change = proposed.get((event.process, event.topic, event.partition), "change")
            yield ISR_CHANGES, f"{change} committed"


def _always(group: str, label: str) -> Callable[[Event], Iterable[Reached]]:
    return lambda _: ((group, label),)


def _elected(event: Event) -> Iterator[Reached]:
    yield ELECTIONS, event.strategy or "?"


def _session_closed(event: Event) -> Iterator[Reached]:
    yield SESSIONS, event.reason or "?"


def _resigned(event: Event) -> Iterator[Reached]:
    yield CONTROLLER, "resigned"
    yield RESIGNATIONS, NUMBER.sub("N", event.reason or "?")


def _transition(event: Event) -> Iterator[Reached]:
    """A transition of a partition or of a replica; one with an error did not happen."""
    machine = "partition" if event.replica is None else "replica"
    states = f"{event.from_state}->{event.to_state}"
    if event.error is not None:
        yield ILLEGAL, f"{machine} {states}"
    else:
        yield (PARTITION_STATES if machine == "partition" else REPLICA_STATES), states


def _session_state(event: Event) -> Iterator[Reached]:
    if event.session_state != "connected":
        yield SESSIONS, f"seen {event.session_state}"


def _stopped(event: Event) -> Iterator[Reached]:
    if event.step != "deleting":
        yield REPLICAS, "deleted" if event.step == "delete" else "stopped"


def _control_request(event: Event) -> Iterator[Reached]:
    yield CONTROL_REQUESTS, f"{event.api} {event.error if _failed(event) else 'accepted'}"


def _write(event: Event) -> Iterator[Reached]:
    yield WRITES, "refused" if _failed(event) else "committed"
    if _failed(event):
        yield WRITES, f"refused {event.error}"


def _operation(event: Event) -> Iterator[Reached]:
    """An outcome, and of one that is not ok also the error, without what varies in it."""
    yield OPERATIONS, f"{event.f} {event.kind}"
    if event.kind != Kind.OK and event.error is not None:
        yield OPERATIONS, f"{event.f} {event.kind} {event.error.partition(' ')[0]}"


def _applied(event: Event) -> Iterator[Reached]:
    effect = MEASURED if event.effect == MEASURED else "without effect"
    yield FAULTS, f"{event.fault} {effect}"


def _healed(event: Event) -> Iterator[Reached]:
    """How many sessions moved is told by the faults that make them move."""
    for _ in range(measurements(event.detail).get("moved_sessions", 0)):
        yield ENSEMBLE, MOVED


def _skipped(event: Event) -> Iterator[Reached]:
    yield FAULTS, f"{event.fault} skipped"


def _failed(event: Event) -> bool:
    return event.error not in (None, NO_ERROR)


_SAYS: Final[Mapping[str, Callable[[Event], Iterable[Reached]]]] = MappingProxyType(
    {
        Kind.CONTROLLER_ELECTED.value: _always(CONTROLLER, "elected"),
        Kind.CONTROLLER_FAILOVER.value: _always(CONTROLLER, "failover"),
        Kind.CONTROLLER_RESIGNED.value: _resigned,
        Kind.LEADER_ELECTED.value: _elected,
        Kind.TRANSITION.value: _transition,
        Kind.SESSION_CLOSED.value: _session_closed,
        Kind.SESSION_STATE.value: _session_state,
        Kind.BECOME_LEADER.value: _always(REPLICAS, "led"),
        Kind.BECOME_FOLLOWER.value: _always(REPLICAS, "followed"),
        Kind.TRUNCATE.value: _always(REPLICAS, "truncated"),
        Kind.REPLICA_STOPPED.value: _stopped,
        Kind.CONTROL_REQUEST_HANDLED.value: _control_request,
        Kind.ZNODE_OUTCOME.value: _write,
        Kind.OK.value: _operation,
        Kind.FAIL.value: _operation,
        Kind.INFO.value: _operation,
        Kind.FAULT_APPLIED.value: _applied,
        Kind.FAULT_HEALED.value: _healed,
        Kind.FAULT_SKIPPED.value: _skipped,
    }
)
