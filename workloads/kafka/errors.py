"""What a failed operation says.

::

    KafkaError
    ├── ConnectionFailed     the bytes did not all come through; ``definite`` if none was sent
    ├── RequestTimedOut      no answer in time: indeterminate
    ├── BrokerError          the broker answered with an error code
    ├── BadRecordBatch       the bytes of a fetch response are no intact record batch
    └── ForeignRecord        a record that no producer of the workload wrote
"""

from __future__ import annotations

from typing import Final

from kio.schema.errors import ErrorCode

from nemesis.history.events import NO_ANSWER

DEFINITE_ERRORS: Final = frozenset(
    {
        ErrorCode.not_enough_replicas,
        ErrorCode.message_too_large,
        ErrorCode.corrupt_message,
        ErrorCode.invalid_required_acks,
        ErrorCode.invalid_timestamp,
        ErrorCode.invalid_record,
        ErrorCode.invalid_request,
        ErrorCode.invalid_topic_exception,
        ErrorCode.invalid_partitions,
        ErrorCode.invalid_replication_factor,
        ErrorCode.invalid_replica_assignment,
        ErrorCode.invalid_config,
    }
)
"""Errors that say for certain that nothing was appended. NOT_LEADER_OR_FOLLOWER can come after the append."""


class KafkaError(Exception):
    """An operation did not succeed. ``definite`` says that it certainly had no effect.

    ``name`` is what the history records: Kafka's error name, or the client's own in the same style.
    """

    def __init__(self, name: str, *, definite: bool) -> None:
        super().__init__(name)
        self.name = name
        self.definite = definite


class ConnectionFailed(KafkaError):
    """The connection could not be made (definite) or broke under the request (not definite)."""


class RequestTimedOut(KafkaError):
    """No answer within the time given: the request may still be carried out, even much later."""

    def __init__(self, waited_s: float = 0.0) -> None:
        """``waited_s``: the time since a connection took the request."""
        super().__init__(NO_ANSWER, definite=False)
        self.waited_s = waited_s


class BrokerError(KafkaError):
    """The broker answered with an error code."""

    def __init__(self, code: ErrorCode, *, definite: bool | None = None) -> None:
        super().__init__(
            code.name.upper(), definite=code in DEFINITE_ERRORS if definite is None else definite
        )
        self.code = code


class BadRecordBatch(KafkaError):
    """The broker returned bytes that are no intact record batch; ``reason`` says what is wrong with them."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"BAD_RECORD_BATCH ({reason})", definite=False)


class ForeignRecord(KafkaError):
    """A record's value is none that a producer of the workload could have written."""

    def __init__(self) -> None:
        super().__init__("FOREIGN_RECORD", definite=False)
