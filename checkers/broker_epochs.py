"""What was meant for, or said by, another life of a broker has no effect.

A broker epoch is the czxid of the broker's registration: it tells the lives of a broker apart, and its sessions.

**broker-epoch-fenced**: (a) a broker accepts no control request that carries a smaller broker epoch than the one with
which it registered, nor one of another process life of its; (b) a controller that knows of a newer registration of a
broker commits no ISR that an older one proposed; (c) nor one into which a member comes by an older one (KIP-903): the
leader saw a replica catch up that has since lost what it had; (d) nothing else is fenced: a broker answers
STALE_BROKER_EPOCH only to a control request that carries a smaller broker epoch than the one with which it registered.
A controller may see a registration before the broker has got the answer to it, so a greater epoch is a newer
registration and not a stale one (KAFKA-9839). A controller knows of a registration once it has sent the broker a
request that carries it.
Smallest breaks: broker 3 registers with epoch 7, restarts, registers with 9, accepts a request that carries 7; the
controller sends broker 2 a request that carries 9, then commits an ISR that has broker 2 with 7; broker 3 registers
with 7 and refuses a request that carries 9.

What a correct cluster does and is not convicted for: a request with the epoch of an earlier session is accepted before
the broker has registered in the next; −1 is a sender that does not know (any member's epoch in the ISRs of Kafka's
ZooKeeper mode): it is not checked, and not counted; a registration of which the controller does not know yet fences
nothing; what a broker refuses before its first registration is compared with the epoch that it gets then.

Limits: ControlledShutdown is not traced. What a controller knows and has told nobody is not held against it, nor a
change of which its death left no trace.

Source: KIP-380 (KAFKA-7235), KIP-903 (KAFKA-14617), KAFKA-9839.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from nemesis.checkers.breaks import controllers as breaks
from nemesis.checkers.explain import controllers
from nemesis.checkers.framework.event_list import EventListCheck, Row, succeeded
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource

UNKNOWN_BROKER_EPOCH: Final = -1
_REFUSAL: Final = "STALE_BROKER_EPOCH"

ProcessIncarnation = tuple[str, int | None]
"""Process and incarnation."""


class BrokerEpochFenced(EventListCheck):
    kinds = frozenset(
        {
            Kind.BROKER_REGISTERED,
            Kind.CONTROL_REQUEST_HANDLED,
            Kind.CONTROL_REQUEST_SENT,
            Kind.ALTER_PARTITION_HANDLED,
        }
    )
    columns = (
        "incarnation",
        "node",
        "api",
        "peer",
        "error",
        "broker_epoch",
        "topic",
        "partition",
        "isr",
        "isr_epochs",
        "zxid",
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (BROKER_EPOCH_FENCED,)

    def judge(self, rows: list[Row]) -> Results:
        in_time = sorted(rows, key=lambda item: (item[1].time, item[1].seq))
        requests, judged = self._requests(in_time)
        isrs, committed = self._isrs(in_time)
        return conclude(BROKER_EPOCH_FENCED, checked=judged + committed, findings=requests + isrs)

    def _requests(self, rows: list[Row]) -> tuple[list[Finding], int]:
        """Parts (a) and (d)."""
        firsts, incarnations = _registrations(rows)
        own: dict[ProcessIncarnation, tuple[int, int]] = {}
        findings: list[Finding] = []
        judged = 0
        for row, event in rows:
            incarnation, epoch = (event.process, event.incarnation), event.broker_epoch
            if epoch is None or epoch == UNKNOWN_BROKER_EPOCH:
                continue
            if event.kind == Kind.BROKER_REGISTERED:
                own[incarnation] = (epoch, row)
            elif event.kind == Kind.CONTROL_REQUEST_HANDLED:
                # Before its first registration an older epoch was sent to an earlier incarnation.
                registered = own.get(incarnation) or firsts.get(incarnation)
                if succeeded(event):
                    judged += 1
                    owners = incarnations.get((event.process, epoch), {incarnation})
                    is_others = incarnation not in owners
                    findings += self._judge_accepted(row, event, registered, is_others=is_others)
                elif event.error == _REFUSAL and registered is not None:
                    judged += 1
                    findings += self._judge_refused(row, event, registered)
        return findings, judged

    def _judge_accepted(
        self, row: int, event: Event, registered: tuple[int, int] | None, *, is_others: bool
    ) -> Iterator[Finding]:
        """Part (a). ``registered``: the broker's own epoch and its row. ``is_others``: another incarnation's epoch."""
        claim = f"Broker {event.node} accepted {_request(event)} for its broker epoch {event.broker_epoch}"
        subject = f"broker-{event.node}"
        if registered is not None and (event.broker_epoch or 0) < registered[0]:
            sentence = f"{claim}, though it registered with {registered[0]}."
            yield finding(self.name, subject, sentence, registered[1], row)
        elif is_others:
            sentence = f"{claim}, which was that of another process."
            yield finding(self.name, subject, sentence, row)

    def _judge_refused(
        self, row: int, event: Event, registered: tuple[int, int]
    ) -> Iterator[Finding]:
        """Part (d)."""
        own_epoch, own_row = registered
        if (event.broker_epoch or 0) >= own_epoch:
            sentence = (
                f"Broker {event.node} refused {_request(event)} for its broker epoch {event.broker_epoch} as stale, "
                f"though the newest one with which it had registered was {own_epoch}."
            )
            yield finding(self.name, f"broker-{event.node}", sentence, own_row, row)

    def _isrs(self, rows: list[Row]) -> tuple[list[Finding], int]:
        """Parts (b) and (c)."""
        known: dict[ProcessIncarnation, dict[int, tuple[int, int]]] = defaultdict(dict)
        findings: list[Finding] = []
        committed = 0
        for row, event in rows:
            known_epochs = known[event.process, event.incarnation]
            if event.kind == Kind.CONTROL_REQUEST_SENT and event.peer is not None:
                epoch = UNKNOWN_BROKER_EPOCH if event.broker_epoch is None else event.broker_epoch
                if epoch > known_epochs.get(event.peer, (UNKNOWN_BROKER_EPOCH, row))[0]:
                    known_epochs[event.peer] = (epoch, row)
            elif event.kind == Kind.ALTER_PARTITION_HANDLED and _is_commit(event):
                committed += 1
                findings += self._judge_isr(row, event, known_epochs)
        return findings, committed

    def _judge_isr(
        self, row: int, event: Event, known_epochs: dict[int, tuple[int, int]]
    ) -> Iterator[Finding]:
        tp = tp_name(event.topic, event.partition)
        did = f"Broker {event.node} committed ISR {list(event.isr or ())} of {tp}"
        if event.peer in known_epochs and (event.broker_epoch or 0) < known_epochs[event.peer][0]:
            newer, newer_row = known_epochs[event.peer]
            sentence = (
                f"{did} for broker {event.peer} with broker epoch {event.broker_epoch}, though it knew that it had "
                f"registered with {newer}."
            )
            yield finding(self.name, tp, sentence, newer_row, row)
        for member, epoch in zip(event.isr or (), event.isr_epochs or (), strict=False):
            newer, newer_row = known_epochs.get(member, (UNKNOWN_BROKER_EPOCH, row))
            if UNKNOWN_BROKER_EPOCH < epoch < newer:
                sentence = (
                    f"{did} with broker {member} as it was under broker epoch {epoch}, though it knew that it had "
                    f"registered with {newer}."
                )
                yield finding(self.name, tp, sentence, newer_row, row)


def _registrations(
    rows: Iterable[Row],
) -> tuple[
    dict[ProcessIncarnation, tuple[int, int]], dict[tuple[str, int], set[ProcessIncarnation]]
]:
    """Return incarnation → (first broker epoch, row), and (process, broker epoch) → the incarnations with it."""
    firsts: dict[ProcessIncarnation, tuple[int, int]] = {}
    incarnations: dict[tuple[str, int], set[ProcessIncarnation]] = defaultdict(set)
    for row, event in rows:
        if event.kind == Kind.BROKER_REGISTERED and event.broker_epoch is not None:
            incarnation = (event.process, event.incarnation)
            firsts.setdefault(incarnation, (event.broker_epoch, row))
            incarnations[event.process, event.broker_epoch].add(incarnation)
    return firsts, incarnations


def _request(event: Event) -> str:
    return event.api or "a control request"


def _is_commit(event: Event) -> bool:
    """Whether the answer says that a state was written; without a zxid the ISR was as proposed already."""
    return succeeded(event) and event.zxid is not None


BROKER_EPOCH_FENCED: Final = Property(
    name="broker-epoch-fenced",
    promise="What was meant for, or said by, an earlier incarnation of a broker has no effect; nothing else is fenced.",
    unknown="No control request and no ISR change carries a broker epoch.",
    source="KIP-380 (KAFKA-7235), KIP-903 (KAFKA-14617), KAFKA-9839.",
    check=BrokerEpochFenced,
    decided_from=frozenset({EventSource.TRACES}),
    reason=controllers.broker_epoch_fenced,
    breaks=breaks.BROKER_EPOCH_FENCED,
)
