"""One live controller per epoch, and no word of an old one is heeded.

* **single-controller**: every controller epoch is granted once (one committed change of ``/controller_epoch``),
  and every broker that acted in it (sent a control request carrying it, elected a leader in it, wrote a leader
  under it) is the broker it was granted to, in one process life.
  Smallest break: epoch 3 is granted to broker 1; broker 2 sends a LeaderAndIsr carrying 3.
* **controller-epoch-grows**: ``/controller_epoch`` grows by exactly 1 per election, never falls, is never reset.
  Smallest break: 1, then 3.
* **stale-controller-fenced**: (a) a broker process that accepted a control request of epoch ``e`` accepts none of a
  smaller epoch later; (b) a write of a partition's state is committed only by the session that owns the controller
  epoch current at that zxid; one that leaves leader and leader epoch as they are also by that leader.
  Smallest breaks: accept 2, then 1; session A wins epoch 1, B wins 2, A changes a leader, or an ISR of B's.

What a correct cluster does and is not convicted for: a broker forgets its controller epoch when it restarts (so (a)
is per incarnation); a deposed controller still *sends* requests with its old epoch (that is a zombie, it owned that
epoch); a partition leader writes its own ISR, as before IBP 2.7, with the controller epoch that it last heard of, and
may do so under any session of its broker (who owns a session of which no broker tells is ``unknown``); a candidate
attempts an epoch that it does not win; the log's unread tail may hold the election that a broker acts on.

Source: KafkaController and KafkaZkClient of Kafka 2.1 and later (KAFKA-6082 fenced the writes).
"""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Final, NamedTuple

from nemesis.checkers import znodes
from nemesis.checkers.breaks import controllers as breaks
from nemesis.checkers.explain import controllers
from nemesis.checkers.framework.event_list import EventListCheck, Row, succeeded
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource

_ACTS = frozenset(
    {
        Kind.CONTROLLER_ELECTED,
        Kind.CONTROLLER_FAILOVER,
        Kind.CONTROL_REQUEST_SENT,
        Kind.LEADER_ELECTED,
    }
)


class Actor(NamedTuple):
    """Who acted: a broker, in one process life; −1 when only ZooKeeper tells of it."""

    node: int
    incarnation: int


Actors = dict[Actor, tuple[int, int]]
"""Who acted → (row of the first act, number of acts)."""


class SingleController(EventListCheck):
    kinds = frozenset({*_ACTS, Kind.ZNODE, Kind.BROKER_REGISTERED})
    columns = (*znodes.COLUMNS, "incarnation")

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (SINGLE_CONTROLLER,)

    def judge(self, rows: list[Row]) -> Results:
        owners = znodes.session_owners(rows)
        granted: dict[int, Row] = {}
        findings: list[Finding] = []
        grants = 0
        for row, event in znodes.epoch_changes(rows):
            epoch = event.controller_epoch
            if epoch is None or not znodes.is_election(event):
                continue
            grants += 1
            if epoch in granted:
                first_row, first = granted[epoch]
                findings.append(
                    finding(
                        self.name,
                        _key(epoch),
                        f"Controller epoch {epoch} was won twice: to {_owner(first, owners)} and to "
                        f"{_owner(event, owners)}.",
                        first_row,
                        row,
                    )
                )
            granted.setdefault(epoch, (row, event))
        acts = _acts(rows, owners)
        for epoch, actors in sorted(acts.items()):
            findings += self._judge_epoch(epoch, actors, granted, owners)
        checked = grants + sum(count for actors in acts.values() for _, count in actors.values())
        return conclude(SINGLE_CONTROLLER, checked=checked, findings=findings)

    def _judge_epoch(
        self, epoch: int, actors: Actors, granted: dict[int, Row], owners: dict[int, int]
    ) -> list[Finding]:
        first, first_row = min(
            ((actor, row) for actor, (row, _) in actors.items()), key=lambda item: item[1]
        )
        if epoch not in granted:
            if not granted:
                return self._rivals(epoch, actors)
            sentence = (
                f"Broker {first.node} acted in controller epoch {epoch}, but ZooKeeper's log does not show who won "
                "it."
            )
            # The newest epochs may stand in a tail of the log that was still being written.
            lost = Verdict.INVALID if epoch < max(granted) else Verdict.UNKNOWN
            unproved = finding(self.name, _key(epoch), sentence, first_row, verdict=lost)
            return [unproved, *self._rivals(epoch, actors)]
        grant_row, grant = granted[epoch]
        owner = owners.get(grant.session) if grant.session is not None else None
        for actor, (row, _) in sorted(actors.items(), key=lambda item: item[1]):
            if owner is not None and actor.node != owner:
                sentence = f"Broker {actor.node} acted in controller epoch {epoch}, which was won by broker {owner}."
                return [finding(self.name, _key(epoch), sentence, grant_row, row)]
        return self._rivals(epoch, actors)

    def _rivals(self, epoch: int, actors: Actors) -> list[Finding]:
        """More than one broker, or more than one life of a broker, acted in the epoch."""
        by_row = sorted((row, actor) for actor, (row, _) in actors.items())
        for (row, actor), (other_row, other) in pairwise(by_row):
            if actor.node != other.node:
                sentence = f"Brokers {actor.node} and {other.node} both acted as controller in epoch {epoch}."
            elif -1 not in (actor.incarnation, other.incarnation):
                sentence = (
                    f"Two processes of broker {actor.node} acted as controller in epoch {epoch}."
                )
            else:
                continue
            return [finding(self.name, _key(epoch), sentence, row, other_row)]
        return []


def _key(epoch: int) -> str:
    return f"controller epoch {epoch}"


def _owner(event: Event, owners: dict[int, int]) -> str:
    broker = owners.get(event.session) if event.session is not None else None
    return f"broker {broker}" if broker is not None else f"session {event.session}"


def _acts(rows: list[Row], owners: dict[int, int]) -> dict[int, Actors]:
    """Return epoch → who acted in it."""
    acts: dict[int, Actors] = defaultdict(dict)

    def add(epoch: int | None, node: int | None, incarnation: int, row: int) -> None:
        if epoch is not None and node is not None:
            actor = Actor(node, incarnation)
            first, count = acts[epoch].get(actor, (row, 0))
            acts[epoch][actor] = (first, count + 1)

    for row, event in rows:
        if event.kind in _ACTS:
            incarnation = -1 if event.incarnation is None else event.incarnation
            add(event.controller_epoch, event.node, incarnation, row)
    for change in znodes.state_changes(rows):
        if change.changes_leadership and change.event.session is not None:
            node = owners.get(change.event.session)
            add(change.event.controller_epoch, node, -1, change.row)
    return acts


class ControllerEpochGrows(EventListCheck):
    kinds = frozenset({Kind.ZNODE})
    columns = znodes.COLUMNS

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (CONTROLLER_EPOCH_GROWS,)

    def judge(self, rows: list[Row]) -> Results:
        findings: list[Finding] = []
        elections = 0
        last: tuple[int, int] | None = None
        for row, event in znodes.epoch_changes(rows):
            epoch = event.controller_epoch
            if event.zk_op == "delete":
                sentence = "The controller epoch was deleted."
                before = None if last is None else last[0]
                findings.append(finding(self.name, znodes.CONTROLLER_EPOCH, sentence, before, row))
                continue
            if epoch is None:
                sentence = f"/controller_epoch was set to {event.data!r}, which is not a number."
                findings.append(finding(self.name, znodes.CONTROLLER_EPOCH, sentence, row))
                continue
            elections += znodes.is_election(event)
            if last is not None and epoch != last[1] + 1:
                sentence = (
                    f"The controller epoch went from {last[1]} to {epoch} instead of {last[1] + 1}."
                )
                findings.append(finding(self.name, znodes.CONTROLLER_EPOCH, sentence, last[0], row))
            last = (row, epoch)
        return conclude(CONTROLLER_EPOCH_GROWS, checked=elections, findings=findings)


class StaleControllerFenced(EventListCheck):
    kinds = frozenset(
        {
            Kind.CONTROL_REQUEST_HANDLED,
            Kind.ZNODE,
            Kind.BROKER_REGISTERED,
            Kind.SESSION_STATE,
            Kind.CONTROLLER_ELECTED,
        }
    )
    columns = (*znodes.COLUMNS, "incarnation", "error", "api", "peer")

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (STALE_CONTROLLER_FENCED,)

    def judge(self, rows: list[Row]) -> Results:
        accepted, requests = self._requests(rows)
        written, writes = self._writes(rows)
        return conclude(
            STALE_CONTROLLER_FENCED, checked=requests + writes, findings=accepted + written
        )

    def _requests(self, rows: list[Row]) -> tuple[list[Finding], int]:
        """Part (a): per broker process, accepted controller epochs never fall."""
        highest: dict[tuple[str, int | None], tuple[int, int]] = {}
        findings: list[Finding] = []
        accepted = 0
        for row, event in rows:
            epoch = event.controller_epoch
            if event.kind != Kind.CONTROL_REQUEST_HANDLED or epoch is None or not succeeded(event):
                continue
            accepted += 1
            incarnation = (event.process, event.incarnation)
            top, top_row = highest.get(incarnation, (epoch, row))
            if epoch < top:
                sentence = (
                    f"Broker {event.node} accepted {event.api or 'a control request'} of controller epoch {epoch} "
                    f"after it had accepted epoch {top}."
                )
                findings.append(finding(self.name, f"broker-{event.node}", sentence, top_row, row))
            if epoch > top or incarnation not in highest:
                highest[incarnation] = (epoch, row)
        return findings, accepted

    def _writes(self, rows: list[Row]) -> tuple[list[Finding], int]:
        """Part (b): who writes a state owns the controller epoch current at that zxid, or leads and writes its ISR."""
        owners = znodes.session_owners(rows)
        grants = [item for item in znodes.epoch_changes(rows) if znodes.is_election(item[1])]
        findings: list[Finding] = []
        writes, passed = 0, 0
        for change in znodes.state_changes(rows):
            writes += 1
            event = change.event
            writer = owners.get(event.session) if event.session is not None else None
            while passed < len(grants) and _zxid_and_seq(grants[passed][1]) < _zxid_and_seq(event):
                passed += 1
            if not change.changes_leadership and writer == event.leader:
                continue
            key = tp_name(event.topic, event.partition)
            if passed == 0:
                sentence = f"The state of {key} was written before a controller epoch was won, as far as the log shows."
                findings.append(
                    finding(self.name, key, sentence, change.row, verdict=Verdict.UNKNOWN)
                )
                continue
            grant_row, grant = grants[passed - 1]
            if event.session == grant.session:
                continue
            did = (
                f"changed the leader of {key} to {event.leader} (leader epoch {event.leader_epoch})"
            )
            verdict = Verdict.INVALID
            if not change.changes_leadership:
                did = f"changed the ISR of {key}, which broker {event.leader} leads,"
                verdict = Verdict.UNKNOWN if writer is None else Verdict.INVALID
            sentence = (
                f"{_owner(event, owners).capitalize()} {did} while {_owner(grant, owners)} owned the current "
                f"controller epoch {grant.controller_epoch}."
            )
            proofs = (grant_row, change.row)
            findings.append(finding(self.name, key, sentence, *proofs, verdict=verdict))
        return findings, writes


def _zxid_and_seq(event: Event) -> tuple[int, int]:
    return (event.zxid or 0, event.seq)


SINGLE_CONTROLLER: Final = Property(
    name="single-controller",
    promise="Every controller epoch has one owner, and only the owner acts in it.",
    unknown=(
        "A broker acted in an epoch above all that ZooKeeper's log grants: the log's last part may be missing."
    ),
    source="KafkaController and KafkaZkClient of Kafka 2.1 and later; KAFKA-6082.",
    check=SingleController,
    decided_from=frozenset({EventSource.METADATA_LOG}),
    completed_by=frozenset({EventSource.TRACES}),
    reason=controllers.single_controller,
    breaks=breaks.SINGLE_CONTROLLER,
)

CONTROLLER_EPOCH_GROWS: Final = Property(
    name="controller-epoch-grows",
    promise="The controller epoch grows by exactly one at each election.",
    unit="elections",
    unknown="ZooKeeper's log shows no election.",
    source="KafkaController and KafkaZkClient of Kafka 2.1 and later; KAFKA-6082.",
    check=ControllerEpochGrows,
    decided_from=frozenset({EventSource.METADATA_LOG}),
    reason=controllers.controller_epoch_grows,
    breaks=breaks.CONTROLLER_EPOCH_GROWS,
)

STALE_CONTROLLER_FENCED: Final = Property(
    name="stale-controller-fenced",
    promise="Nobody obeys a deposed controller, and ZooKeeper takes no change from it.",
    unknown=(
        "A partition's state was written before any known election, or by a session that no broker is known to "
        "own."
    ),
    source="KafkaController and KafkaZkClient of Kafka 2.1 and later; KAFKA-6082.",
    check=StaleControllerFenced,
    decided_from=frozenset({EventSource.METADATA_LOG}),
    completed_by=frozenset({EventSource.TRACES}),
    reason=controllers.stale_controller_fenced,
    breaks=breaks.STALE_CONTROLLER_FENCED,
)
