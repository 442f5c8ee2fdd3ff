"""How the leader of a group assigns partitions: `range`, and `cooperative-sticky` (KIP-429).

* ``range`` is eager: members give up all partitions before they join. Of each topic, each member has a range.
* ``cooperative-sticky`` keeps what members have: they join while they own partitions, and claim them. A partition that
  is to move to another member is assigned to no member at first. Its owner learns that from its assignment, gives it
  up and joins again; the next generation assigns it. So no partition has two owners at any time.

Source: RangeAssignor and CooperativeStickyAssignor of Kafka 3.9's clients. Which partitions move may differ from
Kafka's choice: here, too, loads differ by one partition at most if all members subscribe to the same topics, and as few
partitions as possible move.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final, NamedTuple, Protocol

from nemesis.workloads.kafka.consumer_protocol import Subscribed, TopicPartition

Members = Mapping[str, Subscribed]
"""By member id what a member subscribes to and claims."""
Counts = Mapping[str, int]
"""The number of partitions of each topic that exists."""
Assigned = dict[str, list[TopicPartition]]
"""By member id the partitions that it is to own."""


class Assign(Protocol):
    """Assigns each partition of a topic to at most one member that subscribes to the topic."""

    def __call__(self, members: Members, counts: Counts) -> Assigned: ...


class Assignor(NamedTuple):
    """A way to assign, and whether members keep their partitions while they join."""

    name: str
    is_cooperative: bool
    assign: Assign


def assign_ranges(members: Members, counts: Counts) -> Assigned:
    """Of each topic a range, the first members one more than the last.

    Members are taken in the order of their instance ids or member ids: a static member keeps its range.
    """
    assigned: Assigned = {member: [] for member in members}
    for topic, count in sorted(counts.items()):
        takers = sorted(
            (member for member, subscribed in members.items() if topic in subscribed.topics),
            key=lambda member: (members[member].instance or member, member),
        )
        if not takers:
            continue
        share, rest = divmod(count, len(takers))
        first = 0
        for index, member in enumerate(takers):
            end = first + share + (index < rest)
            assigned[member] += [(topic, number) for number in range(first, end)]
            first = end
    return assigned


def assign_cooperatively(members: Members, counts: Counts) -> Assigned:
    """The sticky assignment without the partitions that another member has to give up first."""
    claimed_by: dict[TopicPartition, set[str]] = defaultdict(set)
    for member, subscribed in members.items():
        for tp in subscribed.owned:
            claimed_by[tp].add(member)
    return {
        member: [tp for tp in partitions if not claimed_by[tp] or member in claimed_by[tp]]
        for member, partitions in assign_sticky(members, counts).items()
    }


def assign_sticky(members: Members, counts: Counts) -> Assigned:
    """Leave partitions where they are, as far as the loads of members are balanced then."""
    loads: dict[str, set[TopicPartition]] = {member: set() for member in members}
    kept = _valid_claims(members, counts)
    for tp, member in kept.items():
        loads[member].add(tp)
    _assign_rest(loads, members, counts)
    while _move_one(loads, members, kept):
        pass
    return {member: sorted(load) for member, load in loads.items()}


def _valid_claims(members: Members, counts: Counts) -> dict[TopicPartition, str]:
    """The claims of partitions that exist and to which the member subscribes.

    A member that claims in a later generation is right: the other one has missed a rebalance. Two members of the same
    generation contradict each other, and neither of them keeps the partition.
    """
    claims: dict[TopicPartition, list[tuple[int, str]]] = defaultdict(list)
    for member, subscribed in members.items():
        for topic, number in subscribed.owned:
            if topic in subscribed.topics and number < counts.get(topic, 0):
                claims[topic, number].append((subscribed.generation, member))
    valid: dict[TopicPartition, str] = {}
    for tp, claimants in claims.items():
        generation, member = max(claimants)
        if sum(claim == generation for claim, _ in claimants) == 1:
            valid[tp] = member
    return valid


def _assign_rest(loads: dict[str, set[TopicPartition]], members: Members, counts: Counts) -> None:
    """Give each partition without an owner to the member with the fewest that wants it; first the least wanted."""
    owned = {tp for load in loads.values() for tp in load}
    wanting = {
        topic: [member for member, subscribed in members.items() if topic in subscribed.topics]
        for topic in counts
    }
    rest = [
        (topic, number)
        for topic, count in counts.items()
        for number in range(count)
        if (topic, number) not in owned and wanting[topic]
    ]
    for tp in sorted(rest, key=lambda tp: (len(wanting[tp[0]]), tp)):
        member = min(wanting[tp[0]], key=lambda name: (len(loads[name]), name))
        loads[member].add(tp)


def _move_one(
    loads: dict[str, set[TopicPartition]], members: Members, kept: Mapping[TopicPartition, str]
) -> bool:
    """Move a partition from a member to one that has at least two fewer; return whether there is such a pair.

    The largest load gives to the smallest one. So each move is needed: it lowers a load that is too large, or raises
    one that is too small. The sum of the squares of all loads falls with each move, so that the moves end.
    """
    for giver in sorted(loads, key=lambda name: (-len(loads[name]), name)):
        for taker in sorted(loads, key=lambda name: (len(loads[name]), name)):
            if len(loads[giver]) < len(loads[taker]) + 2:
                break
            movable = [tp for tp in loads[giver] if tp[0] in members[taker].topics]
            if movable:
                # What the giver has claimed moves last, because it has to be given up first.
                tp = max(movable, key=lambda tp: (kept.get(tp) != giver, tp))
                loads[giver].remove(tp)
                loads[taker].add(tp)
                return True
    return False


RANGE: Final = Assignor("range", is_cooperative=False, assign=assign_ranges)
COOPERATIVE_STICKY: Final = Assignor(
    "cooperative-sticky", is_cooperative=True, assign=assign_cooperatively
)
ASSIGNORS: Final = {assignor.name: assignor for assignor in (RANGE, COOPERATIVE_STICKY)}
