"""Members stay in their groups while their sessions go on.

**membership-kept**: a member that is in its group for certain, and has shown a sign of life in time, is not answered
UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID, by the same coordinator or by a later one (KIP-62). A process that has taken
over a static member is the member from then on (KIP-345). In detail, a refusal is a violation if all of this holds:

* a commit of the member in its assigned generation was acknowledged before (the *proof*): the log of the coordinator
  has the member, because the generation, or the process that took over, is written before it is answered;
* the broker that refuses has the proof in its log (``acknowledged``): it has acknowledged the proof itself, or another
  commit of the group that was sent after the proof was acknowledged. Such a commit may also follow the refusal, if the
  broker has not loaded its groups in between: it coordinated the group in one leader epoch then;
* no time-out can have passed. The broker of the proof accepted a heartbeat or a request for the assignment (the *sign
  of life*); it has not loaded its groups between the proof and a later heartbeat. The refusal comes within a session
  time-out, and a rebalance time-out, of proof and sign; or of the time at which another broker began to load its
  groups, if that was still in time;
* nothing else can have ended the membership: no request to leave names the member or its instance id, and no other
  process has joined with its instance id, in doubt or refused, before or at the same time. A request that a coordinator
  has answered before the member asked to join, also with NOT_COORDINATOR, cannot: what it wrote stands in front of it
  in the log, or is cut off. One without an answer may arrive at any time.

Smallest breaks: a broker acknowledges a commit of a member, and then refuses it as unknown; the same after another
broker has taken over the group and acknowledged a commit; a static member takes over, commits, and is fenced by the
next coordinator.

What a correct cluster does and is not convicted for: a coordinator that was paused ends all sessions whose heartbeats
it did not read; a member that missed a rebalance is out of the group; a former coordinator, which does not know of its
successor, refuses members that joined there; a coordinator that loads what was not committed knows members that the
next one does not; a static member that another process takes over is fenced, also by a request whose client has given
up long ago; a takeover that could not be stored is undone in memory, and comes back with the log; a group that is full
(``group.max.size``) sends members away. A coordinator that unloads its groups may not find the group of a heartbeat, a
JoinGroup or a SyncGroup: such a refusal is ``unknown`` if the broker may have ceased to coordinate. Losses that
``check`` permits are reported and allowed.

Limits: administrators of other programs may remove members, which no history shows. A member that commits nothing is
not judged.
Source: KIP-62, KIP-345, KAFKA-7862, KAFKA-10284; GroupCoordinator.updateStaticMemberAndRebalance, onExpireHeartbeat.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from nemesis.checkers import losses
from nemesis.checkers.administered import CLIENT_KINDS, Administered
from nemesis.checkers.breaks import membership as breaks
from nemesis.checkers.explain import groups as explain
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.framework.property import Property
from nemesis.checkers.groups.group_operations import (
    COLUMNS,
    COMMIT,
    FUNCTIONS,
    HEARTBEAT,
    JOIN,
    LEAVE,
    SYNC,
    WORKLOADS,
    Group,
    Operation,
    groups,
)
from nemesis.checkers.groups.loads import CEASES, Loads
from nemesis.checkers.losses import OFFSETS_TOPIC
from nemesis.history.events import Event, Kind
from nemesis.history.sources import EventSource
from nemesis.history.vocabulary.harness import MEMBER_REBALANCE, MEMBER_SESSION

_UNKNOWN: Final = "UNKNOWN_MEMBER_ID"
_REFUSALS: Final = frozenset({_UNKNOWN, "FENCED_INSTANCE_ID"})
_MOVED: Final = frozenset({"NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"})
"""What a coordinator also answers when it has written, and does not know whether that lasts."""
_FULL: Final = "GROUP_MAX_SIZE_REACHED"
_REQUESTS: Final = frozenset({COMMIT, HEARTBEAT, JOIN, SYNC})
_MS: Final = 1_000_000
_TIMER_MS: Final = 20
"""By how much a timer may be early: timers of Kafka count in ticks."""


class Membership(Administered):
    operations = FUNCTIONS
    kinds = frozenset(
        {
            *(*CLIENT_KINDS, *losses.KINDS, *CEASES),
            *(Kind.BECOME_LEADER, Kind.TIMEOUT_SETTING, Kind.ZNODE),
        }
    )
    columns = (*COLUMNS, *losses.COLUMNS, "error", "duration_ms", "zxid", "zk_op", "path", "leader")

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (MEMBERSHIP_KEPT,)

    def judge(self, rows: list[Row]) -> Results:
        allowed_ns = _shortest_time_out(rows)
        if allowed_ns is None:
            return conclude(MEMBERSHIP_KEPT, checked=0)
        loads = Loads(rows)
        findings: list[Finding] = []
        checked = 0
        for key, group in sorted(groups(rows).items()):
            checked += sum(map(_is_answered, group.operations))
            findings += _forgotten(key, Memberships(group, loads, allowed_ns))
        findings = losses.Losses(rows).allow_all(findings, OFFSETS_TOPIC)
        return conclude(MEMBERSHIP_KEPT, checked=checked, findings=findings)


def _shortest_time_out(rows: list[Row]) -> int | None:
    """Return how long (ns) a membership lasts at least without a sign of life; None if that is not recorded."""
    ms = {
        event.setting: event.duration_ms
        for _, event in rows
        if event.kind == Kind.TIMEOUT_SETTING
        and event.setting in (MEMBER_SESSION, MEMBER_REBALANCE)
    }
    known = [duration for duration in ms.values() if duration is not None]
    return (min(known) - _TIMER_MS) * _MS if len(known) == 2 else None


def _is_answered(operation: Operation) -> bool:
    """Whether a coordinator has answered a request of a member."""
    is_answered = operation.is_ok or operation.is_refused
    return (
        is_answered and operation.event.f in _REQUESTS and operation.invoked[1].member is not None
    )


@dataclass(frozen=True, slots=True)
class Kept:
    """Why a member is in its group for certain, and until when (ns)."""

    proof: Operation
    sign: Operation
    known_by: Operation
    """The commit that shows that the broker has the proof."""
    until: int
    may_unload: bool
    """Whether the broker may have ceased to coordinate the group while it had the refused request."""


class Memberships:
    """What is certain of the members of one group."""

    def __init__(self, group: Group, loads: Loads, allowed_ns: int) -> None:
        self.group = group
        self._loads = loads
        self._allowed_ns = allowed_ns
        self._commits = group.ok(COMMIT)
        self._accepted: dict[str | None, list[Operation]] = defaultdict(list)
        """By member id its accepted requests."""
        self._joined: dict[str | None, Operation] = {}
        """By member id the first JoinGroup that it had answered."""
        self._of_instance: dict[str, list[Operation]] = defaultdict(list)
        """By instance id the requests that name it."""
        for operation in group.operations:
            event = operation.event
            if event.instance is not None:
                self._of_instance[event.instance].append(operation)
            if operation.is_ok:
                self._accepted[event.member].append(operation)
                if event.f == JOIN:
                    self._joined.setdefault(event.member, operation)

    def kept(self, refused: Operation) -> Kept | None:
        """Return why the member of a refused request is in its group; None if it may have been out of it."""
        accepted = [
            item for item in self._accepted[refused.event.member] if item.ended < refused.began
        ]
        proofs = (item for item in accepted if item.event.f == COMMIT and item.is_settled)
        proof = max(proofs, key=lambda item: item.began, default=None)
        if proof is None:
            return None
        signs = (item for item in accepted if self._is_sign(item, proof))
        sign = max(signs, key=lambda item: item.began, default=None)
        if sign is None:
            return None
        until = self._until(min(proof.began, sign.began), proof, refused)
        known_by = self._known_by(proof, refused)
        if known_by is None or refused.ended >= until or self._may_have_ended(refused):
            return None
        return Kept(proof, sign, known_by, until, self._may_unload(known_by, refused))

    def _is_sign(self, item: Operation, proof: Operation) -> bool:
        """Whether the broker of the proof had the member in its group when it accepted this, for certain.

        A coordinator that loads accepts every heartbeat without a look at the group.
        """
        if item.event.node != proof.event.node:
            return False
        if item.event.f != HEARTBEAT:
            return item.event.f == SYNC
        is_before = item.ended < proof.began
        return item.is_settled and (is_before or self._loads.none_between(proof, item))

    def _until(self, since: int, proof: Operation, refused: Operation) -> int:
        """Return until when no time-out can have ended a membership of which this was the last sign.

        A broker that takes over begins all sessions again. Its load came behind the proof, which the former leader
        could not have acknowledged otherwise, and before any time-out if all of its loads did.
        """
        until = since + self._allowed_ns
        if refused.event.node == proof.event.node:
            return until
        loads = self._loads.between(refused.event.node, proof.began, refused.ended)
        return max(until, loads[0] + self._allowed_ns) if loads and loads[-1] <= until else until

    def _known_by(self, proof: Operation, refused: Operation) -> Operation | None:
        """Return an acknowledged commit that shows that the broker had the proof in its log when it refused."""
        node = refused.event.node
        if proof.event.node == node:
            return proof
        for commit in self._commits:
            if commit.event.node != node or commit.began <= proof.ended:
                continue
            if commit.ended < refused.began or self._loads.none_between(refused, commit):
                return commit
        return None

    def _may_unload(self, known_by: Operation, refused: Operation) -> bool:
        """Whether the broker may have unloaded the group between its two looks for a request."""
        event = refused.event
        is_raced = event.error == _UNKNOWN and event.f != COMMIT
        is_before = known_by.ended < refused.began
        # A commit behind the refusal counts only if the broker coordinated the group all the time.
        return (
            is_raced
            and is_before
            and self._loads.may_unload(event.node, known_by.began, refused.ended)
        )

    def _may_have_ended(self, refused: Operation) -> bool:
        """Whether a request may have taken the member out of the group, or given its instance id to another member."""
        member, instance = refused.event.member, refused.event.instance
        joined = self._joined.get(member)
        if joined is None:
            return True
        if instance is None:
            named = (item for item in self.group.operations if item.invoked[1].member == member)
            return any(_may_leave(item, refused) for item in named)
        return any(
            _may_leave(item, refused) or (item.event.f == JOIN and item.event.member != member)
            for item in self._of_instance[instance]
            if item.began < refused.ended and _may_follow(item, joined)
        )


def _may_leave(item: Operation, refused: Operation) -> bool:
    return item.event.f == LEAVE and not item.is_refused and item.began < refused.ended


def _may_follow(item: Operation, joined: Operation) -> bool:
    """Whether a request may have had its effect after a member had joined: one without an answer at any time."""
    return not _has_answer(item) or item.ended > joined.began


def _has_answer(item: Operation) -> bool:
    """Whether a coordinator has answered: what it wrote for the request is in its log by then, if at all."""
    return item.is_ok or item.is_refused or item.event.error in _MOVED


def _forgotten(key: str, members: Memberships) -> Iterator[Finding]:
    """Find members that were refused though they were in the group."""
    if any((item.event.error or "") == _FULL for item in members.group.operations):
        return
    for refused in members.group.operations:
        if not _is_refusal(refused) or (kept := members.kept(refused)) is None:
            continue
        event = refused.event
        sentence = (
            f"Broker {event.node} refused a {event.f} of {event.process} in {key} with {event.error}, though the "
            f"session of {event.member} went on."
        )
        rows = sorted({_last_row(item) for item in (kept.proof, kept.sign, kept.known_by)})
        if kept.may_unload:
            sentence += " But it may have ceased to coordinate the group meanwhile."
        yield finding(
            MEMBERSHIP_KEPT.name,
            key,
            sentence,
            *(*rows, refused.invoked[0], _last_row(refused)),
            verdict=Verdict.UNKNOWN if kept.may_unload else Verdict.INVALID,
        )


def _is_refusal(operation: Operation) -> bool:
    asked: Event = operation.invoked[1]
    return (
        operation.is_refused
        and asked.f in _REQUESTS
        and asked.member is not None
        and operation.event.error in _REFUSALS
    )


def _last_row(operation: Operation) -> int:
    return operation.invoked[0] if operation.completed is None else operation.completed[0]


MEMBERSHIP_KEPT: Final = Property(
    name="membership-kept",
    promise="A member whose session goes on stays in its group, also when the coordinator moves.",
    unit="answers to members",
    unknown="No coordinator answered a member, the time-outs were not recorded, or a coordinator may have unloaded.",
    source="KIP-62, KIP-345; GroupCoordinator.updateStaticMemberAndRebalance, onExpireHeartbeat.",
    check=Membership,
    decided_from=frozenset({EventSource.CLIENTS, EventSource.HARNESS, EventSource.METADATA_LOG}),
    stand_ins=frozenset({EventSource.QUORUM_LOG}),
    completed_by=frozenset({EventSource.TRACES}),
    recorded_since=8,
    workloads=WORKLOADS,
    reason=explain.membership_kept,
    breaks=breaks.MEMBERSHIP_KEPT,
)
