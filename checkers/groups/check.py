"""Consumer groups: generations, owners of partitions, and committed offsets.

* **one-owner-per-generation**: in one generation of a group, a partition belongs to one member. A member counts once a
  commit that it made in that generation, while it owned the partition, was acknowledged. The processes of a static
  member are one member, though each has another member id; which of them may commit is another promise. A member that
  keeps a partition through a rebalance (KIP-429) is assigned it again, and owns it in the new generation from then on.
  Smallest break: members a and b are both assigned t-0 in generation 1, and a commit of each is acknowledged.
* **generation-grows**: a member that joins is not answered a generation below one that its coordinator has taken in.
  Smallest break: broker 1 acknowledges a commit of generation 2, and then answers a JoinGroup with generation 1.
* **fenced-member**: once a commit of a generation is acknowledged, no commit of an earlier generation that is sent
  afterwards is acknowledged by any broker; and no heartbeat and no SyncGroup of an earlier generation is accepted by a
  broker that has taken the later one in. A broker that has let a member go accepts no request of that member id, also
  if an administrator took the member out by its instance id. Once another process has taken over a static member and
  has a settled commit acknowledged, no commit of the process before it is; nor is any by a broker that has answered its
  assignment. Who joins without a member id is answered a new one, so that the process before it can be fenced
  (KAFKA-8500).
  Smallest breaks: a commit of generation 2 is acknowledged, then one of generation 1; the same with a SyncGroup or a
  heartbeat of generation 1, if both have the same broker; a member leaves, and its commit is acknowledged; a
  static member is taken over, and commits of both processes are acknowledged, that of the former one last; a second
  process joins without a member id, and is answered that of the first one.
* **offsets-read-as-committed**: an offset that is read (a) was committed: it is the offset and leader epoch of a commit
  of that group and partition that had been sent and not refused; (b) is not older than what its coordinator has
  taken in: no acknowledged commit that the broker had was sent after the commit that is read had been acknowledged.
  Smallest breaks: (a) an offset is read that no member committed; (b) a broker acknowledges a commit, and then answers
  that nothing is committed.

What a broker has taken in is decided from acknowledged commits alone (``acknowledged``): the commits that it has
acknowledged itself, and all that were acknowledged before one of these was sent. Neither clocks of brokers nor traces
count, so that the properties judge Kafka, too. Only what a broker forgets when it loads its groups needs their traces
(``loads``): heartbeats, and members that have left. A generation counts from its first *settled* commit on: one whose
member had its assignment of that generation.

What a correct cluster does and is not convicted for: a commit whose outcome is unknown is read, at any later time, or
vanishes, also after it was read, because a coordinator loads what it has in its log and not what is committed there; a
former coordinator that does not know of its successor answers heartbeats, joins and reads from what it had, though no
commit that it takes is acknowledged; a coordinator that loads its groups accepts each heartbeat, and has members again
that had left; commits are acknowledged in a generation that could not be stored, until the next one begins; a
generation that was never stored begins again with other members after a
failover, and even two members may be assigned a partition in it, because only in the stored one commits are
acknowledged; a commit of the last generation is accepted while the next one is being prepared; a member that has not
heard of the end of its generation goes on reading (a zombie), beside the owner of the next generation; the offsets of a
topic that is deleted are removed, at any time after.

Where brokers may elect unclean leaders, or when the last replica of a partition of ``__consumer_offsets`` has lost what
it had not synced (KIP-966), acknowledged commits may be lost: findings are then reported and allowed. Another power
cut excuses nothing, as in the properties about records.

Limits: where neither clients nor the metadata log show that a topic is deleted, nothing may delete one. A group that is
deleted begins again with generation 1, so no workload may delete one. A former member that commits in the generation
which is still the last one is not found, unless it has left. A group that nothing was committed in is not judged. That
records are processed at all, and that rebalances end in time, are other promises. Groups of KIP-848 are not used.
Source: KIP-62, KIP-211, KIP-345, KIP-394; GroupCoordinator and GroupMetadataManager of Kafka 3.9.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from nemesis.checkers import losses
from nemesis.checkers.administered import CLIENT_KINDS, Administered
from nemesis.checkers.breaks import groups as breaks
from nemesis.checkers.explain import groups as explain
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding, Result
from nemesis.checkers.framework.property import Property
from nemesis.checkers.groups.acknowledged import Acknowledged
from nemesis.checkers.groups.committed import DELETE_TOPIC, deleted_topics, misread
from nemesis.checkers.groups.fencing import (
    accepted_after_leaving,
    accepted_after_takeover,
    accepted_late,
    fallen_generations,
    shared_member_ids,
)
from nemesis.checkers.groups.group_operations import (
    COLUMNS,
    COMMIT,
    FETCH,
    FUNCTIONS,
    HEARTBEAT,
    JOIN,
    SYNC,
    WORKLOADS,
    Group,
    groups,
)
from nemesis.checkers.groups.loads import Loads
from nemesis.checkers.groups.ownership import confirmed, shared
from nemesis.checkers.losses import OFFSETS_TOPIC
from nemesis.history.events import Kind
from nemesis.history.sources import EventSource


class Groups(Administered):
    operations = FUNCTIONS | {DELETE_TOPIC}
    kinds = frozenset(
        {
            *(*CLIENT_KINDS, *losses.KINDS),
            *(Kind.ASSIGNED, Kind.REVOKED, Kind.BECOME_LEADER, Kind.ZNODE),
        }
    )
    columns = (*COLUMNS, *losses.COLUMNS, "zxid", "zk_op", "path")

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (
            ONE_OWNER_PER_GENERATION,
            GENERATION_GROWS,
            FENCED_MEMBER,
            OFFSETS_READ_AS_COMMITTED,
        )

    def judge(self, rows: list[Row]) -> Results:
        known = sorted(groups(rows).items())
        permitted = losses.Losses(rows)
        return [
            _owners(known, permitted),
            _generations(known, permitted),
            _members(known, Loads(rows), permitted),
            _offsets(known, permitted, deleted_topics(rows)),
        ]


def _owners(known: Iterable[tuple[str, Group]], permitted: losses.Losses) -> Result:
    checked = 0
    findings: list[Finding] = []
    for key, group in known:
        owners = confirmed(group)
        checked += len(owners)
        findings += shared(ONE_OWNER_PER_GENERATION.name, key, owners)
    findings = permitted.allow_all(findings, OFFSETS_TOPIC)
    return conclude(ONE_OWNER_PER_GENERATION, checked=checked, findings=findings)


def _generations(known: list[tuple[str, Group]], permitted: losses.Losses) -> Result:
    findings = _collected(
        fallen_generations(GENERATION_GROWS.name, key, group, Acknowledged(group))
        for key, group in known
    )
    joins = _count(known, JOIN)
    generations = {(key, join.generation) for key, group in known for join in group.ok(JOIN)}
    numbers = {"generations": float(len(generations))}
    findings = permitted.allow_all(findings, OFFSETS_TOPIC)
    return conclude(GENERATION_GROWS, checked=joins, findings=findings, numbers=numbers)


def _members(known: list[tuple[str, Group]], loads: Loads, permitted: losses.Losses) -> Result:
    name = FENCED_MEMBER.name
    findings = _collected(
        part
        for key, group in known
        for part in (
            accepted_late(name, key, group, Acknowledged(group), loads),
            accepted_after_leaving(name, key, group, loads),
            accepted_after_takeover(name, key, group, loads),
            shared_member_ids(name, key, group),
        )
    )
    findings = permitted.allow_all(findings, OFFSETS_TOPIC)
    return conclude(
        FENCED_MEMBER, checked=_count(known, COMMIT, HEARTBEAT, SYNC), findings=findings
    )


def _offsets(
    known: list[tuple[str, Group]], permitted: losses.Losses, deleted: frozenset[str]
) -> Result:
    findings = _collected(
        misread(OFFSETS_READ_AS_COMMITTED.name, key, group, Acknowledged(group), deleted)
        for key, group in known
    )
    findings = permitted.allow_all(findings, OFFSETS_TOPIC)
    return conclude(OFFSETS_READ_AS_COMMITTED, checked=_count(known, FETCH), findings=findings)


def _collected(parts: Iterable[Iterator[Finding]]) -> list[Finding]:
    return [item for part in parts for item in part]


def _count(known: list[tuple[str, Group]], *functions: str) -> int:
    return sum(len(group.ok(*functions)) for _, group in known)


_SOURCES: Final = frozenset({EventSource.CLIENTS})

ONE_OWNER_PER_GENERATION: Final = Property(
    name="one-owner-per-generation",
    promise="In one generation of a group, a partition belongs to one member.",
    unit="ownerships with an acknowledged commit",
    unknown="No member that owned a partition had a commit acknowledged.",
    source="GroupCoordinator.doSyncGroup; KIP-62.",
    check=Groups,
    decided_from=_SOURCES,
    recorded_since=8,
    workloads=WORKLOADS,
    reason=explain.one_owner_per_generation,
    breaks=breaks.ONE_OWNER_PER_GENERATION,
)

GENERATION_GROWS: Final = Property(
    name="generation-grows",
    promise="The generation of a group that has had a commit acknowledged never goes back.",
    unit="joins",
    unknown="No member joined a group.",
    source="GroupMetadata.initNextGeneration, GroupMetadataManager.loadGroup.",
    check=Groups,
    decided_from=_SOURCES,
    recorded_since=8,
    workloads=WORKLOADS,
    reason=explain.generation_grows,
    breaks=breaks.GENERATION_GROWS,
)

FENCED_MEMBER: Final = Property(
    name="fenced-member",
    promise="Requests of members of an earlier generation are refused.",
    unit="accepted commits, heartbeats and requests for assignments",
    unknown="No commit, no heartbeat and no request for an assignment was accepted.",
    source="GroupCoordinator.validateOffsetCommit, validateHeartbeat, validateSyncGroup; ILLEGAL_GENERATION.",
    check=Groups,
    decided_from=_SOURCES,
    completed_by=frozenset({EventSource.TRACES}),
    recorded_since=8,
    workloads=WORKLOADS,
    reason=explain.fenced_member,
    breaks=breaks.FENCED_MEMBER,
)

OFFSETS_READ_AS_COMMITTED: Final = Property(
    name="offsets-read-as-committed",
    promise="A committed offset that is read was committed, and is not older than what was acknowledged.",
    unit="offsets read",
    unknown="No committed offset was read.",
    source="GroupMetadataManager.storeOffsets, getOffsets, loadGroupsAndOffsets.",
    check=Groups,
    decided_from=_SOURCES,
    recorded_since=8,
    workloads=WORKLOADS,
    reason=explain.offsets_read_as_committed,
    breaks=breaks.OFFSETS_READ_AS_COMMITTED,
)
