"""Which brokers get which replicas of a new topic, and which names a topic may have. Pure functions.

Source: kafka.admin.AdminUtils (the algorithm without racks), org.apache.kafka.common.internals.Topic.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random  # noqa: TID251 — the type only

from reference.zk.zk_data import ReplicaAssignment

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
    start = rng.randrange(count)
    shift = rng.randrange(count)
    assignment = {}
    for partition in range(partitions):
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
