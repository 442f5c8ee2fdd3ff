"""What a confluent-kafka consumer delivers when its partitions are assigned by hand.

librdkafka asks for the coordinator of ``group.id``, which it requires, even if nothing uses the group. It reports the
answer once, as a message with an error, and goes on reading. The reference has no groups (docs/reference.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from confluent_kafka import KafkaError, Message


def records(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield the messages that are records; fail on any error but the one about the missing group."""
    for message in messages:
        error = message.error()
        if error is not None and error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
            continue
        assert error is None, error
        yield message
