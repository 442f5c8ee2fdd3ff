"""A leader states of each member of an ISR with which broker epoch it fetches.

* **isr-epochs-stated**: (a) with a proposed ISR a leader states of each other member a broker epoch that the member's
  fetches carried in this leader epoch, and none older than the newest of them when it proposed; it states −1 only of a
  member that it does not take in and that had not fetched yet; (b) of itself it states a broker epoch with which its
  own process has registered, and none older than the newest when it proposed; (c) a follower's fetch carries a broker
  epoch of a process that follows in this leader epoch, and none older than that process had when it began to follow.
  Smallest breaks: broker 2 fetches with broker epoch 9, and leader 1 proposes it with (a) −1; leader 1 registers with
  8, and proposes itself with (b) 7; broker 2 registers with 9 and follows, and its fetch carries (c) 7.

Why this is the promise: the controller refuses a member whose stated epoch is not that of its registration
(INELIGIBLE_REPLICA), because it may have lost the records that its leader saw (KIP-903). It cannot compare −1, and
admits the member. So a leader that does not know the epochs of its members switches the protection off, and nothing
else changes until a machine loses its disk. What the controller then does is the matter of ``broker-epoch-fenced``.

The idea: leaders trace the epoch that a fetch carries when it is another one than they knew. A leader proposes only
after it has traced what it takes in, so its trace up to the proposal bounds what it may state. A controller traces the
ISR and the epochs that it received.

What a correct cluster does and is not convicted for: a proposal is on its way for long, or is sent again, and states
what was known when it was made, or what fetches have stated since; a follower registers again while its fetch is on its
way, which carries the former registration; a leader does so while its proposal waits; a member of the ISR has not
fetched since the leader's term began, and is stated with −1; two equal proposals follow each other, and the controller
handles the earlier one: any of them may justify it.

Limits: ISRs that leaders write to ZooKeeper themselves (``inter.broker.protocol.version`` 2.6) carry no epochs. Each
broker that traces sends AlterPartition and Fetch in versions with the field.
Source: KIP-903 (KAFKA-14617); Partition.submitAlterPartition, Replica.updateFetchStateOrThrow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from nemesis.checkers.breaks import isr_epochs as breaks
from nemesis.checkers.explain import isr_epochs as explain
from nemesis.checkers.framework.event_list import EventListCheck, Row
from nemesis.checkers.framework.findings import finding, tp_name
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.checkers.replication.replica_rows import TopicKey
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource

UNKNOWN_BROKER_EPOCH: Final = -1

Process = tuple[str, int | None]
"""A broker's process: its name and its incarnation."""
Term = tuple[TopicKey, Process, int | None]
"""Partition, process of the leader, leader epoch."""
Following = tuple[TopicKey, int | None, int | None]
"""Partition, leader epoch, follower."""
Identity = tuple[TopicKey, int | None, int | None, int | None]
"""Partition, leader, leader epoch, partition epoch."""


class Known(NamedTuple):
    """A broker epoch, and the row of the event that states it."""

    epoch: int
    row: int


class Follows(NamedTuple):
    """A process that began to follow, with the newest of its registrations then."""

    process: Process
    registered: Known | None
    row: int


@dataclass(slots=True)
class Proposal:
    """An ISR that a leader proposes, and what it knew then."""

    row: int
    term: Term
    isr: frozenset[int]
    """The committed ISR."""
    joining: frozenset[int]
    fetched: dict[int, Known]
    """By follower, the epoch of its newest fetch."""
    registered: Known | None
    """The leader's own."""

    def is_of(self, members: frozenset[int]) -> bool:
        """Whether it may propose these members. A proposal that takes members out does not record which."""
        return members == self.isr | self.joining if self.joining else members < self.isr


class Wrong(NamedTuple):
    """Why a stated epoch cannot be right, and the event that shows it."""

    words: str
    known: Known | None


@dataclass(slots=True)
class Observed:
    """What the brokers have traced up to some event."""

    registered: dict[Process, list[Known]] = field(default_factory=lambda: defaultdict(list))
    followers: dict[Following, list[Follows]] = field(default_factory=lambda: defaultdict(list))
    fetched: dict[Term, dict[int, Known]] = field(default_factory=lambda: defaultdict(dict))
    """By follower, the epoch of its newest fetch since the leader began the term."""
    carried: dict[tuple[Term, int], set[int]] = field(default_factory=lambda: defaultdict(set))
    """The epochs of all fetches of a follower in a term."""
    proposals: dict[Identity, list[Proposal]] = field(default_factory=lambda: defaultdict(list))

    def take_in(self, row: int, event: Event) -> None:
        process = (event.process, event.incarnation)
        own = self.registered[process]
        if event.kind == Kind.BROKER_REGISTERED:
            if event.broker_epoch is not None:
                own.append(Known(event.broker_epoch, row))
            return
        key = _key(event)
        term = (key, process, event.leader_epoch)
        newest = own[-1] if own else None
        if event.kind == Kind.BECOME_LEADER:
            self.fetched[term] = {}
        elif event.kind == Kind.BECOME_FOLLOWER:
            follows = Follows(process, newest, row)
            self.followers[key, event.leader_epoch, event.node].append(follows)
        elif event.kind == Kind.FOLLOWER_EPOCH:
            if event.replica is not None and event.broker_epoch is not None:
                self.fetched[term][event.replica] = Known(event.broker_epoch, row)
                self.carried[term, event.replica].add(event.broker_epoch)
        elif event.kind == Kind.ISR_CHANGE_PROPOSED:
            isr = frozenset(event.isr or ())
            joining = frozenset(event.maximal_isr or ()) - isr
            proposal = Proposal(row, term, isr, joining, dict(self.fetched[term]), newest)
            self.proposals[_identity(event, event.node)].append(proposal)

    def proposals_of(self, received: Event) -> list[Proposal]:
        """Return the proposals so far that may be the one that a controller received."""
        members = frozenset(received.isr or ())
        possible = self.proposals.get(_identity(received, received.peer), ())
        return [proposal for proposal in possible if proposal.is_of(members)]


class IsrEpochs(EventListCheck):
    kinds = frozenset(
        {
            Kind.BROKER_REGISTERED,
            Kind.BECOME_LEADER,
            Kind.BECOME_FOLLOWER,
            Kind.FOLLOWER_EPOCH,
            Kind.ISR_CHANGE_PROPOSED,
            Kind.ALTER_PARTITION_HANDLED,
        }
    )
    columns = (
        "topic",
        "topic_id",
        "partition",
        "node",
        "incarnation",
        "peer",
        "replica",
        "leader_epoch",
        "partition_epoch",
        "broker_epoch",
        "isr",
        "isr_epochs",
        "maximal_isr",
    )

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (ISR_EPOCHS_STATED,)

    def judge(self, rows: list[Row]) -> Results:
        observed = Observed()
        handled: list[tuple[Row, list[Proposal]]] = []
        fetches: list[Row] = []
        for row, event in sorted(rows, key=lambda item: (item[1].time, item[1].seq)):
            if event.kind == Kind.ALTER_PARTITION_HANDLED:
                handled.append(((row, event), observed.proposals_of(event)))
                continue
            observed.take_in(row, event)
            if event.kind == Kind.FOLLOWER_EPOCH:
                fetches.append((row, event))
        findings: list[Finding] = []
        stated_epochs = 0
        for received, proposals in handled:
            if not proposals:
                continue
            stated = dict(zip(received[1].isr or (), received[1].isr_epochs or (), strict=False))
            stated_epochs += len(stated)
            for member, epoch in stated.items():
                findings += _judge_stated(observed, received, proposals, member, epoch)
        for fetch in fetches:
            findings += _judge_fetch(observed, fetch)
        followers = sum(event.kind == Kind.BECOME_FOLLOWER for _, event in rows)
        return conclude(
            ISR_EPOCHS_STATED,
            checked=followers + stated_epochs,
            findings=findings,
            numbers={"stated": float(stated_epochs), "fetched": float(len(fetches))},
        )


def _key(event: Event) -> TopicKey:
    return (event.topic or "", event.topic_id, event.partition or 0)


def _identity(event: Event, leader: int | None) -> Identity:
    """What a proposal and the controller's answer to it have in common."""
    return (_key(event), leader, event.leader_epoch, event.partition_epoch)


def _judge_stated(
    observed: Observed, received: Row, proposals: list[Proposal], member: int, epoch: int
) -> Iterator[Finding]:
    """Parts (a) and (b), of one member of an ISR that a controller received."""
    row, event = received
    wrongs = [
        _own_wrong(observed, proposal, epoch)
        if member == event.peer
        else _member_wrong(observed, proposal, member, epoch)
        for proposal in proposals
    ]
    wrong = wrongs[-1]
    if wrong is None or None in wrongs:
        return
    tp = tp_name(event.topic, event.partition)
    sentence = (
        f"Leader {event.peer} of {tp} proposed ISR {list(event.isr or ())} with broker epoch {epoch} for "
        f"{wrong.words}."
    )
    evidence = (wrong.known.row if wrong.known else None, proposals[-1].row, row)
    yield finding(ISR_EPOCHS_STATED.name, tp, sentence, *evidence)


def _own_wrong(observed: Observed, proposal: Proposal, epoch: int) -> Wrong | None:
    _, process, _ = proposal.term
    newest = proposal.registered
    if newest is None:
        return None
    epochs = {known.epoch for known in observed.registered[process]}
    if epoch in epochs and epoch >= newest.epoch:
        return None
    return Wrong(f"itself, though it was registered with {newest.epoch}", newest)


def _member_wrong(observed: Observed, proposal: Proposal, member: int, epoch: int) -> Wrong | None:
    newest = proposal.fetched.get(member)
    _, _, leader_epoch = proposal.term
    if newest is not None and (
        epoch < newest.epoch or epoch not in observed.carried[proposal.term, member]
    ):
        words = f"broker {member}, whose newest fetch in leader epoch {leader_epoch} carried {newest.epoch}"
        return Wrong(words, newest)
    if newest is None and (
        member in proposal.joining
        if epoch == UNKNOWN_BROKER_EPOCH
        else epoch not in observed.carried[proposal.term, member]
    ):
        words = (
            f"broker {member}, none of whose fetches in leader epoch {leader_epoch} had carried any"
        )
        return Wrong(words, None)
    return None


def _judge_fetch(observed: Observed, fetch: Row) -> Iterator[Finding]:
    """Part (c)."""
    row, event = fetch
    followers = observed.followers.get((_key(event), event.leader_epoch, event.replica), ())
    epoch = UNKNOWN_BROKER_EPOCH if event.broker_epoch is None else event.broker_epoch
    if not followers or any(_may_carry(observed, follows, epoch) for follows in followers):
        return
    last = followers[-1]
    registered = "" if last.registered is None else f" with {last.registered.epoch}"
    tp = tp_name(event.topic, event.partition)
    sentence = (
        f"A fetch of broker {event.replica} for {tp} in leader epoch {event.leader_epoch} carried broker epoch "
        f"{epoch}, though the broker had registered{registered} when it began to follow."
    )
    own_row = None if last.registered is None else last.registered.row
    yield finding(ISR_EPOCHS_STATED.name, tp, sentence, own_row, last.row, row)


def _may_carry(observed: Observed, follows: Follows, epoch: int) -> bool:
    if follows.registered is None:
        return True
    epochs = {known.epoch for known in observed.registered[follows.process]}
    return epoch in epochs and epoch >= follows.registered.epoch


ISR_EPOCHS_STATED: Final = Property(
    name="isr-epochs-stated",
    promise="A leader states of each member of an ISR with which broker epoch it fetches.",
    unit="terms of followers, and members of proposed ISRs",
    unknown="No broker traced that it became a follower, and no controller received an ISR with broker epochs.",
    source="KIP-903 (KAFKA-14617); Partition.submitAlterPartition, Replica.updateFetchStateOrThrow.",
    check=IsrEpochs,
    decided_from=frozenset({EventSource.TRACES}),
    recorded_since=13,
    reason=explain.isr_epochs_stated,
    breaks=breaks.ISR_EPOCHS_STATED,
)
