"""The office of the controller is given up for a reason.

* **office-kept**: ``/controller`` disappears with the session that created it; or its owner deletes it, after it has
  resigned from that epoch; or an operator deletes it, from a session that is not a broker's. A controller that has
  resigned from an epoch does not take up the same epoch again.
  Smallest break: broker 1 creates ``/controller``; broker 2 deletes it.

What a correct cluster does and is not convicted for: a session ends at any time; a controller resigns long before its
session ends, or long after; an operator forces an election by deleting the znode; of a session it is unknown whose it
is, when no broker traced it.

Limits: whether the reason of a resignation holds is not judged, only that the office was really left. An owner that
deletes ``/controller`` is judged only if controllers trace at all: one without traces may have resigned.
Source: KafkaController (triggerControllerMove, maybeResign), KafkaZkClient.deleteController; KAFKA-13407.
"""

from __future__ import annotations

from typing import Final

from nemesis.checkers import znodes
from nemesis.checkers.breaks import office as breaks
from nemesis.checkers.explain import office as explain
from nemesis.checkers.framework.event_list import EventListCheck, Row
from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.history.events import Kind
from nemesis.history.sources import EventSource


class Office(EventListCheck):
    kinds = frozenset(
        {
            Kind.ZNODE,
            Kind.SESSION_CLOSED,
            Kind.BROKER_REGISTERED,
            Kind.SESSION_STATE,
            Kind.CONTROLLER_ELECTED,
            Kind.CONTROLLER_RESIGNED,
        }
    )
    columns = (*znodes.COLUMNS, "incarnation")

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (OFFICE_KEPT,)

    def judge(self, rows: list[Row]) -> Results:
        ended, checked = _ends(rows)
        return conclude(OFFICE_KEPT, checked=checked, findings=ended + _taken_again(rows))


def _ends(rows: list[Row]) -> tuple[list[Finding], int]:
    """Return the ends of ``/controller`` that nothing explains, and how often it was created."""
    owners = znodes.session_owners(rows)
    closed = {(event.zxid, event.session) for _, event in rows if event.kind == Kind.SESSION_CLOSED}
    elected, resigned = (
        {(event.node, event.controller_epoch) for _, event in rows if event.kind == kind}
        for kind in (Kind.CONTROLLER_ELECTED, Kind.CONTROLLER_RESIGNED)
    )
    epochs = {
        event.zxid: event.controller_epoch
        for _, event in znodes.epoch_changes(rows)
        if znodes.is_election(event)
    }
    findings: list[Finding] = []
    terms = 0
    holder: Row | None = None
    for row, event in znodes.changes(rows):
        if event.path != znodes.CONTROLLER:
            continue
        if event.zk_op == "create":
            holder = (row, event)
            terms += 1
        elif event.zk_op == "delete" and holder is not None:
            created_row, created = holder
            epoch = epochs.get(created.zxid)
            owner = owners.get(created.session or 0)
            remover = owners.get(event.session or 0)
            holder = None
            if (event.zxid, event.session) in closed and event.session == created.session:
                continue
            if remover is None or owner is None:
                continue
            if remover != owner:
                sentence = f"Broker {remover} deleted /controller, which named broker {owner}."
            elif elected and (owner, epoch) not in resigned:
                sentence = f"Broker {owner} deleted /controller without having resigned from epoch {epoch}."
            else:
                continue
            findings.append(
                finding(OFFICE_KEPT.name, znodes.CONTROLLER, sentence, created_row, row)
            )
    return findings, terms


def _taken_again(rows: list[Row]) -> list[Finding]:
    """Return the epochs that a broker took up again after it had resigned from them."""
    resigned: dict[tuple[str, int | None, int | None], int] = {}
    findings = []
    traced = [item for item in rows if item[1].time >= 0]
    for row, event in sorted(traced, key=lambda item: (item[1].time, item[1].seq)):
        term = (event.process, event.incarnation, event.controller_epoch)
        if event.kind == Kind.CONTROLLER_RESIGNED:
            resigned[term] = row
        elif event.kind == Kind.CONTROLLER_ELECTED and term in resigned:
            epoch = event.controller_epoch
            sentence = (
                f"Broker {event.node} resigned from controller epoch {epoch} and used it again: no other broker had "
                "become controller."
            )
            findings.append(
                finding(
                    OFFICE_KEPT.name, f"controller epoch {epoch}", sentence, resigned[term], row
                )
            )
    return findings


OFFICE_KEPT: Final = Property(
    name="office-kept",
    promise="A controller leaves its office only because it has lost it, or after it has resigned.",
    unit="terms of controllers",
    unknown="ZooKeeper's log shows no controller.",
    source="KafkaController (triggerControllerMove, maybeResign); KAFKA-13407.",
    check=Office,
    decided_from=frozenset({EventSource.METADATA_LOG}),
    completed_by=frozenset({EventSource.TRACES}),
    reason=explain.office_kept,
    breaks=breaks.OFFICE_KEPT,
)
