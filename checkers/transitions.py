"""The controller's state machines take only Kafka's transitions, and take each from where they are.

**legal-transition**: every transition of a partition or of a replica that a controller traces without an error is one
of those below, and begins in the state in which the same controller, in the same term, last left it.

    partition   NonExistent → New → Online ⇄ Offline → NonExistent;   Online → Online, Offline → Offline, New → Offline
    replica     NonExistent → New → Online ⇄ Offline → DeletionStarted → DeletionSuccessful → NonExistent;
                Online → Online, Offline → Offline, New → Offline;
                Offline or DeletionStarted → DeletionIneligible → Online or Offline

Smallest breaks: a partition goes Online → New; a replica goes New → Online, then Offline → DeletionStarted.

What a correct controller does and is not convicted for: it refuses an illegal transition and traces that with an error;
a term begins with the states that its failover found, which are not traced (a replica that it found is Online, or, with
its broker away, DeletionIneligible); the next term, on the same broker or another, begins anew; a partition that is not
brought online stays as it is; a topic that was created twice is two topics.

Source: PartitionStateMachine and ReplicaStateMachine (validPreviousStates).
"""

from __future__ import annotations

from typing import Final

from nemesis.checkers.breaks import leaders as breaks
from nemesis.checkers.explain import leaders
from nemesis.checkers.framework.event_list import EventListCheck, Row, succeeded
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.state_machines import FIRST_STATES, PREVIOUS_STATES
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource
from nemesis.history.vocabulary.controller import Transition
from nemesis.history.vocabulary.declaring import columns_of

Thing = tuple[str | None, str | None, int | None, int | None]
"""Topic, topic id, partition and, if it is a replica, its broker."""
Term = tuple[str, int | None, int | None]
"""Process, incarnation and controller epoch."""


class LegalTransition(EventListCheck):
    kinds = frozenset({Kind.TRANSITION, Kind.CONTROLLER_ELECTED})
    columns = columns_of(Transition)

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (LEGAL_TRANSITION,)

    def judge(self, rows: list[Row]) -> Results:
        terms: dict[Term, dict[Thing, tuple[int, str]]] = {}
        findings: list[Finding] = []
        checked = 0
        for row, event in sorted(rows, key=lambda item: (item[1].time, item[1].seq)):
            term = (event.process, event.incarnation, event.controller_epoch)
            if event.kind == Kind.CONTROLLER_ELECTED:
                terms[term] = {}
            elif succeeded(event):
                checked += 1
                findings += self._judge_transition(row, event, terms.setdefault(term, {}))
        return conclude(LEGAL_TRANSITION, checked=checked, findings=findings)

    def _judge_transition(
        self, row: int, event: Event, states: dict[Thing, tuple[int, str]]
    ) -> list[Finding]:
        """What is wrong with one transition; ``states`` holds what each thing last became, and in which row."""
        tp = tp_name(event.topic, event.partition)
        before, after = event.from_state, event.to_state
        if before is None or after is None:
            sentence = f"A transition of {tp} lacks its states: expected from_state and to_state."
            return [finding(self.name, tp, sentence, row, verdict=Verdict.UNKNOWN)]
        machine = "partition" if event.replica is None else "replica"
        thing = (event.topic, event.topic_id, event.partition, event.replica)
        last_row, last = states.get(thing, (None, None))
        states[thing] = (row, after)
        subject = tp if machine == "partition" else f"the replica of {tp} on broker {event.replica}"
        clause = (
            f"Broker {event.node}, controller of epoch {event.controller_epoch}, took {subject}"
        )
        if before not in PREVIOUS_STATES[machine].get(after, ()):
            why = "which is not a legal transition"
        elif last is not None and before != last:
            why = f"though it had last brought it to {last}"
        elif last is None and before not in FIRST_STATES[machine]:
            why = "which is not a state at the beginning of a controller epoch"
        else:
            return []
        sentence = f"{clause} from {before} to {after}, {why}."
        return [finding(self.name, tp, sentence, last_row, row)]


LEGAL_TRANSITION: Final = Property(
    name="legal-transition",
    promise="Partitions and replicas change their states only as Kafka's controller allows.",
    unit="transitions",
    unknown="A traced transition cannot be read.",
    source="PartitionStateMachine and ReplicaStateMachine (validPreviousStates).",
    check=LegalTransition,
    decided_from=frozenset({EventSource.TRACES}),
    reason=leaders.legal_transition,
    breaks=breaks.LEGAL_TRANSITION,
)
