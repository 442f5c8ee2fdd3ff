"""Which brokers get which replicas of new partitions, and which names a topic may have. Pure functions.

Source: kafka.admin.AdminUtils (the algorithm without racks), kafka.zk.AdminZkClient (validateReplicaAssignment),
org.apache.kafka.common.internals.Topic.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from random import Random  # noqa: TID251 — the type only

from nemesis.reference.zk.zk_data import ReplicaAssignment

MAX_TOPIC_NAME_LENGTH = 249
_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")


def assign_replicas_to_brokers(
    broker_ids: Sequence[int], partitions: int, replication_factor: int, rng: Random
) -> dict[int, ReplicaAssignment]:
    """Spread leaders round robin from a random broker, and followers so that no two brokers share all partitions.

    ``replication_factor`` must be between 1 and the number of brokers.
    """
    if not 1 <= replication_factor <= len(broker_ids):
        raise ValueError(f"{replication_factor} replicas on {len(broker_ids)} brokers")
    count = len(broker_ids)
    return _assign(
        broker_ids,
        range(partitions),
        replication_factor,
        start=rng.randrange(count),
        shift=rng.randrange(count),
    )


def assign_added_partitions(
    broker_ids: Sequence[int], existing: Mapping[int, ReplicaAssignment], partitions: int
) -> dict[int, ReplicaAssignment]:
    """Return the assignments of the partitions that bring a topic to ``partitions``, going on where it ended.

    Partition 0 says where it began and how many replicas each partition has: no more than there are brokers.
    """
    first = existing[0].replicas
    if len(first) > len(broker_ids):
        raise ValueError(f"{len(first)} replicas on {len(broker_ids)} brokers")
    later = [index for index, broker_id in enumerate(broker_ids) if broker_id >= first[0]]
    start = later[0] if later else 0
    added = range(len(existing), partitions)
    return _assign(broker_ids, added, len(first), start=start, shift=start)


def _assign(
    broker_ids: Sequence[int],
    partitions: range,
    replication_factor: int,
    *,
    start: int,
    shift: int,
) -> dict[int, ReplicaAssignment]:
    count = len(broker_ids)
    assignment = {}
    for partition in partitions:
        if partition > 0 and partition % count == 0:
            shift += 1
        first = (partition + start) % count
        followers = [
            (first + 1 + (shift + follower) % (count - 1)) % count
            for follower in range(replication_factor - 1)
        ]
        assignment[partition] = ReplicaAssignment(
            tuple(broker_ids[index] for index in (first, *followers))
        )
    return assignment


def assignment_problem(
    assignment: Mapping[int, Sequence[int]],
    *,
    first_partition: int,
    replication_factor: int | None,
    broker_ids: Collection[int],
) -> str | None:
    """Return one sentence when an explicit assignment of new partitions is refused, else None.

    ``replication_factor`` is that of the partitions that are there; None: all new ones must have the same.
    """
    expected = list(range(first_partition, first_partition + len(assignment)))
    if sorted(assignment) != expected:
        return f"Partitions are {sorted(assignment)}; they must be numbered from {first_partition}."
    for partition, replicas in sorted(assignment.items()):
        factor = replication_factor if replication_factor is not None else len(replicas)
        replication_factor = factor
        if not replicas or len(replicas) != factor:
            return "All partitions must have the same number of replicas, at least one."
        if len(set(replicas)) != len(replicas):
            return f"Partition {partition} names a broker twice: {list(replicas)}."
        unknown = sorted(set(replicas).difference(broker_ids))
        if unknown:
            return f"Partition {partition} names brokers that are not alive: {unknown}."
    return None


def topic_name_problem(name: str, existing: Sequence[str]) -> str | None:
    """Return one sentence when Kafka would refuse the name, else None."""
    if not name or name in (".", ".."):
        return f"Topic name {name!r} is not allowed."
    if len(name) > MAX_TOPIC_NAME_LENGTH:
        return f"Topic name is longer than {MAX_TOPIC_NAME_LENGTH} characters."
    if not _LEGAL_NAME.fullmatch(name):
        return (
            f"Topic name {name!r} has characters other than ASCII alphanumerics, '.', '_' and '-'."
        )
    # Metric names do not tell '.' from '_', so Kafka refuses names that differ in nothing else.
    merged = name.replace(".", "_")
    for other in existing:
        if other != name and other.replace(".", "_") == merged:
            return f"Topic {name!r} collides with existing topic {other!r}."
    return None
