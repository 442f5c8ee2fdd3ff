"""Every partition ends where it was asked to be, and what was taken away from a broker is gone from it.

**reassignment**: for each partition that exists at the end and is not being moved or deleted

(a) its replicas, in their order, are those that it was created with or those of a move, whichever is possible after
    the moves and cancels that were asked for and what came of each;
(b) its replicas, and no other broker, have a log of it.

And (c) a move that an operator requests through ``/admin/reassign_partitions`` is taken out of this znode only when it
has been made, or cannot or must not be (``nemesis.checkers.requested_moves``).

Smallest breaks: (a) ok(describe t-0: 1, 2), ok(reassign t-0 to 2, 3), at the end t-0 has replicas 1, 2; (b) at the end
t-0 has replicas 2, 3, and broker 1 keeps a log of it; (c) t-0 has replicas 1, 2; the znode is created with t-0 to 2, 3,
and deleted by the controller.

That no reassignment is still in progress, and that the ISR is the whole assignment, is the property ``convergence``;
that nothing is lost on the way is told by ``nemesis.checkers.replication`` and ``nemesis.checkers.log``.

What a correct cluster does and is not convicted for: a request of unknown outcome may be carried out at any later time,
or never; a cancel goes back to where the last completed move ended, in KRaft to the replicas that the cancelled move
met, also those of a move that it replaced; a broker that was away when its replica was taken
away, whose controller was deposed then, or had not heard of its registration yet, is told by nobody and keeps its log,
with Kafka too: that is reported and allowed. A controller has heard of a registration when it has sent a request with
its broker epoch (``nemesis.checkers.addressed``).

Limits: judged by what the harness saw at the end (``nemesis.checkers.end_state``). A partition whose first replicas
nobody described before the first request can be anywhere until it is moved. (a) is not judged where the topic was
deleted and created again: a move may have been meant for an earlier life of it. Without ZooKeeper's log no log counts
as left behind with reason, and topics have one life. Requests of releases before 2.2 carry no broker epoch: there every
log that is left behind is excused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from nemesis.checkers import addressed, end_state
from nemesis.checkers.administered import CLIENT_KINDS, Administered, follow, in_time
from nemesis.checkers.assignments import Assignment, Assignments, TopicPartition, assignments
from nemesis.checkers.breaks import ends as breaks
from nemesis.checkers.end_state import EndState
from nemesis.checkers.explain import ends
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.possible import Possible
from nemesis.checkers.requested_moves import dropped
from nemesis.history.events import Event, Kind
from nemesis.history.quorum_events import PROCESS as QUORUM
from nemesis.history.sources import EventSource

DESCRIBE, MOVE, CANCEL = "describe", "reassign", "cancel-reassign"
COMPLETE = "complete"
"""What the controller does by itself."""
ANYWHERE = Assignment(())
"""Where a partition is of which nobody has told."""

Effect = tuple[str, tuple[int, ...]]
"""What is done, and with which replicas."""
Apply = Callable[[Assignment, Effect], frozenset[Assignment]]


def after(assignment: Assignment, effect: Effect) -> frozenset[Assignment]:
    """Return the possible results with ZooKeeper."""
    operation, replicas = effect
    if operation == MOVE:
        return frozenset({assignment.towards(replicas)})
    return _ended(assignment, operation)


def after_in_quorum(assignment: Assignment, effect: Effect) -> frozenset[Assignment]:
    """Return the possible results with KRaft."""
    operation, replicas = effect
    if operation == MOVE:
        return frozenset({assignment.towards_in_quorum(replicas)})
    return _ended(assignment, operation)


def _ended(assignment: Assignment, operation: str) -> frozenset[Assignment]:
    """Return where a move ends that is cancelled or completed."""
    if not assignment.is_moving:
        return frozenset()
    return frozenset({Assignment(assignment.origin if operation == CANCEL else assignment.target)})


@dataclass(slots=True)
class Moves:
    """What is known of one partition."""

    apply: Apply
    possible: Possible[Assignment, Effect] = field(init=False)
    last: int | None = None
    """The row of the last success."""
    is_asked: bool = False
    """Whether a move or a cancel was requested so far."""

    def __post_init__(self) -> None:
        self._begin(ANYWHERE)

    def _begin(self, assignment: Assignment) -> None:
        self.possible = Possible([assignment], self.apply, loose=[(COMPLETE, ())])

    def tell(self, row: int, event: Event) -> None:
        replicas = tuple(event.replicas or ())
        if event.kind == Kind.OK:
            self.last = row
        if event.f != DESCRIBE:
            self.is_asked = True
            follow(self.possible, event, (event.f or "", replicas))
        elif event.kind == Kind.OK and not self.is_asked:
            # After a request the answer may be older or newer than its move, so it rules nothing out.
            self._begin(Assignment(replicas))

    def ends(self) -> list[tuple[int, ...]]:
        """Where it can be once all moves are over."""
        states = self.possible.states()
        return sorted({assignment.replicas for assignment in states if not assignment.is_moving})


class Reassignment(Administered):
    operations = frozenset({DESCRIBE, MOVE, CANCEL})
    kinds = frozenset(
        {*CLIENT_KINDS, *addressed.KINDS, Kind.END_STATE, Kind.QUORUM_SAMPLE, Kind.ZNODE}
    )
    columns = (
        *("op", "f", "zxid", "zk_op", "path", "data", "controller_epoch"),
        *addressed.COLUMNS,
        *end_state.COLUMNS,
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (REASSIGNMENT,)

    def judge(self, rows: list[Row]) -> Results:
        moves = _moves(rows)
        observed, assigned = end_state.end_state(rows), assignments(rows)
        settled = {
            tp: row
            for tp, row in (observed.partitions or {}).items()
            if not assigned.current.get(tp, ANYWHERE).is_moving
            and tp[0] not in assigned.gone | assigned.marked
        }
        findings = [*observed.doubts(self.name)]
        for tp, row in sorted(settled.items()):
            if tp[0] not in assigned.deleted:
                findings += self._elsewhere(tp, row, moves.get(tp))
            findings += self._logs(tp, row, observed, assigned)
        findings += _not_made(rows)
        return conclude(REASSIGNMENT, checked=len(settled), findings=findings)

    def _elsewhere(
        self, tp: TopicPartition, end_row: Row, moves: Moves | None
    ) -> Iterator[Finding]:
        if moves is None:
            return
        row, event = end_row
        replicas, ends = tuple(event.replicas or ()), moves.ends()
        if replicas not in ends and ANYWHERE.replicas not in ends:
            allowed = " or ".join(str(list(end)) for end in ends)
            sentence = (
                f"At the end {tp_name(*tp)} has replicas {list(replicas)}; after the requests of clients it must "
                f"have {allowed}."
            )
            yield finding(self.name, tp_name(*tp), sentence, moves.last, row)

    def _logs(
        self, tp: TopicPartition, end_row: Row, end: EndState, assigned: Assignments
    ) -> Iterator[Finding]:
        row, event = end_row
        replicas = event.replicas or []
        for broker, logs in sorted(end.logs.items()):
            if broker in replicas and tp not in logs:
                sentence = (
                    f"At the end broker-{broker}, a replica of {tp_name(*tp)}, has no log of it."
                )
                yield finding(self.name, tp_name(*tp), sentence, row)
            elif broker not in replicas and tp in logs:
                yield self._left(tp, broker, row, logs[tp][0], assigned)

    def _left(
        self, tp: TopicPartition, broker: int, row: int, log: int, assigned: Assignments
    ) -> Finding:
        sentence = f"At the end broker-{broker} keeps a log of {tp_name(*tp)}, of which it is not a replica."
        removal = assigned.removals.get((tp, broker)) or assigned.removals_of_deleted.get(
            (tp, broker)
        )
        if removal is None:
            return finding(self.name, tp_name(*tp), sentence, row, log)
        if not assigned.might_not_know(removal, broker):
            return finding(self.name, tp_name(*tp), sentence, removal.row, row, log)
        sentence = (
            f"{sentence} It may not have received the request to delete it: it was down or cut off, or the "
            "controller changed."
        )
        return finding(
            self.name, tp_name(*tp), sentence, removal.row, row, log, verdict=Verdict.VALID
        )


def _not_made(rows: Iterable[Row]) -> Iterator[Finding]:
    """(c)."""
    for move in dropped(rows):
        name = tp_name(*move.tp)
        sentence = (
            f"An operator requested replicas {list(move.target)} of {name}. The controller took the request out of the "
            "znode, and the partition did not get these replicas."
        )
        yield finding(REASSIGNMENT.name, name, sentence, move.requested, move.removed)


def _moves(rows: list[Row]) -> dict[TopicPartition, Moves]:
    is_of_quorum = any(
        event.process == QUORUM or event.kind == Kind.QUORUM_SAMPLE for _, event in rows
    )
    apply = after_in_quorum if is_of_quorum else after
    by_partition: dict[TopicPartition, Moves] = {}
    for row, event in in_time(rows):
        if event.topic is not None and event.partition is not None:
            by_partition.setdefault((event.topic, event.partition), Moves(apply)).tell(row, event)
    return by_partition


REASSIGNMENT: Final = Property(
    name="reassignment",
    promise="At the end every partition lies on brokers that it was moved to, and nowhere else.",
    unit="partitions",
    unknown="The harness could not look at ZooKeeper or at a broker at the end.",
    source="KIP-455; KafkaController.onPartitionReassignment; PartitionReassignmentReplicas and -Revert of KRaft.",
    check=Reassignment,
    decided_from=frozenset({EventSource.METADATA_LOG, EventSource.CLIENTS, EventSource.END_STATE}),
    stand_ins=frozenset({EventSource.QUORUM_LOG}),
    completed_by=frozenset({EventSource.TRACES}),
    reason=ends.reassignment,
    reason_covers_excuses=True,
    breaks=breaks.REASSIGNMENT,
)
