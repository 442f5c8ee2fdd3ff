"""Brokers answer in the leader epoch that a client states, and refuse an older one.

* **leader-epochs-fenced**: a client may state the leader epoch in which it knows a partition (KIP-320). A broker
  answers only while it has the partition in this leader epoch, and says FENCED_LEADER_EPOCH only while it has it in a
  later one. The leader epoch of a partition that a broker's process knows only grows.
  Smallest breaks: broker 1 follows in leader epoch 2, and later answers a query that states leader epoch 1, or 3; it
  refuses leader epoch 2 as fenced, and later answers a query that states leader epoch 2; it answers leader epoch 3, and
  later leader epoch 2.

The idea: each answer and each trace of a broker says which leader epochs it can have had at some moment between two
times. The smallest leader epoch only grows. So two of them contradict each other if the first ended before the second
began, and the largest leader epoch of the second is below the smallest of the first. Between two traces of a broker it
has the leader epoch of the first one. One pass over both in order of time decides each broker and partition; the first
contradiction is the finding.

What a correct cluster does and is not convicted for: a broker that is cut off or deposed answers in its former leader
epoch, for it does not know better; a broker changes its leader epoch while the query is under way; it refuses for any
other reason, or says UNKNOWN_LEADER_EPOCH: after a restart it may not know the partition's state yet.
It has leader epochs in memory alone: after a restart a deposed controller that was slow may be the first to state one.

Limits: an unjustified UNKNOWN_LEADER_EPOCH is not judged. A client names a topic, not its id: if the history has
several ids of a name, no query of it is judged. The leader epochs that fetches state are not
recorded. Only clients of some workloads ask; of the others only the traces are judged.
Source: KIP-320; Partition.checkCurrentLeaderEpoch, ReplicaManager.fetchOffsetForTimestamp.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Final, NamedTuple

from nemesis.checkers.breaks import leader_epochs_fenced as breaks
from nemesis.checkers.explain import leader_epochs_fenced as explain
from nemesis.checkers.framework.event_list import EventListCheck, Row
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Segment
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource

QUERIES: Final = frozenset({"earliest-offset", "latest-offset", "offset-by-time"})
FENCED: Final = "FENCED_LEADER_EPOCH"
_OPERATIONS: Final = frozenset({Kind.INVOKE, Kind.OK, Kind.FAIL, Kind.INFO})
_TRACES: Final = frozenset({Kind.BECOME_LEADER, Kind.BECOME_FOLLOWER})
_OF_PROCESSES: Final = _TRACES | {Kind.BROKER_STARTED}
_ANY_EPOCH: Final = 2**31
_FOREVER: Final = 2**63


class Replica(NamedTuple):
    topic: str
    partition: int
    topic_id: str
    node: int
    incarnation: int
    """The broker's process; 0 before its first trace."""


class Known(NamedTuple):
    """A broker had a leader epoch from ``low`` to ``high`` at some moment from ``start`` to ``end``."""

    low: int
    high: int
    start: int
    end: int
    rows: tuple[int, ...]
    clause: str


class LeaderEpochsFenced(EventListCheck):
    kinds = _OF_PROCESSES | _OPERATIONS
    columns = (
        *("topic", "topic_id", "partition", "node", "incarnation", "leader_epoch"),
        *("f", "op", "error"),
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (LEADER_EPOCHS_FENCED,)

    def reduce(self, segment: Segment) -> list[Row]:
        is_wanted = segment.is_kind(*_OF_PROCESSES) | segment.is_word("f", QUERIES)
        return list(segment.where(is_wanted).events(*self.columns))

    def judge(self, rows: list[Row]) -> Results:
        answers: dict[Replica, list[Known]] = defaultdict(list)
        traces: dict[Replica, list[Row]] = defaultdict(list)
        calls: dict[tuple[str, int | None], Row] = {}
        ids = _ids_of_names(event for _, event in rows)
        processes = Processes(event for _, event in rows if event.kind in _OF_PROCESSES)
        for row, event in rows:
            if event.topic is None or event.partition is None or event.node is None:
                continue
            if event.leader_epoch is None:
                continue
            process = processes.of(event.node, event.time)
            replica = Replica(
                event.topic, event.partition, event.topic_id or "", event.node, process
            )
            if event.kind in _TRACES:
                traces[replica].append((row, event))
            elif len(ids[event.topic]) > 1:
                continue
            elif event.kind == Kind.INVOKE:
                calls[event.process, event.op] = (row, event)
            elif (call := calls.pop((event.process, event.op), None)) and process == processes.of(
                event.node, call[1].time
            ):
                answers[replica] += _learned(call, (row, event))
        findings = [
            contradiction
            for replica in sorted({*answers, *traces})
            for contradiction in _contradiction(
                replica, [*answers[replica], *_traced(traces[replica])]
            )
        ]
        answered, traced = (sum(map(len, facts.values())) for facts in (answers, traces))
        return conclude(
            LEADER_EPOCHS_FENCED,
            checked=traced + answered,
            findings=findings,
            numbers={"answers": float(answered)},
        )


class Processes:
    """Which process a broker had at a time."""

    def __init__(self, traced: Iterable[Event]) -> None:
        """``traced``: events with which processes begin, and later ones of theirs."""
        by_node: dict[int | None, list[tuple[int, int]]] = defaultdict(list)
        for event in sorted(traced, key=lambda event: (event.time, event.seq)):
            by_node[event.node].append((event.time, event.incarnation or 0))
        self._by_node = by_node

    def of(self, node: int, time: int) -> int:
        """Return the incarnation that traced last up to this time; 0 if none did."""
        traced = self._by_node[node]
        index = bisect_right(traced, time, key=itemgetter(0))
        return traced[index - 1][1] if index else 0


def _ids_of_names(events: Iterable[Event]) -> dict[str, set[str]]:
    """The ids of each name: several if topics of this name were deleted and created."""
    ids: dict[str, set[str]] = defaultdict(set)
    for event in events:
        if event.topic is not None:
            ids[event.topic].add(event.topic_id or "")
    return ids


def _learned(call: Row, end: Row) -> Iterator[Known]:
    """What the answer to a query says of the broker's leader epoch."""
    stated = call[1].leader_epoch or 0
    during = (call[1].time, end[1].time, (call[0], end[0]))
    if end[1].kind == Kind.OK:
        yield Known(stated, stated, *during, f"answered in leader epoch {stated}")
    elif end[1].error == FENCED:
        yield Known(stated + 1, _ANY_EPOCH, *during, f"refused leader epoch {stated} as fenced")


def _traced(rows: list[Row]) -> Iterator[Known]:
    """What the traces of a broker say: from one to the next its leader epoch is that of the first."""
    in_order = sorted(rows, key=lambda reported: (reported[1].time, reported[0]))
    ends = [*(event.time for _, event in in_order[1:]), _FOREVER]
    for (row, event), end in zip(in_order, ends, strict=False):
        epoch = event.leader_epoch or 0
        began = f"began to {'lead' if event.kind == Kind.BECOME_LEADER else 'follow'} in leader epoch {epoch}"
        yield Known(epoch, epoch, event.time, event.time, (row,), began)
        yield Known(epoch, epoch, end, end, (row,), f"was still in leader epoch {epoch}")


def _contradiction(replica: Replica, known: list[Known]) -> Iterator[Finding]:
    """The first fact that an earlier one contradicts, if there is one."""
    over = sorted(known, key=lambda fact: fact.end)
    position, highest = 0, None
    for fact in sorted(known, key=lambda fact: fact.start):
        while position < len(over) and over[position].end < fact.start:
            if highest is None or over[position].low > highest.low:
                highest = over[position]
            position += 1
        if highest is not None and highest.low > fact.high:
            tp = tp_name(replica.topic, replica.partition)
            sentence = f"Broker {replica.node}, asked about {tp}, {highest.clause}, and after that it {fact.clause}."
            rows = sorted({*highest.rows, *fact.rows})
            yield finding(LEADER_EPOCHS_FENCED.name, tp, sentence, *rows)
            return


LEADER_EPOCHS_FENCED: Final = Property(
    name="leader-epochs-fenced",
    promise="A broker answers in the leader epoch that a client states, and refuses an older one.",
    unit="traced leader epochs, and answers to queries that state one",
    unknown="No broker traced that it became leader or follower, and no query that states a leader epoch was answered.",
    source="KIP-320; Partition.checkCurrentLeaderEpoch.",
    check=LeaderEpochsFenced,
    decided_from=frozenset({EventSource.TRACES}),
    completed_by=frozenset({EventSource.CLIENTS}),
    recorded_since=12,
    reason=explain.leader_epochs_fenced,
    breaks=breaks.LEADER_EPOCHS_FENCED,
)
