"""An administrator that adds partitions to topics while producers, consumers and groups use them.

The administrator looks at the metadata of some broker, which may be stale, and asks for one partition more. Clients of
the workload learn of the partition when the request has succeeded, or when the metadata name it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random  # noqa: TID251 - the type only

from nemesis.workloads.admin_requests import AdminRequests
from nemesis.workloads.operations import Pace
from nemesis.workloads.partitions import KnownPartitions


async def grow_topics_again_and_again(
    requests: AdminRequests,
    partitions: KnownPartitions,
    topics: Sequence[str],
    *,
    most_partitions: int,
    interval_ms: int,
    rng: Random,
    permits: Callable[[int], bool],
) -> None:
    """Run until cancelled; ``permits`` says whether the n-th step may be done."""
    pace, step = Pace(interval_ms, rng), 0
    try:
        while True:
            await pace.wait()
            step += 1
            # Drawn before the step may be left out, so that leaving it out changes no other.
            topic = rng.choice(topics)
            if permits(step) and await requests.client.refresh_metadata():
                await _grow(requests, partitions, topic, most_partitions)
    finally:
        requests.client.close()


async def _grow(
    requests: AdminRequests, partitions: KnownPartitions, topic: str, most_partitions: int
) -> None:
    existing = requests.client.metadata.topics.get(topic)
    if existing is None:
        return
    partitions.add([(topic, partition) for partition in sorted(existing.partitions)])
    count = len(existing.partitions)
    if count < most_partitions and await requests.create_partitions(topic, count + 1):
        partitions.add([(topic, count)])
