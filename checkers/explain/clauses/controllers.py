"""What controllers decided, sent and were answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from nemesis.checkers.explain.clauses.subjects import actor, of
from nemesis.checkers.explain.clauses.zookeeper import state_of
from nemesis.checkers.explain.words import brokers
from nemesis.checkers.framework.event_list import succeeded
from nemesis.history.events import Event, Kind
from nemesis.history.vocabulary.controller import Transition


def _controller_elected(event: Event) -> str:
    return f"{actor(event)} won controller epoch {event.controller_epoch}"


def _controller_failover(event: Event) -> str:
    live = f", with {brokers(event.live)} alive" if event.live is not None else ""
    return f"{actor(event)} finished its failover as controller of epoch {event.controller_epoch}{live}"


def _controller_resigned(event: Event) -> str:
    return f"{actor(event)} resigned from controller epoch {event.controller_epoch}: {event.reason}"


def _settings(event: Event) -> str:
    did = "started" if event.kind == Kind.BROKER_STARTED else "continued"
    return f"{actor(event)} {did} with min.insync.replicas={event.min_insync_replicas}"


def _broker_change(event: Event) -> str:
    return f"controller {event.node} finished handling a change of brokers, with {brokers(event.live)} alive"


def _controlled_shutdown(event: Event) -> str:
    answer = f"that it leads {event.count} partitions" if succeeded(event) else f"{event.error}"
    return f"controller {event.node} answered broker {event.peer}, which shuts down, {answer}"


def _partition_metadata(event: Event) -> str:
    epoch = f"partition epoch {event.partition_epoch}"
    return f"{actor(event)} stored the metadata of {of(event)}: {state_of(event)}, {epoch}"


def _sent(event: Event) -> str:
    request = f"{actor(event)} sent {event.api or 'a control request'} to broker {event.peer}"
    epoch = event.controller_epoch
    as_whom = f" as controller of epoch {epoch}" if epoch is not None else ""
    return f"{request}{as_whom}{_for_epoch(event)}"


def _handled(event: Event) -> str:
    did = "accepted" if succeeded(event) else f"refused ({event.error})"
    of = f" of controller epoch {event.controller_epoch}" if event.controller_epoch else ""
    return f"{actor(event)} {did} {event.api or 'a control request'}{of}{_for_epoch(event)}"


def _answered(event: Event) -> str:
    version = "" if event.partition_epoch is None else f", partition epoch {event.partition_epoch}"
    state = "" if event.leader is None else f": {state_of(event)}{version}"
    step = "" if event.step is None else f" ({event.step})"
    return f"{actor(event)} answered {event.error} to {event.api} for {of(event)}{state}{step}"


def _for_epoch(event: Event) -> str:
    return f", meant for its broker epoch {event.broker_epoch}" if event.broker_epoch else ""


def _registered(event: Event) -> str:
    return f"{actor(event)} registered with broker epoch {event.broker_epoch}"


def _leader_elected(event: Event) -> str:
    how = f" ({event.strategy})" if event.strategy else ""
    live = f", while it saw {brokers(event.live)} alive" if event.live is not None else ""
    return f"controller {event.node} elected for {of(event)}{how}: {state_of(event)}{live}"


def _alter_partition(event: Event) -> str:
    epochs = f" with the broker epochs {event.isr_epochs}" if event.isr_epochs else ""
    by = f" by broker {event.peer} of broker epoch {event.broker_epoch}"
    did = "committed" if succeeded(event) else f"refused ({event.error})"
    return (
        f"controller {event.node} {did} ISR {event.isr or []}{epochs} of {of(event)}, proposed{by}"
    )


def _transition(event: Event) -> str:
    moved = Transition.of(event)
    if moved is None:
        return f"controller {event.node} traced a transition of {of(event)} without its states"
    subject = of(event)
    if moved.replica is not None:
        subject = f"the replica of {subject} on broker {moved.replica}"
    states = f"from {moved.from_state} to {moved.to_state}"
    return f"controller {event.node} of epoch {moved.controller_epoch} changed {subject} {states}"


CLAUSES: Final[Mapping[str, Callable[[Event], str]]] = MappingProxyType(
    {
        Kind.CONTROLLER_ELECTED: _controller_elected,
        Kind.CONTROLLER_FAILOVER: _controller_failover,
        Kind.CONTROLLER_RESIGNED: _controller_resigned,
        Kind.BROKER_STARTED: _settings,
        Kind.BROKER_RECONFIGURED: _settings,
        Kind.BROKER_CHANGE_HANDLED: _broker_change,
        Kind.CONTROLLED_SHUTDOWN_HANDLED: _controlled_shutdown,
        Kind.PARTITION_METADATA: _partition_metadata,
        Kind.CONTROL_REQUEST_SENT: _sent,
        Kind.CONTROL_REQUEST_HANDLED: _handled,
        Kind.CONTROL_REQUEST_ANSWERED: _answered,
        Kind.BROKER_REGISTERED: _registered,
        Kind.LEADER_ELECTED: _leader_elected,
        Kind.ALTER_PARTITION_HANDLED: _alter_partition,
        Kind.TRANSITION: _transition,
    }
)
