"""High watermarks of leaders that do not trace, as the harness samples them (``replica-sample``).

* **hw-sampled**: while one incarnation of a broker leads a partition in one leader epoch,
  (a) a member of the ISR has every record below a high watermark that the leader answered before the ISR was read, and
  (b) the leader's high watermark never falls.
  Smallest break: leader 1 answers the high watermark 5; afterwards broker 2, in the ISR, answers the log end 4.

Why (a) holds: let the leader answer h, and later read the ISR from ZooKeeper, with broker r in it, in the same epoch.
The leader counts every committed member of the ISR (KIP-497: the maximal ISR contains it), so at the time of the read
its high watermark, which is at least h by (b), is at most the end of r's log. Within an epoch r's log only grows: a
follower truncates below its end only what the leader of a new epoch does not have, and never below the high watermark.
So every end that r answers after the read, in the same epoch, is at least h. It does not matter whether r is still in
the ISR when it answers.

The events of the harness are in the order of its requests, and every request names the leader epoch, so a replica in
another epoch refuses. The leader's incarnation is its broker epoch: a leader that starts again in the same epoch,
because no controller has raised it, begins with the high watermark that it has stored, which may be older.

What a correct cluster does and is not convicted for: once any broker's disk has lost, or may have lost, what it had not
synced (power cuts, failing and full disks), a member may have less than the leader counts, and so may those that
followed it: later samples are not judged. Partitions that are being moved are not sampled.

Limits: what happens between two samples is not seen. Events are collected in one list: with thousands of partitions
the list is long.
Source: Partition.maybeIncrementLeaderHW; KIP-497; KIP-320.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from nemesis.checkers.breaks import hw_sampled as breaks
from nemesis.checkers.explain import hw_sampled as explain
from nemesis.checkers.framework.event_list import EventListCheck, Row
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.checkers.power_cuts import LOSING
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource

DISK_FAULTS: Final = LOSING | {"disk-full", "disk-failure", "log-dir-failure"}
"""From these on a broker's log may be shorter than what it has answered."""


class Term(NamedTuple):
    """One incarnation of a broker leads a partition in one epoch."""

    topic: str | None
    topic_id: str | None
    partition: int | None
    leader: int | None
    leader_epoch: int | None
    broker_epoch: int | None

    @classmethod
    def of(cls, event: Event) -> Term:
        return cls(*(getattr(event, name) for name in cls._fields))


class HwSampled(EventListCheck):
    kinds = frozenset({Kind.REPLICA_SAMPLE, Kind.FAULT_INVOKE})
    columns = (*Term._fields, "node", "isr", "high_watermark", "log_end_offset", "fault")

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (HW_SAMPLED,)

    def judge(self, rows: list[Row]) -> Results:
        losses = [
            event.time
            for _, event in rows
            if event.kind == Kind.FAULT_INVOKE and event.fault in DISK_FAULTS
        ]
        until = min(losses, default=None)
        terms: dict[Term, list[Row]] = defaultdict(list)
        for row, event in rows:
            is_sample = event.kind == Kind.REPLICA_SAMPLE
            if is_sample and (until is None or event.time < until):
                terms[Term.of(event)].append((row, event))
        pairs = [pair for samples in terms.values() for pair in _pairs(samples)]
        return conclude(HW_SAMPLED, checked=len(pairs), findings=_contradictions(pairs))


Pair = tuple[Row, Row]
"""The highest mark of a leader so far, and a later sample."""


def _pairs(samples: Sequence[Row]) -> Iterator[Pair]:
    """Yield the pairs of one term."""
    highest: Row | None = None
    for row, event in sorted(samples, key=lambda item: (item[1].time, item[1].seq)):
        if event.node not in (event.isr or ()):
            continue
        if highest is not None:
            yield highest, (row, event)
        mark = event.high_watermark
        if mark is not None and (highest is None or mark > (highest[1].high_watermark or 0)):
            highest = row, event


def _contradictions(pairs: Iterable[Pair]) -> Iterator[Finding]:
    """Yield the first contradiction of each replica, and of each leader to itself, in each term."""
    convicted: set[tuple[Term, int | None, bool]] = set()
    for (highest, leads), (row, event) in pairs:
        is_mark = event.high_watermark is not None
        offset = event.high_watermark if is_mark else event.log_end_offset
        mark = leads.high_watermark or 0
        case = Term.of(event), event.node, is_mark
        if offset is not None and offset < mark and case not in convicted:
            convicted.add(case)
            yield finding(
                HW_SAMPLED.name,
                tp_name(event.topic, event.partition),
                _sentence(event, mark),
                highest,
                row,
            )


def _sentence(event: Event, mark: int) -> str:
    about = f"Leader {event.leader} of {tp_name(event.topic, event.partition)} answered the high watermark {mark}"
    if event.high_watermark is not None:
        return f"{about}, and in the same epoch {event.high_watermark} later."
    return f"{about}; later broker {event.node}, in its ISR, answered that its log ends at {event.log_end_offset}."


HW_SAMPLED: Final = Property(
    name="hw-sampled",
    promise="No high watermark that a leader answers is above the log of a member of its ISR, and none falls.",
    unit="samples after a high watermark",
    unknown="Nothing was answered after a leader's high watermark.",
    source="Partition.maybeIncrementLeaderHW; KIP-497.",
    check=HwSampled,
    decided_from=frozenset({EventSource.REPLICA_SAMPLES, EventSource.FAULTS}),
    stands_in_for="hw-bounded",
    reason=explain.hw_sampled,
    breaks=breaks.HW_SAMPLED,
)
