"""What the controller is notified of in ZooKeeper, it handles: the notification is deleted, and does not stay.

Leaders create ``/isr_change_notification/isr_change_N`` for ISRs that they have written (before IBP 2.7), brokers
create ``/log_dir_event_notification/log_dir_event_N`` for a failed log directory, and operators create
``/admin/preferred_replica_election``. The controller reads each and deletes it.

* **notifications-handled**:
  (a) a notification that was created before a controller was elected is deleted in the term of that controller, once
  the controller has finished its failover. ZooKeeper's order alone decides: the failover reads and deletes what
  was there, and the traced end of the failover lies after the deletions.
  (b) a notification of the last term is deleted within the session time-out and a tick. The time counts from the
  latest of the end of the last fault, the end of the failover and the first broker that traced the transaction or a
  later one, to the last measurement of the machine before the end of the run.
  Smallest break: ``log_dir_event_0`` is created; broker 1 is elected and finishes its failover; the znode stays.

Why the bound of (b) holds: the controller handles one event after the other, and none waits for anything but
ZooKeeper. A controller that ZooKeeper does not answer for a session time-out loses its session, and with it its term.

What a correct cluster does and is not convicted for: a controller that is deposed during its failover; a notification
that is created just before the end; a controller whose session expired, or whose ``/controller`` was deleted, and that
has no successor (``convergence`` judges that). A notification that is deleted at any time in the term is handled. A
slow machine makes a finding of (b) ``unknown``, as for ``late-recovery``.

Limits: what the controller does about a notification is judged by other properties. Notifications of changed settings
(``/config/changes``) stay for 15 minutes in Kafka, too, and are not judged. (b) needs a broker that traces a later
transaction; it cannot decide without.
Source: KafkaController (onControllerFailover, processIsrChangeNotification, processLogDirEventNotification,
processZkPreferredReplicaElection); KIP-112.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from nemesis.checkers import znodes
from nemesis.checkers.breaks import notifications as breaks
from nemesis.checkers.explain import notifications as explain
from nemesis.checkers.framework.event_list import EventListCheck, Row
from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.liveness import unexplained
from nemesis.checkers.liveness.recovery_bound import session_bound_ms
from nemesis.checkers.liveness.terms import Term, terms_of
from nemesis.checkers.zxid_times import ZxidTimes
from nemesis.history.events import Kind
from nemesis.history.sources import EventSource

_PREFIXES: Final = (
    "/isr_change_notification/isr_change_",
    "/log_dir_event_notification/log_dir_event_",
    "/admin/preferred_replica_election",
)
_END: Final = "end"
_CLOSED: Final = "closed"
_MS: Final = 1_000_000


@dataclass(slots=True)
class Notification:
    """A znode between its creation and its deletion."""

    created: Row
    deleted_zxid: int | None = None

    @property
    def created_zxid(self) -> int:
        return self.created[1].zxid or 0

    def outlives(self, term: Term) -> bool:
        """Whether the znode was still there when the term ended; in the last term, at the end of the log."""
        if self.deleted_zxid is None:
            return True
        return term.next_zxid is not None and self.deleted_zxid > term.next_zxid


class Notifications(EventListCheck):
    kinds = frozenset(
        {
            Kind.ZNODE,
            Kind.SESSION_CLOSED,
            Kind.CONTROLLER_ELECTED,
            Kind.CONTROLLER_FAILOVER,
            Kind.CONTROLLER_RESIGNED,
            Kind.LEADER_ELECTED,
            Kind.ALTER_PARTITION_HANDLED,
            Kind.ZNODE_OUTCOME,
            Kind.BROKER_REGISTERED,
            *unexplained.KINDS,
        }
    )
    columns = (*znodes.COLUMNS, "reason", *unexplained.COLUMNS)

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (NOTIFICATIONS_HANDLED,)

    def judge(self, rows: list[Row]) -> Results:
        notifications, terms = _notifications(rows), terms_of(rows)
        findings = [
            _not_cleared(notification, term)
            for term in terms
            for notification in notifications
            if notification.created_zxid < term.granted_zxid and notification.outlives(term)
        ]
        findings += _overdue(rows, notifications, terms)
        checked = len(terms) + len(notifications) if terms else 0
        return conclude(NOTIFICATIONS_HANDLED, checked=checked, findings=findings)


def _notifications(rows: list[Row]) -> list[Notification]:
    every: list[Notification] = []
    pending: dict[str, Notification] = {}
    for row, event in znodes.changes(rows):
        path = event.path or ""
        if not path.startswith(_PREFIXES):
            continue
        if event.zk_op == "create":
            pending[path] = Notification((row, event))
            every.append(pending[path])
        elif event.zk_op == "delete" and path in pending:
            pending.pop(path).deleted_zxid = event.zxid
    return every


def _not_cleared(notification: Notification, term: Term) -> Finding:
    row, event = notification.created
    failover_row, failover = term.failover
    left = "at the end" if term.next_zxid is None else "when the next controller was elected"
    sentence = (
        f"{event.path} was created before broker {failover.node} was elected controller of epoch "
        f"{term.controller_epoch}, and was still there {left}."
    )
    return finding(NOTIFICATIONS_HANDLED.name, event.path or "", sentence, row, failover_row)


def _overdue(
    rows: list[Row], notifications: list[Notification], terms: list[Term]
) -> Iterator[Finding]:
    """Yield what part (b) finds."""
    bound = session_bound_ms(rows)
    ends = [item for item in rows if item[1].phase == _END]
    if bound is None or not ends or not terms or terms[-1].next_zxid is not None:
        return
    term, (end_row, end) = terms[-1], ends[-1]
    windows = unexplained.without_faults(rows, until=_END)
    if not windows or windows[-1][1] < end.time or _is_lost(rows, term, end.time):
        return
    settled = max(windows[-1][0], term.failover[1].time)
    until = unexplained.measured_until(rows, end.time)
    times = ZxidTimes(rows)
    for notification in notifications:
        known = times.known(notification.created_zxid)
        is_of_term = notification.created_zxid > term.granted_zxid
        if known is None or not is_of_term or not notification.outlives(term):
            continue
        since = max(settled, known)
        waited = (until - since) // _MS
        if waited <= bound:
            continue
        row, event = notification.created
        excuse = unexplained.excuse(rows, since, until, waited - bound)
        sentence = (
            f"Broker {term.failover[1].node}, the controller of epoch {term.controller_epoch}, left {event.path} for "
            f"{waited:,} ms without an active fault; the configuration allows at most {bound:,} ms."
        )
        yield finding(
            NOTIFICATIONS_HANDLED.name,
            event.path or "",
            sentence if excuse is None else f"{sentence} But {excuse}.",
            row,
            term.failover[0],
            end_row,
            verdict=Verdict.INVALID if excuse is None else Verdict.UNKNOWN,
        )


def _is_lost(rows: list[Row], term: Term, end: int) -> bool:
    """Whether the controller may have lost its office before the end: it resigned, or not its stop ended the znode."""
    closed = {
        event.zxid
        for _, event in rows
        if event.kind == Kind.SESSION_CLOSED and event.reason == _CLOSED
    }
    has_resigned = any(
        event.kind == Kind.CONTROLLER_RESIGNED
        and event.controller_epoch == term.controller_epoch
        and event.time < end
        for _, event in rows
    )
    return has_resigned or any(
        event.path == znodes.CONTROLLER
        and event.zk_op == "delete"
        and (event.zxid or 0) > term.granted_zxid
        and event.zxid not in closed
        for _, event in znodes.changes(rows)
    )


NOTIFICATIONS_HANDLED: Final = Property(
    name="notifications-handled",
    promise="The controller handles and deletes the notifications that it gets in ZooKeeper.",
    unit="notifications, and controllers",
    unknown="No controller reported the end of its failover, or the machine was slow.",
    source="KafkaController (onControllerFailover, processIsrChangeNotification); KIP-112.",
    check=Notifications,
    decided_from=frozenset(
        {EventSource.METADATA_LOG, EventSource.TRACES, EventSource.FAULTS, EventSource.HARNESS}
    ),
    reason=explain.notifications_handled,
    breaks=breaks.NOTIFICATIONS_HANDLED,
)
