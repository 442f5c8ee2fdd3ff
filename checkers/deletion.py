"""Topics are there at the end if they must be, with as many partitions, and of deleted ones nothing is left.

**deletion**: for each name that clients have created, grown or deleted

(a) what they were told can be: nobody is told that a topic was created while it certainly exists;
(b) at the end the topic is absent, or has a number of partitions, that is possible after their operations;
(c) if it was deleted, nothing of that life is left: no znode of its own, no mark of its deletion, no log on a broker's
    disk, no broker that tells of it;
(d) each life has a topic id of its own;
(e) ZooKeeper deletes a topic's znode only while the topic is marked for deletion. With KRaft there are no marks.

Smallest breaks: (b) ok(create t with 1 partition), at the end ZooKeeper has no t; (c) the same, ok(delete t), at the
end broker 2 keeps a log of t-0. That records of an earlier life are read is ``earlier-life-read`` of
``nemesis.checkers.log``.

What a correct cluster does and is not convicted for: an operation of unknown outcome may have its effect at any later
time, or never; deleting what is being deleted already succeeds; a topic that is marked for deletion counts as absent,
whether its deletion comes to an end is the property ``convergence``; the configuration of a topic whose creation then
failed stays; a broker that was away when a reassignment took its replica away never hears of the deletion either, and
keeps the log, with Kafka too: that is reported and allowed (``nemesis.checkers.reassignment``).

Limits: judged by what the harness saw at the end (``nemesis.checkers.end_state``); names that nobody operated on are
not judged. Without ZooKeeper's log (c) says nothing of znodes, (d) and (e) nothing at all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from nemesis.checkers import addressed, end_state
from nemesis.checkers.administered import CLIENT_KINDS, Administered, follow, in_time
from nemesis.checkers.assignments import Assignments, assignments
from nemesis.checkers.breaks import ends as breaks
from nemesis.checkers.end_state import EndState
from nemesis.checkers.explain import ends
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.possible import Possible
from nemesis.checkers.znodes import MARKS, TOPIC_CONFIGS, TOPICS, changes
from nemesis.history.events import Event, Kind
from nemesis.history.quorum_events import PROCESS as QUORUM
from nemesis.history.sources import EventSource

CREATE, GROW, DELETE = "create-topic", "create-partitions", "delete-topic"
ABSENT = 0

Effect = tuple[str, int]
"""What is done, and how many partitions there are then."""


def after(partitions: int, effect: Effect) -> frozenset[int]:
    """Return what may come of it: how many partitions a topic then has, 0 if it is absent."""
    operation, count = effect
    if operation == CREATE:
        return frozenset({count} if partitions == ABSENT else ())
    if operation == GROW:
        return frozenset({count} if ABSENT < partitions < count else ())
    return frozenset({ABSENT})


@dataclass(slots=True)
class Name:
    """What is known of one topic's name."""

    possible: Possible[int, Effect] = field(default_factory=lambda: Possible([ABSENT], after))
    last: Row | None = None
    """The last success."""
    impossible: list[Row] = field(default_factory=list)

    def tell(self, row: int, event: Event) -> None:
        if not follow(self.possible, event, (event.f or "", event.partition_count or 0)):
            self.impossible.append((row, event))
        if event.kind == Kind.OK:
            self.last = (row, event)


@dataclass(slots=True)
class Znodes:
    """What ZooKeeper's log says of topics."""

    existing: dict[str, Row] = field(default_factory=dict)
    """Path → the row that created it, of all znodes that exist at the end."""
    deleted: dict[str, Row] = field(default_factory=dict)
    """Topic → the row that last deleted it."""
    unasked: list[Row] = field(default_factory=list)
    """The rows that deleted a topic which was not marked."""
    ids: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    """Topic id → the rows that created a topic with it."""

    def is_marked(self, topic: str) -> bool:
        return MARKS + topic in self.existing


class Deletion(Administered):
    operations = frozenset({CREATE, GROW, DELETE})
    kinds = frozenset({*CLIENT_KINDS, *addressed.KINDS, Kind.END_STATE, Kind.ZNODE})
    columns = (
        "op",
        "f",
        "partition_count",
        "zxid",
        "zk_op",
        "path",
        "data",
        "controller_epoch",
        "topic_id",
        *addressed.COLUMNS,
        *end_state.COLUMNS,
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (DELETION,)

    def judge(self, rows: list[Row]) -> Results:
        names: dict[str, Name] = defaultdict(Name)
        for row, event in in_time(rows):
            if event.topic is not None:
                names[event.topic].tell(row, event)
        observed, znodes = end_state.end_state(rows), _znodes(rows)
        findings = [*observed.doubts(self.name)]
        for topic, name in sorted(names.items()):
            findings += self._impossible_answers(topic, name)
            findings += self._not_as_asked(topic, name, observed, znodes)
        findings += self._left_behind(names, observed, znodes, assignments(rows))
        findings += self._same_id(znodes)
        findings += self._unasked(znodes)
        checked = 0 if observed.partitions is None else len(names)
        return conclude(DELETION, checked=checked, findings=findings)

    def _impossible_answers(self, topic: str, name: Name) -> Iterator[Finding]:
        for row, event in name.impossible:
            sentence = f"{event.process} got the answer that {event.f} of {topic} succeeded, which is impossible."
            yield finding(self.name, topic, sentence, row)

    def _not_as_asked(
        self, topic: str, name: Name, observed: EndState, znodes: Znodes
    ) -> Iterator[Finding]:
        if observed.partitions is None:
            return
        there = {tp: row for tp, (row, _) in observed.partitions.items() if tp[0] == topic}
        count = ABSENT if znodes.is_marked(topic) else len(there)
        possible = name.possible.states()
        if count not in possible:
            last = None if name.last is None else name.last[0]
            allowed = " or ".join(_described(partitions) for partitions in sorted(possible))
            sentence = f"At the end {topic} {_described(count)}, but by the answers to clients it {allowed}."
            yield finding(self.name, topic, sentence, last, *list(there.values())[:1])

    def _left_behind(
        self, names: Iterable[str], observed: EndState, znodes: Znodes, assigned: Assignments
    ) -> Iterator[Finding]:
        """What speaks of partitions that do not exist."""
        known = set(names)
        for phrase, by_broker in ("keeps a log of", observed.logs), ("tells of", observed.metadata):
            for node, partitions in sorted(by_broker.items()):
                for tp, (row, _) in sorted(partitions.items()):
                    if tp[0] in known and tp not in (observed.partitions or {}):
                        deletion = znodes.deleted.get(tp[0])
                        sentence = f"At the end broker-{node} {phrase} {tp_name(*tp)}, which does not exist."
                        proof = None if deletion is None else deletion[0]
                        removal = assigned.removals_of_deleted.get((tp, node))
                        verdict = Verdict.INVALID
                        if by_broker is observed.logs and removal is not None:
                            proof = removal.row
                            if assigned.might_not_know(removal, node):
                                verdict = Verdict.VALID
                                sentence += (
                                    " It may never have received the request to delete its replica."
                                )
                        yield finding(self.name, tp[0], sentence, proof, row, verdict=verdict)
        for path, (row, event) in sorted(znodes.existing.items()):
            topic = _topic_of(path)
            deletion = znodes.deleted.get(topic)
            if TOPICS + topic in znodes.existing or deletion is None:
                continue
            if (event.zxid or 0) < (deletion[1].zxid or 0):
                sentence = f"{topic} was deleted, its znode {path} was not."
                yield finding(self.name, topic, sentence, row, deletion[0])

    def _same_id(self, znodes: Znodes) -> Iterator[Finding]:
        for topic_id, created in znodes.ids.items():
            if len(created) > 1:
                names = " and ".join(_topic_of(event.path or "") for _, event in created[:2])
                sentence = f"{names} were created with the same topic id {topic_id}."
                yield finding(self.name, names, sentence, *(row for row, _ in created[:2]))

    def _unasked(self, znodes: Znodes) -> Iterator[Finding]:
        for row, event in znodes.unasked:
            topic = _topic_of(event.path or "")
            sentence = f"{topic} was deleted while it was not marked for deletion."
            yield finding(self.name, topic, sentence, row)


def _znodes(rows: Iterable[Row]) -> Znodes:
    znodes = Znodes()
    for row, event in changes(rows):
        path = event.path or ""
        if not _topic_of(path):
            continue
        is_topic = path == TOPICS + _topic_of(path)
        if event.zk_op == "delete":
            znodes.existing.pop(path, None)
            if is_topic:
                znodes.deleted[_topic_of(path)] = (row, event)
                if event.process != QUORUM and not znodes.is_marked(_topic_of(path)):
                    znodes.unasked.append((row, event))
        elif event.zk_op == "create":
            znodes.existing[path] = (row, event)
            if is_topic and event.topic_id is not None:
                znodes.ids[event.topic_id].append((row, event))
    return znodes


def _topic_of(path: str) -> str:
    """The topic that a znode is about, else nothing."""
    for parent in (TOPICS, MARKS, TOPIC_CONFIGS):
        if path.startswith(parent):
            return path.removeprefix(parent).split("/")[0]
    return ""


def _described(partitions: int) -> str:
    if partitions == ABSENT:
        return "is absent"
    return f"has {partitions} partition{'s' if partitions > 1 else ''}"


DELETION: Final = Property(
    name="deletion",
    promise="At the end there is every topic that must be there, and nothing of the deleted ones.",
    unit="topics",
    unknown="The harness could not look at ZooKeeper or at a broker at the end.",
    source="TopicDeletionManager; KIP-516 (topic ids).",
    check=Deletion,
    decided_from=frozenset({EventSource.METADATA_LOG, EventSource.CLIENTS, EventSource.END_STATE}),
    stand_ins=frozenset({EventSource.QUORUM_LOG}),
    completed_by=frozenset({EventSource.TRACES}),
    reason=ends.deletion,
    reason_covers_excuses=True,
    breaks=breaks.DELETION,
)
