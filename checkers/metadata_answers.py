"""What a broker answers to Metadata is what it has of the partition.

**metadata-answered**: a broker's answer about a partition has leader, leader epoch, ISR and replicas of one state that
its metadata cache held at some time between the request and the answer. Instead of a leader that is not among the
brokers that it knows to be alive, it names no leader (−1), and only then.
Smallest break: broker 3 reports leader epoch 4 with leader 1, and answers leader epoch 4 with leader 2.

Why the times may be compared: client and broker read one clock. A broker reports a new state after it has it and before
it answers any request with it. So the possible states are the last one that was reported before the request, and those
that were reported until the answer.

What a correct cluster does and is not convicted for: metadata are old, by different amounts on different brokers; a
broker that does not know the partition answers with an error; one that has started again knows nothing at first, and an
answer of the process before may still arrive; a broker that writes no traces.

Limits: that a partition leaves the cache is not traced, so an answer about a deleted partition is compared with what it
had last. Which replicas are offline is not recorded.
Source: MetadataCache.getPartitionMetadata, KafkaApis.handleTopicMetadataRequest of Kafka 3.9; KIP-320.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple

from nemesis.checkers.breaks import metadata as breaks
from nemesis.checkers.explain import metadata as explain
from nemesis.checkers.framework.event_list import EventListCheck, Row
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Segment
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource

_QUERY: Final = "metadata"
_NO_LEADER: Final = -1
_REPORTS: Final = frozenset({Kind.METADATA_UPDATED, Kind.PARTITION_METADATA})
_OPERATIONS: Final = frozenset({Kind.INVOKE, Kind.OK})

CacheEntry = tuple[int | None, str | None, int | None]
"""Broker, topic, partition; without a topic its live brokers."""


class Answer(NamedTuple):
    asked: Event
    row: int
    event: Event


class MetadataAnswers(EventListCheck):
    kinds = _REPORTS | _OPERATIONS
    columns = (
        *("node", "topic", "topic_id", "partition", "f", "op", "live"),
        *("leader", "leader_epoch", "isr", "replicas"),
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (METADATA_ANSWERED,)

    def reduce(self, segment: Segment) -> list[Row]:
        operations = segment.only(_OPERATIONS)
        asked = operations.where(operations.is_word("f", {_QUERY}))
        reports = segment.only(_REPORTS)
        return [*reports.events(*self.columns), *asked.events(*self.columns)]

    def judge(self, rows: list[Row]) -> Results:
        reports = _reports(rows)
        findings: list[Finding] = []
        checked = sum(event.kind == Kind.PARTITION_METADATA for _, event in rows)
        for answer in _answers(rows):
            event = answer.event
            if not reports[event.node, None, None]:
                continue
            checked += 1
            known = _during(reports[event.node, event.topic, event.partition], answer)
            live = _during(reports[event.node, None, None], answer)
            if not any(_agrees(event, state, brokers) for _, state in known for _, brokers in live):
                findings.append(_finding(answer, known))
        return conclude(METADATA_ANSWERED, checked=checked, findings=findings)


def _reports(rows: Sequence[Row]) -> defaultdict[CacheEntry, list[Row]]:
    """Return what each broker reported of each entry of its cache, in order of time."""
    reports: defaultdict[CacheEntry, list[Row]] = defaultdict(list)
    reported = [item for item in rows if item[1].kind in _REPORTS]
    for row, event in sorted(reported, key=lambda item: (item[1].time, item[1].seq)):
        reports[event.node, event.topic, event.partition].append((row, event))
    return reports


def _answers(rows: Sequence[Row]) -> list[Answer]:
    asked: dict[tuple[str, int | None], Event] = {}
    answers = []
    operations = [item for item in rows if item[1].kind in _OPERATIONS]
    for row, event in sorted(operations, key=lambda item: (item[1].time, item[1].seq)):
        if event.kind == Kind.INVOKE:
            asked[event.process, event.op] = event
        elif (question := asked.pop((event.process, event.op), None)) is not None:
            answers.append(Answer(question, row, event))
    return answers


def _during(reports: Sequence[Row], answer: Answer) -> Sequence[Row]:
    """Return what may have been in the cache between the request and the answer."""
    times = [event.time for _, event in reports]
    begin = bisect_right(times, answer.asked.time)
    return reports[max(0, begin - 1) : bisect_right(times, answer.event.time)]


def _agrees(answer: Event, state: Event, brokers: Event) -> bool:
    is_alive = brokers.live is None or state.leader in brokers.live
    leaders = {state.leader if is_alive else _NO_LEADER}
    if brokers.live is None:
        leaders.add(_NO_LEADER)
    return (
        answer.leader in leaders
        and answer.leader_epoch == state.leader_epoch
        and _is_same(answer.isr, state.isr)
        and _is_same(answer.replicas, state.replicas)
    )


def _is_same(answered: list[int] | None, held: list[int] | None) -> bool:
    """Histories of older versions do not say what was held."""
    return held is None or answered == held


def _finding(answer: Answer, known: Sequence[Row]) -> Finding:
    event = answer.event
    tp = tp_name(event.topic, event.partition)
    held = f"had {_words(known[-1][1])}" if known else "never contained it"
    sentence = (
        f"Broker {event.node} answered that {tp} has {_words(event)}, but its metadata {held}."
    )
    rows = [row for row, _ in known[-1:]]
    return finding(METADATA_ANSWERED.name, tp, sentence, *rows, answer.row)


def _words(state: Event) -> str:
    return (
        f"leader {state.leader} in leader epoch {state.leader_epoch}, ISR {state.isr} and "
        f"replicas {state.replicas}"
    )


METADATA_ANSWERED: Final = Property(
    name="metadata-answered",
    promise="A broker answers Metadata with what its metadata cache has at that time.",
    unit="answers to Metadata, and states that brokers reported",
    unknown="No broker reported what an UpdateMetadata request changed.",
    source="MetadataCache.getPartitionMetadata, KafkaApis.handleTopicMetadataRequest; KIP-320.",
    check=MetadataAnswers,
    decided_from=frozenset({EventSource.TRACES, EventSource.CLIENTS}),
    recorded_since=4,
    reason=explain.metadata_answered,
    breaks=breaks.METADATA_ANSWERED,
)
