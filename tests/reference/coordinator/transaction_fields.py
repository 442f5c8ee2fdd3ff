"""A transactional id as the log has it."""

from __future__ import annotations

from nemesis.reference.coordinator.transaction.transaction_metadata import TransactionMetadata


def fields(metadata: TransactionMetadata) -> tuple[object, ...]:
    """What the log has of a transactional id."""
    return (
        metadata.producer_id,
        metadata.producer_epoch,
        metadata.timeout_ms,
        metadata.state,
        metadata.partitions,
        metadata.start_timestamp,
        metadata.last_update_timestamp,
    )
