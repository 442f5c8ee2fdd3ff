"""Preferred elections that an administrator asks for, and needless ones.

* **elections-answered**: when ElectLeaders has answered an administrator without an error, the preferred replica was
  elected between the request and the answer: a controller committed a state of the partition by strategy `preferred`
  whose leader is the first assigned replica. And a preferred election always replaces another leader: every election
  costs its leader an epoch.
  Smallest break: the request of ``t-0`` succeeds, and no controller has elected anybody.

Why time order may be trusted here: a controller traces a state after ZooKeeper has committed it, before it answers, and
the client reads the clock before it sends and after it has the answer.

What a correct cluster does and is not convicted for: a request that fails or times out, of which the election may
stand; elections that the controller makes by itself for the balance of leaders; a leader that changes again before
the answer.

Limits: that a request was refused rightly (the leader is the preferred one already) is not judged: a deposed
controller may refuse what it does not know.
Source: KIP-460 (ElectLeaders), KIP-183; KafkaController.processReplicaLeaderElection.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from nemesis.checkers import znodes
from nemesis.checkers.administered import Administered
from nemesis.checkers.breaks import elections_answered as breaks
from nemesis.checkers.explain import elections_answered as explain
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.history.events import Kind
from nemesis.history.sources import EventSource

PREFERRED: Final = "preferred"
TopicPartition = tuple[str | None, int | None]


class ElectionsAnswered(Administered):
    operations = frozenset({"elect-leaders"})
    kinds = frozenset({Kind.INVOKE, Kind.OK, Kind.LEADER_ELECTED, Kind.ZNODE})
    columns = (*znodes.COLUMNS, "topic_id", "op", "f", "strategy", "replicas")

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (ELECTIONS_ANSWERED,)

    def judge(self, rows: list[Row]) -> Results:
        committed = [item for item in rows if item[1].kind == Kind.LEADER_ELECTED]
        elections = [item for item in committed if item[1].strategy == PREFERRED]
        unanswered, answers = _unanswered(rows, elections, is_traced=bool(committed))
        checked = answers + len(committed)
        findings = unanswered + _needless(rows, elections)
        return conclude(ELECTIONS_ANSWERED, checked=checked, findings=findings)


def _unanswered(
    rows: list[Row], elections: list[Row], *, is_traced: bool
) -> tuple[list[Finding], int]:
    """Return the successes without an election, and how many successes there are."""
    elected: dict[TopicPartition, list[int]] = defaultdict(list)
    for _, event in elections:
        if event.replicas and event.leader == event.replicas[0]:
            elected[event.topic, event.partition].append(event.time)
    asked = {
        (event.process, event.op): (row, event)
        for row, event in rows
        if event.kind == Kind.INVOKE and event.f == "elect-leaders"
    }
    findings: list[Finding] = []
    answers = 0
    for row, event in rows:
        invocation = asked.get((event.process, event.op))
        is_success = event.kind == Kind.OK and event.f == "elect-leaders"
        if not is_success or invocation is None or not is_traced:
            continue
        answers += 1
        began_row, began = invocation
        times = elected[event.topic, event.partition]
        if not any(began.time <= time <= event.time for time in times):
            tp = tp_name(event.topic, event.partition)
            sentence = (
                f"{event.process} received the answer that the preferred leader of {tp} was elected, and no controller "
                "elected it."
            )
            findings.append(finding(ELECTIONS_ANSWERED.name, tp, sentence, began_row, row))
    return findings, answers


def _needless(rows: list[Row], elections: list[Row]) -> list[Finding]:
    """Return the preferred elections that left the leader as it was."""
    changes = {
        (change.event.topic, change.event.partition, change.event.zxid): change
        for change in znodes.state_changes(rows)
    }
    findings = []
    for row, event in elections:
        change = changes.get((event.topic, event.partition, event.zxid))
        if change is None or change.previous is None or change.previous.leader != event.leader:
            continue
        tp = tp_name(event.topic, event.partition)
        sentence = (
            f"A preferred election of {tp} replaced leader {event.leader} by itself, in leader epoch "
            f"{event.leader_epoch}."
        )
        findings.append(finding(ELECTIONS_ANSWERED.name, tp, sentence, change.previous_row, row))
    return findings


ELECTIONS_ANSWERED: Final = Property(
    name="elections-answered",
    promise="A preferred election that is reported as done was made, and none is made that is not needed.",
    unit="states that a controller committed, and answers",
    unknown="No controller reported a state that it had committed.",
    source="KIP-460 (ElectLeaders); KafkaController.processReplicaLeaderElection.",
    check=ElectionsAnswered,
    decided_from=frozenset({EventSource.METADATA_LOG, EventSource.CLIENTS, EventSource.TRACES}),
    reason=explain.elections_answered,
    breaks=breaks.ELECTIONS_ANSWERED,
)
