"""What nemesis itself did and saw: states at the end, samples, phases, faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from nemesis.checkers.explain.clauses.subjects import actor, of
from nemesis.checkers.explain.words import HARNESS, brokers
from nemesis.checkers.framework.event_list import succeeded
from nemesis.history.events import INITIAL_TOPICS, Event, Kind


def _end_state(event: Event) -> str:
    whose = "ZooKeeper" if event.node is None else f"the {event.source} of broker {event.node}"
    if not succeeded(event):
        return f"at the end {whose} could not be observed ({event.error})"
    if event.topic is None:
        return f"at the end {whose} had {event.count} partitions"
    replicas = f" on {brokers(event.replicas)}" if event.replicas else ""
    return f"at the end {whose} had {of(event)}{replicas}"


def _replica_offsets(event: Event) -> str:
    if event.topic is None:
        if not succeeded(event):
            return f"at rest no replica could be asked ({event.error})"
        return f"at rest {event.count} replicas were asked"
    whose = "leader" if event.node == event.leader else "replica"
    about = f"at rest {whose} {event.node} of {of(event)}"
    if not succeeded(event):
        return f"{about} did not answer ({event.error})"
    return (
        f"{about} answered log start {event.log_start_offset}, high watermark {event.high_watermark}, log end "
        f"{event.log_end_offset}"
    )


def _replica_sample(event: Event) -> str:
    about = f"{'leader' if event.node == event.leader else 'replica'} {event.node} of {of(event)}"
    if event.high_watermark is not None:
        return f"{about} answered the high watermark {event.high_watermark}"
    return f"{about} answered the log end {event.log_end_offset}"


def _quorum_sample(event: Event) -> str:
    about = (
        f"voter {event.node} answered that it leads the quorum in epoch {event.controller_epoch}"
    )
    if event.high_watermark is None:
        return about
    return f"{about}, with the high watermark {event.high_watermark}"


def _convergence(event: Event) -> str:
    check = f"the check {event.check!r}"
    if event.topic is not None or event.node is not None:
        check += f" of {of(event) if event.topic is not None else f'broker {event.node}'}"
    when = "" if event.duration_ms is None else f" after {event.duration_ms:,} ms"
    if when and event.check != INITIAL_TOPICS:
        when = f" {event.duration_ms:,} ms after the faults were undone"
    if succeeded(event):
        return f"{check} succeeded{when}"
    error = event.error or ""
    if error.startswith(HARNESS):
        return f"{check} could not be made: {error.removeprefix(HARNESS)}"
    return f"{check} still failed{when}: {error}"


def _phase(event: Event) -> str:
    return f"the phase {event.phase} of the run began"


def _harness_lag(event: Event) -> str:
    return f"nemesis itself was {event.duration_ms} ms late, because the machine was busy"


def _machine_load(event: Event) -> str:
    return f"the machine was busy for up to {event.duration_ms} ms"


def _timeout_setting(event: Event) -> str:
    return f"{event.setting} is {event.duration_ms} ms"


def _unforeseen_exception(event: Event) -> str:
    return f"{actor(event)} caught an unexpected exception, {event.error}"


def _fault(event: Event) -> str:
    on = f" on {', '.join(event.targets)}" if event.targets else ""
    did = {
        Kind.FAULT_INVOKE: "began",
        Kind.FAULT_APPLIED: f"was applied, with effect {event.effect}",
        Kind.FAULT_SKIPPED: f"was skipped: {event.error}",
        Kind.FAULT_HEALED: f"was undone, with effect {event.effect}",
    }[Kind(event.kind)]
    return f"{event.fault}{on} {did}"


CLAUSES: Final[Mapping[str, Callable[[Event], str]]] = MappingProxyType(
    {
        Kind.END_STATE: _end_state,
        Kind.REPLICA_OFFSETS: _replica_offsets,
        Kind.REPLICA_SAMPLE: _replica_sample,
        Kind.QUORUM_SAMPLE: _quorum_sample,
        Kind.CONVERGENCE: _convergence,
        Kind.UNFORESEEN_EXCEPTION: _unforeseen_exception,
        Kind.PHASE: _phase,
        Kind.HARNESS_LAG: _harness_lag,
        Kind.MACHINE_LOAD: _machine_load,
        Kind.TIMEOUT_SETTING: _timeout_setting,
        Kind.FAULT_INVOKE: _fault,
        Kind.FAULT_APPLIED: _fault,
        Kind.FAULT_SKIPPED: _fault,
        Kind.FAULT_HEALED: _fault,
    }
)
