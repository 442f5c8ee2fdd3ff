"""May leaders be elected from outside the in-sync replicas? The configuration says so, not the election.

An unclean election loses records, and a topic may allow that. So what it causes is excused, but only where it was
permitted: a controller that elects uncleanly without permission is broken, and everything that follows is its doing.

Permission is given by

* the topic's own ``unclean.leader.election.enable``: ``/config/topics/T`` in ZooKeeper's log, from the write of it to
  the next one, or to the deletion of the znode. It comes before what brokers say, also when it forbids;
* the brokers' configuration, which they record in ``broker-started`` and ``broker-reconfigured``:
  one that has told of a permission before the election is enough, for any broker may be the controller. A history in
  which none tells (an older one, another system's) convicts nobody, but for a topic that forbids it;
* what the harness configured all brokers with (``broker-property``), and what ``/config/brokers`` in ZooKeeper's log
  has changed since (KIP-226): for brokers that do not trace. A permission that was written there counts for good;
* an operator (ElectLeaders, UNCLEAN): ``election-asked`` of the controller, while it deals with that request.

Where no controller has traced an election, it is unclean if the new leader was not in the ISR of the state that it
replaces, as ZooKeeper's log has it: the controller does not trace, or ended before ZooKeeper answered. With KRaft the
eligible leader replicas of that state (KIP-966) count as its ISR does, which may be empty. A last known leader is
elected uncleanly. The client requests of a run ask for elections of preferred leaders alone.

A controller reads the topic's settings some time before its election is committed. How long at most, ``since`` says:
a zxid that it had certainly seen before it read (``leadership`` finds one). Without it all that stood before counts.

Limits: that a broker's configuration permits no longer is not held against elections (the topic's own is).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final, NamedTuple

from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.segment import Segment
from nemesis.checkers.znodes import BROKER_CONFIGS, TOPIC_CONFIGS, object_in
from nemesis.history.events import Event, Kind
from nemesis.history.vocabulary.harness import UNCLEAN_ELECTIONS

UNCLEAN: Final = "unclean"
"""The strategy of a ``leader-elected`` event, and the step of the ``election-asked`` that begins a request."""
SETTING: Final = UNCLEAN_ELECTIONS
ENDS_REASSIGNMENT: Final = "ends_reassignment"
"""With KRaft, true of a state that also takes a broker into the ISR, completes its reassignment and lets it lead."""
ELIGIBLE: Final = "elr"
"""With KRaft, the brokers that may lead next though they are not in the ISR (KIP-966)."""
RECOVERY: Final = "leader_recovery_state"
MUST_RECOVER: Final = 1
"""The state of a leader that was elected uncleanly (KIP-704)."""
STATE: Final = "/state"
"""The end of the path of a partition's state."""
NO_LEADER: Final = -1
NO_EPOCH: Final = -1
FOR_EVER: Final = 2**63 - 1

_CONFIGURATION_KINDS: Final = frozenset({Kind.BROKER_STARTED, Kind.BROKER_RECONFIGURED})
TRACED: Final = frozenset({*_CONFIGURATION_KINDS, Kind.ELECTION_ASKED, Kind.LEADER_ELECTED})
"""The kinds that brokers trace of elections and their permission; a run without traces has none of them."""
KINDS: Final = frozenset(
    {*_CONFIGURATION_KINDS, Kind.BROKER_PROPERTY, Kind.ELECTION_ASKED, Kind.ZNODE}
)
COLUMNS: Final = (
    *("zxid", "zk_op", "path", "data", "strategy", "step", "topic", "partition"),
    *("unclean_leader_election_enable", "setting", "count"),
)


class Permission(IntEnum):
    """Of two that count, the greater one does."""

    UNTOLD = 0
    FORBIDDEN = 1
    PERMITTED = 2

    @property
    def excuses(self) -> bool:
        """Whether the losses of an unclean election are excused; also when nothing is known."""
        return self is not Permission.FORBIDDEN


class Election(NamedTuple):
    """An unclean election: when it was committed, for ZooKeeper and for its controller; an end of time is unknown."""

    zxid: int = FOR_EVER
    time: int = FOR_EVER
    process: str = ""
    """The controller; nothing if only ZooKeeper's log shows the election."""
    since: int = 0
    """A zxid that the controller had seen before it read the settings."""
    leader_epoch: int = NO_EPOCH
    """The epoch that began with it."""


class State(NamedTuple):
    """A state of a partition in ZooKeeper's log; without leader and members if it was deleted or cannot be read."""

    zxid: int
    seq: int
    path: str
    leader: int
    leader_epoch: int
    members: tuple[int, ...] | None
    """The brokers that may lead next: the ISR, with KRaft also the eligible leader replicas."""
    ends_reassignment: bool
    """Whether it completes or cancels a reassignment by a clean election, if by any."""


class BrokerPermission(NamedTuple):
    """A broker tells of its configuration."""

    time: int
    permission: Permission


class Setting(NamedTuple):
    """A topic's own setting from this zxid on; None: it has none."""

    zxid: int
    seq: int
    enabled: bool | None


class Asked(NamedTuple):
    """A request for unclean elections begins or ends at its controller."""

    time: int
    process: str
    begins: bool


@dataclass(slots=True)
class Permissions:
    """What a segment of a history says of unclean elections."""

    broker_permissions: list[BrokerPermission] = field(default_factory=list)
    configured: Permission = Permission.UNTOLD
    """Of all brokers, by the harness."""
    permitted_from: int = FOR_EVER
    """The zxid of the first write to ``/config/brokers`` that permits."""
    topics: dict[str, list[Setting]] = field(default_factory=dict)
    asked: dict[tuple[str, int], list[Asked]] = field(default_factory=dict)

    def add(self, event: Event) -> None:
        """Take in an event; one of no such kind says nothing."""
        if event.kind in _CONFIGURATION_KINDS:
            self.broker_permissions.append(BrokerPermission(event.time, permission_of(event)))
        elif event.kind == Kind.BROKER_PROPERTY and event.setting == SETTING:
            self.configured = Permission.PERMITTED if event.count else Permission.FORBIDDEN
        elif event.kind == Kind.ELECTION_ASKED:
            if event.topic is not None and event.partition is not None:
                asked = Asked(event.time, event.process, event.step == UNCLEAN)
                self.asked.setdefault((event.topic, event.partition), []).append(asked)
        elif event.path is not None and event.path.startswith(TOPIC_CONFIGS):
            enabled = None if event.zk_op == "delete" else _enabled(event.data)
            setting = Setting(event.zxid or 0, event.seq, enabled)
            self.topics.setdefault(event.path.removeprefix(TOPIC_CONFIGS), []).append(setting)
        elif _permits_brokers(event):
            self.permitted_from = min(self.permitted_from, event.zxid or 0)

    def join(self, other: Permissions) -> Permissions:
        """What both say."""
        joined = Permissions(
            [*self.broker_permissions, *other.broker_permissions],
            max(self.configured, other.configured),
            min(self.permitted_from, other.permitted_from),
        )
        for permissions in (self, other):
            for topic, settings in permissions.topics.items():
                joined.topics[topic] = [*joined.topics.get(topic, []), *settings]
            for partition, asked in permissions.asked.items():
                joined.asked[partition] = [*joined.asked.get(partition, []), *asked]
        return joined

    def excuse(
        self, topic: str | None, partition: int | None, elections: Iterable[Election]
    ) -> bool:
        """Whether the losses of one of these unclean elections are excused."""
        return any(
            self.of(topic, partition, election, since=election.since).excuses
            for election in elections
        )

    def of(
        self, topic: str | None, partition: int | None, election: Election, since: int = 0
    ) -> Permission:
        """What held for an election whose controller read the settings after ``since`` (a zxid)."""
        if topic is None or partition is None:
            return self._by_brokers(election)
        if self._was_asked(topic, partition, election):
            return Permission.PERMITTED
        settings = self._settings(topic, since, election.zxid)
        if True in settings:
            return Permission.PERMITTED
        return self._by_brokers(election) if None in settings else Permission.FORBIDDEN

    def _by_brokers(self, election: Election) -> Permission:
        permissions = (
            stated.permission for stated in self.broker_permissions if stated.time <= election.time
        )
        written = self.permitted_from <= election.zxid and self.permitted_from < FOR_EVER
        return max(
            self.configured, Permission.PERMITTED if written else Permission.UNTOLD, *permissions
        )

    def _settings(self, topic: str, since: int, until: int) -> set[bool | None]:
        """What the topic's own setting was, at one time or another of a segment."""
        settings: list[bool | None] = [None]
        for setting in sorted(self.topics.get(topic, []), key=lambda setting: setting[:2]):
            if setting.zxid > until:
                break
            if setting.zxid <= since:
                settings = []
            settings.append(setting.enabled)
        return set(settings)

    def _was_asked(self, topic: str, partition: int, election: Election) -> bool:
        asked = self.asked.get((topic, partition), [])
        if election.time == FOR_EVER:
            return any(request.begins for request in asked)
        before = [
            request
            for request in asked
            if request.time <= election.time and request.process == election.process
        ]
        return bool(before) and max(before).begins


def permissions(segment: Segment) -> Permissions:
    """Return what a segment says; needs ``KINDS`` and ``COLUMNS``."""
    said = segment.is_kind(*KINDS)
    return permissions_in(segment.where(said).events(*COLUMNS)) if said.any() else Permissions()


def permissions_in(rows: Iterable[Row]) -> Permissions:
    """Return what these events say."""
    permissions = Permissions()
    for _, event in rows:
        permissions.add(event)
    return permissions


@dataclass(slots=True)
class Elections:
    """What some rows show of the elections of one partition."""

    traced: list[Election] = field(default_factory=list)
    """The unclean ones that controllers traced."""
    traced_zxids: set[int] = field(default_factory=set)
    """The zxids of all states that controllers traced, however they were elected."""
    states: list[State] = field(default_factory=list)

    def join(self, other: Elections) -> Elections:
        """Return what both show."""
        return Elections(
            [*self.traced, *other.traced],
            self.traced_zxids | other.traced_zxids,
            [*self.states, *other.states],
        )

    def unclean(self) -> list[Election]:
        """Return the unclean elections: the traced ones, and those that no controller traced.

        A controller that ends, or loses its session, between the commit and the answer traces nothing. What a
        controller has traced as another election is not an unclean one.
        """
        shown = (election for election in self._shown() if election.zxid not in self.traced_zxids)
        return [*self.traced, *shown]

    def _shown(self) -> Iterator[Election]:
        """Yield the elections of leaders that the state before does not permit; a deleted partition begins again."""
        previous: dict[str, State] = {}
        for state in sorted(self.states, key=lambda state: state[:2]):
            before = previous.get(state.path)
            previous[state.path] = state
            if before is None or before.members is None or state.ends_reassignment:
                continue
            if state.leader not in (NO_LEADER, *before.members):
                yield Election(state.zxid, since=before.zxid, leader_epoch=state.leader_epoch)


def elections_in(segment: Segment) -> Elections:
    """Return what a segment of one partition shows; needs ``COLUMNS`` and ``leader_epoch``."""
    elections = Elections()
    traced = segment.where(segment.is_kind(Kind.LEADER_ELECTED))
    for _, event in traced.events("zxid", "strategy", "leader_epoch"):
        elections.traced_zxids.add(FOR_EVER if event.zxid is None else event.zxid)
        if event.strategy == UNCLEAN:
            elections.traced.append(election_of(event))
    znodes = segment.where(segment.is_kind(Kind.ZNODE))
    for _, event in znodes.events("zxid", "zk_op", "path", "data"):
        if (event.path or "").endswith(STATE) and event.zk_op != "check":
            elections.states.append(_state_of(event))
    return elections


def _state_of(event: Event) -> State:
    data = object_in(event.data)
    leader, leader_epoch = data.get("leader"), data.get("leader_epoch")
    return State(
        event.zxid or 0,
        event.seq,
        event.path or "",
        leader if type(leader) is int else NO_LEADER,
        leader_epoch if type(leader_epoch) is int else NO_EPOCH,
        _members(data),
        bool(data.get(ENDS_REASSIGNMENT)) and data.get(RECOVERY) != MUST_RECOVER,
    )


def _members(data: Mapping[str, Any]) -> tuple[int, ...] | None:
    isr, eligible = data.get("isr"), data.get(ELIGIBLE)
    if not isinstance(isr, list):
        return None
    if isinstance(eligible, list):
        return (*isr, *eligible)
    return tuple(isr) or None


def election_of(event: Event) -> Election:
    """The election that a ``leader-elected`` tells of."""
    return Election(
        FOR_EVER if event.zxid is None else event.zxid,
        event.time,
        event.process,
        leader_epoch=NO_EPOCH if event.leader_epoch is None else event.leader_epoch,
    )


def permission_of(event: Event) -> Permission:
    """Return what a broker's settings permit; ``UNTOLD`` if the event does not have them."""
    if event.unclean_leader_election_enable is None:
        return Permission.UNTOLD
    return Permission.PERMITTED if event.unclean_leader_election_enable else Permission.FORBIDDEN


def _permits_brokers(event: Event) -> bool:
    """Whether settings of a broker, or of all, are written that permit unclean elections."""
    path = event.path or ""
    return (
        path.startswith(BROKER_CONFIGS) and event.zk_op != "delete" and bool(_enabled(event.data))
    )


def _enabled(data: str | None) -> bool | None:
    """What a topic's settings say, as Kafka reads them."""
    config = object_in(data).get("config")
    text = config.get(SETTING) if isinstance(config, dict) else None
    return text.strip().lower() == "true" if isinstance(text, str) else None
