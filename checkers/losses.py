"""Which acknowledged records a run may lose, so that findings that follow from it are reported and allowed.

Records may be lost where brokers may elect unclean leaders, and when the last replica in the ISR of a partition has
lost what it had not synced (KIP-966). The fault that strikes it names the partitions. It counts unless it was skipped,
or was measured to have taken nothing.

A finding is allowed for the losses of the partitions that it rests on, if the last event that proves it is not older
than the loss. What it rests on depends on the property, so the check names the partitions or whole topics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.segment import PROOF_ROW
from nemesis.checkers.power_cuts import LOSING
from nemesis.history.events import Event, Kind
from nemesis.history.vocabulary.faults import LAST_IN_ISR, measurements
from nemesis.history.vocabulary.harness import UNCLEAN_ELECTIONS

KINDS: Final = frozenset(
    {
        *(Kind.FAULT_INVOKE, Kind.FAULT_APPLIED, Kind.FAULT_SKIPPED),
        *(Kind.BROKER_STARTED, Kind.BROKER_PROPERTY),
    }
)
COLUMNS: Final = (
    *("fault", "fault_id", "detail", "setting", "count"),
    "unclean_leader_election_enable",
)
TRANSACTIONS_TOPIC: Final = "__transaction_state"
"""Where coordinators keep transactions, and the epochs of producers."""
OFFSETS_TOPIC: Final = "__consumer_offsets"
"""Where coordinators keep groups, and their offsets."""
_TAKEN: Final = ("lost_bytes", "lost_names", "damaged")
"""The measurements of what a disk has lost."""


class Loss(NamedTuple):
    """The last replica in the ISR of some partitions was struck."""

    began: int
    partitions: frozenset[str]


class Losses:
    """What a run may have lost."""

    def __init__(self, rows: Iterable[Row]) -> None:
        """``rows``: all those that prove findings, and the events of ``KINDS``."""
        known = list(rows)
        self._times = {row: event.time for row, event in known}
        events = [event for _, event in known if event.kind in KINDS]
        self._permits_unclean = any(map(_permits_unclean, events))
        self._losses = tuple(_losses(events))

    def allow_all(self, findings: Iterable[Finding], *names: str) -> list[Finding]:
        """Return the findings, each as ``allow`` does."""
        return [self.allow(item, *names) for item in findings]

    def allow(
        self, item: Finding, *names: str, unclean: bool = True, is_timed: bool = True
    ) -> Finding:
        """Return the finding, allowed if these partitions or topics may have lost records; any, without names.

        ``unclean``: whether unclean elections of them count. ``is_timed``: whether the events that prove the finding
        show when it was so; not if it is about what is absent.
        """
        times = [self._times.get(event[PROOF_ROW], 0) for event in item.events]
        last = max(times, default=0)
        is_permitted = (unclean and self._permits_unclean) or any(
            (loss.began <= last or not is_timed) and _concerns(loss, names) for loss in self._losses
        )
        return replace(item, verdict=Verdict.VALID) if is_permitted else item


def _concerns(loss: Loss, names: tuple[str, ...]) -> bool:
    return not names or any(
        partition in names or partition.rpartition("-")[0] in names for partition in loss.partitions
    )


def _losses(events: Iterable[Event]) -> Iterator[Loss]:
    faults = [event for event in events if event.fault in LOSING]
    harmless = {
        event.fault_id
        for event in faults
        if event.kind == Kind.FAULT_SKIPPED
        or (event.kind == Kind.FAULT_APPLIED and _took_nothing(measurements(event.detail)))
    }
    for event in faults:
        listed = measurements(event.detail).get(LAST_IN_ISR)
        if event.kind == Kind.FAULT_INVOKE and event.fault_id not in harmless and listed:
            yield Loss(event.time, frozenset(map(str, listed)))


def _took_nothing(measured: dict[str, Any]) -> bool:
    """Whether all nodes were measured, and none lost anything."""
    nodes = [node for node in measured.values() if isinstance(node, dict)]
    return bool(nodes) and all(
        any(name in node for name in _TAKEN) and not any(node.get(name) for name in _TAKEN)
        for node in nodes
    )


def _permits_unclean(event: Event) -> bool:
    if event.kind == Kind.BROKER_PROPERTY:
        return event.setting == UNCLEAN_ELECTIONS and bool(event.count)
    return event.kind == Kind.BROKER_STARTED and bool(event.unclean_leader_election_enable)
