"""An administrator that moves replicas from one log directory of their broker to another (KIP-113).

The administrator asks a broker where its logs are, and moves one of them to another directory. Moves take time and
overlap: of the same replica, to a third directory, back again.
"""

from __future__ import annotations

import asyncio
from random import Random  # noqa: TID251 - the type only

from nemesis.history.recorder import Recorder
from nemesis.workloads.kafka.admin import KafkaAdmin
from nemesis.workloads.kafka.errors import KafkaError
from nemesis.workloads.operations import OperationLog
from nemesis.workloads.partitions import partition_columns


async def move_between_log_dirs_again_and_again(
    client: KafkaAdmin,
    recorder: Recorder,
    log: OperationLog,
    *,
    interval_ms: int,
    timeout_s: float,
    rng: Random,
) -> None:
    """Run until cancelled."""
    try:
        while True:
            await asyncio.sleep(interval_ms / 1000)
            await client.refresh_metadata()
            brokers = sorted(client.metadata.brokers)
            if not brokers:
                continue
            node = rng.choice(brokers)
            try:
                logs_by_path = await client.replicas_by_log_dir(node, timeout_s=timeout_s)
            except KafkaError:
                continue
            replicas = sorted({tp for logs in logs_by_path.values() for tp in logs})
            if not replicas or len(logs_by_path) < 2:
                continue
            tp = rng.choice(replicas)
            target = rng.choice(
                [path for path, logs in logs_by_path.items() if tp not in logs] or [""]
            )
            if not target:
                continue  # a move to the only other directory is in progress
            columns = partition_columns(client, tp) | {
                "f": "alter-log-dir",
                "node": node,
                "log_dir": target,
            }
            with log.operation(recorder, columns) as operation:
                await client.alter_replica_log_dir(node, tp, target, timeout_s=timeout_s)
                operation.ok()
    finally:
        client.close()
