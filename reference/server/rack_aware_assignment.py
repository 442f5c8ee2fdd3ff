"""Replicas of new partitions on brokers that name their racks: each rack gets one before any gets two. Pure functions.

Brokers are arranged so that neighbours are of different racks, and replicas are dealt out from there as without racks,
passing over racks and brokers that have one while others have none. Source: kafka.admin.AdminUtils; KIP-36.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from random import Random  # noqa: TID251 — the type only

from nemesis.reference.zk.zk_data import ReplicaAssignment


def assign_replicas_to_brokers(
    racks: Mapping[int, str], partitions: int, replication_factor: int, rng: Random
) -> dict[int, ReplicaAssignment]:
    """Return each partition's replicas; ``racks`` gives the rack of every broker.

    ``replication_factor`` must be between 1 and the number of brokers.
    """
    if not 1 <= replication_factor <= len(racks):
        raise ValueError(f"{replication_factor} replicas on {len(racks)} brokers")
    start, shift = rng.randrange(len(racks)), rng.randrange(len(racks))
    return _assign(racks, range(partitions), replication_factor, start=start, shift=shift)


def assign_added_partitions(
    racks: Mapping[int, str], existing: Mapping[int, ReplicaAssignment], partitions: int
) -> dict[int, ReplicaAssignment]:
    """Return the assignments of the partitions that bring a topic to ``partitions``, going on where it ended.

    Partition 0 says where it began and how many replicas each partition has: no more than there are brokers.
    """
    first = existing[0].replicas
    if len(first) > len(racks):
        raise ValueError(f"{len(first)} replicas on {len(racks)} brokers")
    start = next((index for index, id_ in enumerate(sorted(racks)) if id_ >= first[0]), 0)
    added = range(len(existing), partitions)
    return _assign(racks, added, len(first), start=start, shift=start)


def _assign(
    racks: Mapping[int, str], partitions: range, factor: int, *, start: int, shift: int
) -> dict[int, ReplicaAssignment]:
    arranged = rack_alternated(racks)
    assignment = {}
    for partition in partitions:
        if partition > 0 and partition % len(arranged) == 0:
            shift += 1
        first = (partition + start) % len(arranged)
        assignment[partition] = ReplicaAssignment(_replicas(arranged, racks, first, shift, factor))
    return assignment


def rack_alternated(racks: Mapping[int, str]) -> tuple[int, ...]:
    """The brokers in rounds: one of each rack, then the next of each, racks and brokers in their order."""
    by_rack = [
        sorted(broker for broker, rack in racks.items() if rack == name)
        for name in sorted(set(racks.values()))
    ]
    rounds = zip_longest(*by_rack)
    return tuple(broker for one_round in rounds for broker in one_round if broker is not None)


def _replicas(
    arranged: tuple[int, ...], racks: Mapping[int, str], first: int, shift: int, factor: int
) -> tuple[int, ...]:
    chosen = [arranged[first]]
    count, rack_count = len(arranged), len(set(racks.values()))
    step = 0
    while len(chosen) < factor:
        distance = 1 + (shift * rack_count + step) % (count - 1)
        broker = arranged[(first + distance) % count]
        used = {racks[replica] for replica in chosen}
        if broker not in chosen and (racks[broker] not in used or len(used) == rack_count):
            chosen.append(broker)
        step += 1
    return tuple(chosen)
