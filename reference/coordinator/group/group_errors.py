"""How the errors of an append to the offsets topic are reported to clients.

Source: kafka.coordinator.group.GroupMetadataManager (storeGroup, maybeConvertOffsetCommitError) of Kafka 3.9.
"""

from __future__ import annotations

from typing import Final

from kio.schema.errors import ErrorCode

_NOT_STORED: Final[dict[ErrorCode, ErrorCode]] = {
    ErrorCode.unknown_topic_or_partition: ErrorCode.coordinator_not_available,
    ErrorCode.not_enough_replicas: ErrorCode.coordinator_not_available,
    ErrorCode.not_enough_replicas_after_append: ErrorCode.coordinator_not_available,
    ErrorCode.not_leader_or_follower: ErrorCode.not_coordinator,
    ErrorCode.kafka_storage_error: ErrorCode.not_coordinator,
}
_GROUP_NOT_STORED: Final[dict[ErrorCode, ErrorCode]] = _NOT_STORED | {
    ErrorCode.request_timed_out: ErrorCode.rebalance_in_progress,
    ErrorCode.message_too_large: ErrorCode.unknown_server_error,
    ErrorCode.record_list_too_large: ErrorCode.unknown_server_error,
}
_OFFSETS_NOT_STORED: Final[dict[ErrorCode, ErrorCode]] = _NOT_STORED | {
    ErrorCode.message_too_large: ErrorCode.invalid_commit_offset_size,
    ErrorCode.record_list_too_large: ErrorCode.invalid_commit_offset_size,
    # Of a verification: it lets also older clients retry, without looking for the coordinator again.
    ErrorCode.network_exception: ErrorCode.coordinator_load_in_progress,
}


def group_error(error: ErrorCode) -> ErrorCode:
    """Return the error of a JoinGroup or SyncGroup whose group could not be written."""
    return _GROUP_NOT_STORED.get(error, error)


def offset_commit_error(error: ErrorCode) -> ErrorCode:
    """Return the error of an OffsetCommit or TxnOffsetCommit whose offsets could not be verified or written."""
    return _OFFSETS_NOT_STORED.get(error, error)
