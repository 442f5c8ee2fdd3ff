"""An administrator that deletes records at intervals: most of the committed records of a partition."""

from __future__ import annotations

import asyncio
from random import Random  # noqa: TID251 - the type only

from nemesis.workloads.admin_requests import AdminRequests
from nemesis.workloads.kafka.errors import KafkaError
from nemesis.workloads.partitions import KnownPartitions


async def delete_records_again_and_again(
    requests: AdminRequests,
    partitions: KnownPartitions,
    *,
    interval_ms: int,
    timeout_s: float,
    rng: Random,
) -> None:
    """Run until cancelled; ``partitions`` may grow."""
    client = requests.client
    try:
        while True:
            await asyncio.sleep(interval_ms / 1000)
            await client.refresh_metadata()
            tp = rng.choice(partitions.known)
            try:
                end = await client.end_offset(*tp, timeout_s=timeout_s)
            except KafkaError:
                continue
            if end >= 2:
                await requests.delete_records(tp, rng.randint(end // 2, end))
    finally:
        client.close()
