"""An administrator that deletes records at intervals: most of the committed records of a partition."""

from __future__ import annotations

import asyncio
from random import Random  # noqa: TID251 - the type only

from nemesis.history.recorder import Recorder
from nemesis.workloads.kafka.admin import KafkaAdmin
from nemesis.workloads.kafka.errors import KafkaError
from nemesis.workloads.operations import OperationLog
from nemesis.workloads.partitions import KnownPartitions, partition_columns


async def delete_records_again_and_again(
    client: KafkaAdmin,
    recorder: Recorder,
    log: OperationLog,
    partitions: KnownPartitions,
    *,
    interval_ms: int,
    timeout_s: float,
    rng: Random,
) -> None:
    """Run until cancelled; ``partitions`` may grow."""
    try:
        while True:
            await asyncio.sleep(interval_ms / 1000)
            await client.refresh_metadata()
            tp = rng.choice(partitions.known)
            try:
                end = await client.end_offset(*tp, timeout_s=timeout_s)
            except KafkaError:
                continue
            if end < 2:
                continue
            offset = rng.randint(end // 2, end)
            columns = partition_columns(client, tp) | {"f": "delete-records", "offset": offset}
            with log.operation(recorder, columns) as operation:
                watermark = await client.delete_records(*tp, offset, timeout_s=timeout_s)
                operation.ok(log_start_offset=watermark)
    finally:
        client.close()
