"""The logs of all replicas, read from the brokers' files when the cluster is stopped, and recorded.

What brokers say of their logs they say while they run; this is what they leave. Nobody is asked: the files are read by
``nemesis.history.stored_logs``, and the property ``final-logs`` compares them with one another and with the traces.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nemesis.history.events import ABORT, COMMIT, NO_ERROR, Kind
from nemesis.history.recorder import Recorder
from nemesis.history.stored_companions import Companions
from nemesis.history.stored_logs import StoredLog, marked_batches
from nemesis.interfaces.runtime import Runtime
from nemesis.interfaces.unsupported import Unsupported
from nemesis.support.node_names import id_of


def liveness(runtime: Runtime) -> dict[str, bool]:
    """Return which brokers are alive, asked before they are stopped; none of a cluster that we did not start."""
    processes = runtime.processes
    if isinstance(processes, Unsupported):
        return {}
    return {node: processes.is_alive(node) for node in runtime.cluster.brokers}


async def record_stored_logs(runtime: Runtime, recorder: Recorder, was: Mapping[str, bool]) -> None:
    """Record the logs of these brokers, which are stopped. One whose files cannot be read is recorded as such."""
    for node, is_alive in sorted(was.items()):
        number = id_of(node)
        try:
            logs = await runtime.lifecycle.stored_logs(node)
        except (OSError, ValueError) as error:
            recorder.record(Kind.STORED_LOG, node=number, alive=is_alive, error=str(error))
            continue
        for log in logs:
            _record(recorder, number, log, is_alive=is_alive)
        recorder.record(
            Kind.STORED_LOG, node=number, alive=is_alive, error=NO_ERROR, count=len(logs)
        )


def _record(recorder: Recorder, node: int, log: StoredLog, *, is_alive: bool) -> None:
    tp: dict[str, Any] = {
        "node": node,
        "topic": log.topic,
        "topic_id": None if log.topic_id is None else str(log.topic_id),
        "partition": log.partition,
    }
    recorder.record(
        Kind.STORED_LOG,
        **tp,
        log_start_offset=log.start_offset,
        log_end_offset=log.end_offset,
        high_watermark=log.high_watermark,
        cleaner_offset=log.cleaned_below,
        recovery_point=log.recovery_point,
        superseded_offset=log.first_superseded,
        alive=is_alive,
        error=log.damage or NO_ERROR,
    )
    for segment in log.segments:
        times = [
            batch.max_timestamp
            for batch in log.batches
            if batch.segment_offset == segment.base_offset
        ]
        recorder.record(
            Kind.STORED_SEGMENT,
            **tp,
            offset=segment.base_offset,
            count=segment.size_bytes,
            max_timestamp=max(times, default=-1),
        )
    for batch in log.batches:
        recorder.record(
            Kind.STORED_BATCH,
            **tp,
            offset=batch.base_offset,
            last_offset=batch.last_offset,
            leader_epoch=batch.leader_epoch,
            crc=batch.crc,
            segment_offset=batch.segment_offset,
            position=batch.position,
            max_timestamp=batch.max_timestamp,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            sequence=batch.base_sequence,
            delete_horizon_ms=batch.delete_horizon_ms,
        )
    for batch, marker, first_offset in marked_batches(log.batches):
        recorder.record(
            Kind.STORED_MARKER,
            **tp,
            offset=batch.base_offset,
            leader_epoch=batch.leader_epoch,
            producer_id=batch.marked_producer,
            producer_epoch=batch.producer_epoch,
            coordinator_epoch=marker.coordinator_epoch,
            outcome=COMMIT if marker.is_commit else ABORT,
            first_offset=first_offset,
        )
    _record_companions(recorder, tp, log.companions)


def _record_companions(recorder: Recorder, tp: Mapping[str, Any], companions: Companions) -> None:
    for entry in companions.entries:
        recorder.record(
            Kind.STORED_INDEX_ENTRY,
            **tp,
            segment_offset=entry.segment_offset,
            offset=entry.offset,
            position=entry.position,
            max_timestamp=entry.timestamp,
        )
    for epoch in companions.epochs:
        recorder.record(
            Kind.STORED_EPOCH, **tp, leader_epoch=epoch.epoch, offset=epoch.start_offset
        )
    for offset in companions.snapshots:
        recorder.record(Kind.STORED_SNAPSHOT, **tp, offset=offset)
    for producer in companions.producers:
        recorder.record(
            Kind.STORED_PRODUCER,
            **tp,
            offset=producer.snapshot_offset,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            sequence=producer.last_sequence,
            last_offset=producer.last_offset,
        )
